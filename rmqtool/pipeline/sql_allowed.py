"""What `pipeline sql` runs: queries over the tables of the stores, with functions that only compute.

Judged on the parsed statement, before Spark resolves a name in it: to resolve one may be to read a file, to
call a method of Java or to run a program. What is not listed here is refused, so what a later Spark brings
is, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pyspark.sql import SparkSession

_CATALYST = "org.apache.spark.sql.catalyst."
_PLANS = (f"{_CATALYST}plans.logical.", f"{_CATALYST}analysis.")
_NODES = frozenset({
    "Aggregate", "AsOfJoin", "Distinct", "Except", "Filter", "Generate", "GlobalLimit", "Intersect", "Join",
    "JoinHint", "LateralJoin", "LocalLimit", "LocalRelation", "MultiAlias", "Offset", "OneRowRelation",
    "Pivot", "Project", "Repartition", "RepartitionByExpression", "Sample", "SampleMethod$Bernoulli$",
    "Sort", "SubqueryAlias", "Union", "Unpivot", "UnresolvedAlias", "UnresolvedAttribute",
    "UnresolvedExtractValue", "UnresolvedFunction", "UnresolvedGenerator", "UnresolvedHaving",
    "UnresolvedHint", "UnresolvedInlineTable", "UnresolvedOrdinal", "UnresolvedQualify", "UnresolvedRegex",
    "UnresolvedRelation", "UnresolvedStar", "UnresolvedStarExceptOrReplace", "UnresolvedStarWithColumns",
    "UnresolvedStarWithColumnsRenames", "UnresolvedSubqueryColumnAliases", "UnresolvedTVFAliases",
    "UnresolvedTableValuedFunction", "UnresolvedWith", "WithWindowDefinition",
})  # fmt: skip
"""of plans, and of names in them that are not resolved yet"""
_VALUES = (
    f"{_CATALYST}expressions.",
    f"{_CATALYST}AliasIdentifier",
    f"{_CATALYST}FunctionIdentifier",
    f"{_CATALYST}plans.",
    "org.apache.spark.sql.types.",
    "org.apache.spark.unsafe.types.",
    "org.apache.spark.sql.util.CaseInsensitiveStringMap",
    "java.util.UUID",
    "scala.",
)
"""expressions of the grammar itself, types, collections: with `_NODES`, all that a statement is made of"""
_LEAVES = frozenset({
    f"{_CATALYST}expressions.Literal", f"{_CATALYST}expressions.ExprId",
    f"{_CATALYST}analysis.UnresolvedAttribute", "java.util.UUID", "scala.None$",
    "scala.collection.immutable.Nil$",
})  # fmt: skip
_TYPES = ("org.apache.spark.sql.types.", "org.apache.spark.unsafe.types.")
"""in these and the leaves nothing is looked at: each question to Java costs a quarter of a millisecond"""

_GROUPS = frozenset({
    "agg_funcs", "array_funcs", "bitwise_funcs", "collection_funcs", "conditional_funcs",
    "conversion_funcs", "csv_funcs", "datetime_funcs", "generator_funcs", "hash_funcs", "json_funcs",
    "lambda_funcs", "map_funcs", "math_funcs", "predicate_funcs", "sketch_funcs", "st_funcs",
    "string_funcs", "struct_funcs", "url_funcs", "variant_funcs", "vector_funcs", "window_funcs",
})  # fmt: skip
"""groups of Spark's functions (`ExpressionInfo#getGroup`) that only compute from their arguments"""
_FUNCTIONS = frozenset({
    "aes_decrypt", "aes_encrypt", "assert_true", "bitmap_bit_position", "bitmap_bucket_number",
    "bitmap_count", "hmac", "monotonically_increasing_id", "raise_error", "range", "spark_partition_id",
    "to_xml", "try_aes_decrypt", "typeof", "uuid", "version",
})  # fmt: skip
"""further ones, of groups that also have functions which read or call something

None that parses XML: a DOCTYPE in a message has `xpath` open the address that it names.
"""


def refuse_all_but_queries(session: SparkSession, statement: str, tables: Iterable[str]) -> None:
    """Raises `UsageError` unless a statement asks these tables, and nothing else."""
    plan = session._jsparkSession.sessionState().sqlParser().parsePlan(statement)  # noqa: SLF001
    _Statement(session, plan).judge(plan, frozenset(tables))


