"""What `sql` runs: queries of its tables, with table functions that make their rows of their arguments.

DuckDB itself is locked, too (`SqlSession`). This stands in front of it, on the parsed statement: commands,
other tables, and table functions that look at files, at the program or at its settings, are not run at all.
"""

from __future__ import annotations

import json
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rmqtool.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

_QUERIES = frozenset({"SELECT", "MULTI"})
"""types of DuckDB's statements: SELECT with WITH, VALUES, DESCRIBE, SHOW and SUMMARIZE; MULTI is PIVOT"""
_TABLE_FUNCTIONS = frozenset({
    "generate_series", "histogram", "histogram_values", "icu_calendar_names", "json_each", "json_tree",
    "pg_timezone_names", "range", "repeat", "repeat_row", "summary", "test_all_types", "unnest",
})  # fmt: skip
_NODES = frozenset({
    "BASE_TABLE", "CTE_NODE", "DISTINCT_MODIFIER", "EMPTY", "EXPRESSION_LIST", "JOIN", "LIMIT_MODIFIER",
    "LIMIT_PERCENT_MODIFIER", "ORDER_MODIFIER", "PIVOT", "RECURSIVE_CTE_NODE", "SELECT_NODE",
    "SET_OPERATION_NODE", "SHOW_REF", "SUBQUERY", "TABLE_FUNCTION",
})  # fmt: skip
"""of a parsed query, beside its expressions"""
_ORDERS = frozenset({"ASCENDING", "DESCENDING", "ORDER_DEFAULT"})


def refuse_all_but_queries(duckdb: Any, database: Any, sql: str, tables: Collection[str]) -> None:
    """Raises `UsageError` unless `sql` is one query of these tables, or EXPLAIN of one."""
    statements = duckdb.extract_statements(sql)
    if len(statements) != 1:  # of several, DuckDB would show the result of the last
        raise UsageError(f"SQL holds {len(statements)} statements; give one")
    words = list(_words(duckdb, sql))
    kind = statements[0].type.name
    query = sql if kind in _QUERIES else None
    if kind == "EXPLAIN":
        query = _explained(duckdb, words)
    if query is None:
        raise UsageError("only queries are run: the statement is a command")
    parsed = _parsed(duckdb, database, query)
    if parsed is None:
        _refuse_by_words(database, words)
    else:
        _refuse_by_nodes(parsed, tables)


def _parsed(duckdb: Any, database: Any, query: str) -> list[Any] | None:
    """A query as DuckDB parses it; None where it does not tell (PIVOT), or it is too deep for Python."""
    try:
        ((told,),) = database.execute("select json_serialize_sql(?)", [query]).fetchall()
        found = json.loads(told)
    except (duckdb.Error, RecursionError):
        return None
    statements: list[Any] | None = found.get("statements")
    return statements


def _refuse_by_nodes(parsed: list[Any], tables: Collection[str]) -> None:
    """Raises `UsageError` for a node, table or table function of a parsed query that is not listed."""
    known = {one.lower() for one in tables} | {name.lower() for name in _common_tables(parsed)}
    for node in _dicts(parsed):
        kind = node.get("type")
        if "class" in node or not isinstance(kind, str) or kind in _ORDERS:
            continue
        if kind not in _NODES:
            raise UsageError(f"only queries over the tables of the store are run, no {kind}")
        if kind == "TABLE_FUNCTION":
            name = node["function"].get("function_name", "")
            if node["function"].get("class") != "FUNCTION" or name.lower() not in _TABLE_FUNCTIONS:
                raise UsageError(f"only the tables of the store are read: {name} is none of their functions")
        elif kind == "BASE_TABLE":
            place = [*filter(None, (node.get("catalog_name"), node.get("schema_name"))), node["table_name"]]
            if len(place) > 1 or place[0].lower() not in known:
                raise UsageError(f"only the tables of the store are read, no {'.'.join(place)}")


def _common_tables(parsed: list[Any]) -> Iterator[str]:
    """Names that WITH gives in a parsed query."""
    for node in _dicts(parsed):
        if isinstance(node.get("cte_map"), dict):
            yield from (one["key"] for one in node["cte_map"]["map"])
        if node.get("type") == "RECURSIVE_CTE_NODE":
            yield node["cte_name"]


def _dicts(parsed: list[Any]) -> Iterator[dict[str, Any]]:
    """Every object of parsed JSON."""
    waiting: list[Any] = list(parsed)
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield one
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


def _refuse_by_words(database: Any, words: list[str]) -> None:
    """Raises `UsageError` for a word in front of "(" that is the name of a table function not listed."""
    called = {_unquoted(word) for word, behind in pairwise(words) if behind.startswith("(")}
    asked = called - _TABLE_FUNCTIONS
    known = (
        "select function_name from duckdb_functions() where list_contains(?, function_name)"
        " and function_type in ('table', 'table_macro') order by all limit 1"
    )
    found = database.execute(known, [sorted(asked)]).fetchone() if asked else None
    if found is not None:
        raise UsageError(f"only the tables of the store are read: {found[0]} is none of their functions")


def _words(duckdb: Any, sql: str) -> Iterator[str]:
    """The words of a statement, without comments. DuckDB counts the bytes of UTF-8."""
    text = sql.encode("utf-8", "replace")
    tokens = duckdb.tokenize(sql)
    for (start, kind), (end, _) in pairwise([*tokens, (len(text), None)]):
        if kind.name != "comment":
            yield text[start:end].decode("utf-8", "replace").strip()


def _unquoted(word: str) -> str:
    return (word[1:-1].replace('""', '"') if word.startswith('"') else word).lower()


def _explained(duckdb: Any, words: list[str]) -> str | None:
    """The query that EXPLAIN is given, None for commands: EXPLAIN ANALYZE runs it."""
    behind = words[2:] if words[1].lower() == "analyze" else words[1:]
    for start in (0, behind.index(")") + 1 if ")" in behind else 0):
        query = " ".join(behind[start:])
        try:
            found = duckdb.extract_statements(query)
        except duckdb.Error:  # these are options
            continue
        return query if [one.type.name in _QUERIES for one in found] == [True] else None
    return None