class _Statement:
    """A parsed statement: Java's objects, from the plan down to names and values."""

    def __init__(self, session: SparkSession, plan: Any) -> None:
        self._jvm: Any = session._jvm  # noqa: SLF001
        load = plan.getClass().getClassLoader().loadClass
        self._command = load(f"{_CATALYST}plans.logical.Command")
        self._iterable = load("scala.collection.Iterable")
        self._product = load("scala.Product")
        self._fields: dict[str, int | None] = {}
        """class → number of fields, None for a collection"""

    def judge(self, root: Any, tables: frozenset[str]) -> None:
        """Everything below `root`. tables: names that a FROM may have there."""
        from py4j.java_gateway import JavaObject

        pending = [(root, tables)]
        while pending:
            one, known = pending.pop()
            if not isinstance(one, JavaObject):  # a string, number or null
                continue
            name = str(one.getClass().getName())
            kind = self._kind(one, name)
            if kind == "UnresolvedWith":
                pending += self._with(one, known)
                continue
            if kind == "UnresolvedRelation":
                _refuse_other_tables(list(self._listed(one.multipartIdentifier())), known)
            elif kind in {"UnresolvedFunction", "UnresolvedTableValuedFunction", "UnresolvedGenerator"}:
                self._refuse_other_functions(one, kind)
            if name not in _LEAVES and not name.startswith(_TYPES):
                pending += [(part, known) for part in self._parts(one, name)]

    def _with(self, one: Any, tables: frozenset[str]) -> Iterator[tuple[Any, frozenset[str]]]:
        """WITH: a name is known to what stands behind it, and to itself where it is recursive."""
        for relation in self._listed(one.cteRelations()):
            alias = str(relation.productElement(0)).lower()
            yield relation.productElement(1), tables | {alias} if one.allowRecursion() else tables
            tables |= {alias}
        yield one.child(), tables

    def _kind(self, one: Any, name: str) -> str:
        """The simple name of a listed node, empty for other values. Raises `UsageError` for all else."""
        kind = name.rpartition(".")[2]
        if name.startswith(_PLANS):
            if kind in _NODES:
                return kind
        elif name.startswith(_VALUES):
            return ""
        if self._command.isInstance(one):
            raise UsageError("only queries are run: the statement is a command")
        raise UsageError(f"only queries over the tables of the stores are run, no {kind}")

    def _refuse_other_functions(self, one: Any, kind: str) -> None:
        """Raises `UsageError` for a function that may do more than compute from its arguments."""
        if kind == "UnresolvedGenerator":
            parts = [one.name().funcName()] if one.name().database().isEmpty() else []
        else:
            parts = list(self._listed(one.nameParts() if kind == "UnresolvedFunction" else one.name()))
        name = str(parts[-1]).lower() if parts else ""
        if len(parts) != 1 or not (name in _FUNCTIONS or self._group(name) in _GROUPS):
            raise UsageError(f"the function {'.'.join(map(str, parts))} is not one that only computes")

    def _group(self, name: str) -> str | None:
        catalyst = self._jvm.org.apache.spark.sql.catalyst
        function = catalyst.FunctionIdentifier(name)
        for registry in (catalyst.analysis.FunctionRegistry, catalyst.analysis.TableFunctionRegistry):
            found = registry.builtin().lookupFunction(function)
            if found.isDefined():
                return str(found.get().getGroup())
        return None

    def _parts(self, one: Any, name: str) -> list[Any]:
        """What a value is made of: fields of case classes, elements of collections. name: of its class."""
        if name not in self._fields:
            fields = one.productArity() if self._product.isInstance(one) else 0
            self._fields[name] = None if self._iterable.isInstance(one) else fields
        fields = self._fields[name]
        if fields is None:
            return list(self._listed(one))
        return [one.productElement(number) for number in range(fields)]

    def _listed(self, sequence: Any) -> Iterable[Any]:
        found: Iterable[Any] = self._jvm.scala.jdk.javaapi.CollectionConverters.asJava(sequence.toSeq())
        return found


def _refuse_other_tables(parts: list[str], tables: frozenset[str]) -> None:
    if len(parts) != 1 or parts[0].lower() not in tables:
        raise UsageError(f"only the tables of the stores are read, no {'.'.join(parts)}")
