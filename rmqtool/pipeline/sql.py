"""`sql` over many stores: Spark's SQL over the tables of the data source, of the columns that it needs."""

from __future__ import annotations

import json
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rmqtool.errors import RmqtoolError, UsageError
from rmqtool.pipeline.notes import Listener
from rmqtool.pipeline.runner import Lost, lost_store, spark_errors
from rmqtool.pipeline.session import first_line, parallelism
from rmqtool.pipeline.source import FORMAT, RocketMQSource
from rmqtool.pipeline.sql_allowed import refuse_all_but_queries
from rmqtool.pipeline.types import chosen_schema, default_columns, struct_of
from rmqtool.pipeline.workers import refuse_workers
from rmqtool.query.sql import derived
from rmqtool.store.names import as_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from rmqtool.pipeline.options import SourceOptions
    from rmqtool.store.layout import Store

    Row = dict[str, Any]

_LARGE = ("messages", "consumequeue", "index_items")
_SMALL = {
    "consumer_offsets": (derived.CONSUMER_OFFSETS, derived.consumer_offsets),
    "topics": (derived.TOPICS, derived.topics),
}


@dataclass
class SqlResult:
    """A result, which lies on the executors' disks.

    tables: names of those that the statement reads. not_covered: what could not be read, with its store.
    """

    frame: DataFrame
    tables: frozenset[str]
    not_covered: list[Row]


@contextmanager
def sql(
    session: SparkSession, options: SourceOptions, stores: Mapping[str, Store], statement: str
) -> Iterator[SqlResult]:
    """One query over `messages`, `consumequeue`, `index_items`, `consumer_offsets`, `topics`.

    Every table has a column `store`. Raises `UsageError` for what Spark does not understand, and for
    statements that are not queries over these tables (`sql_allowed`). Views and functions of `session` are
    not seen, and it gets none.
    """
    host = str(session.conf.get("spark.driver.host", "127.0.0.1"))
    own = session.newSession()
    own.conf.set("spark.sql.variable.substitute", "false")  # ${env:NAME} is a variable of the driver
    own.dataSource.register(RocketMQSource)
    with Listener(host) as listener, one_line_errors():
        refuse_all_but_queries(own, statement, (*_LARGE, *_SMALL))
        for name, (schema, make) in _SMALL.items():
            own.createDataFrame(_of_stores(stores, schema, make)).createOrReplaceTempView(name)
        frame, lost = _Query(own, listener, statement).run(options)
        yield SqlResult(frame, _tables(frame), [*lost, *listener.rows])
        frame.unpersist()


@contextmanager
def one_line_errors() -> Iterator[None]:
    """What Spark complains about is one line of `UsageError`."""
    try:
        yield
    except RmqtoolError:
        raise
    except spark_errors() as error:
        refuse_workers(error)
        raise UsageError(first_line(error)) from error


@dataclass(frozen=True)
class _Use:
    """Columns of a table that a statement looks at, and in how many places it reads the table."""

    columns: list[str]
    places: int


@dataclass(frozen=True)
class _Query:
    """A statement over the large tables, which are made of the columns that it uses."""

    session: SparkSession
    listener: Listener
    statement: str

    def run(self, options: SourceOptions) -> tuple[DataFrame, list[Row]]:
        """The result, persisted, and the stores that it lacks: those that are gone, or fail every task."""
        from pyspark import StorageLevel

        lost: list[Row] = []
        while True:
            used = {table: _Use(["store"], 0) for table in _LARGE}
            frame = None
            try:
                used = self._analyse(options)
                self._make_views(options, used)
                frame = self.session.sql(self.statement).persist(StorageLevel.DISK_ONLY)
                frame.count()
            except spark_errors() as error:
                refuse_workers(error)
                if frame is not None:
                    frame.unpersist()
                failing = self._failing(options, used)
                if not failing:
                    raise
                lost += [lost_store(why) | {"store": path} for path, why in failing.items()]
                rest = tuple(path for path in options.paths if path not in failing)
                options = replace(options, paths=rest)
                continue
            return frame, lost

    def _analyse(self, options: SourceOptions) -> dict[str, _Use]:
        """What the statement reads, by its plan over views that have all columns."""
        for table in _LARGE:
            self._load(options, table, _columns(table)).createOrReplaceTempView(table)
        return _used(self.session.sql(self.statement))

    def _make_views(self, options: SourceOptions, used: Mapping[str, _Use]) -> None:
        """The tables with all columns; only those in use are read, `*` means the same."""
        for table, use in used.items():
            read = self._load(options, table, use.columns, pushdown=use.places == 1)
            _with_nulls(read, table).createOrReplaceTempView(table)

    def _failing(self, options: SourceOptions, used: Mapping[str, _Use]) -> dict[str, Lost]:
        """The stores that cannot be listed, or whose tables no task can read."""
        with ThreadPoolExecutor(2 * parallelism(self.session)) as pool:
            tried = pool.map(partial(self._try, options, used), options.paths)
            return {path: why for path, why in zip(options.paths, tried, strict=True) if why is not None}

    def _try(self, options: SourceOptions, used: Mapping[str, _Use], path: str) -> Lost | None:
        alone = replace(options, paths=(path,))
        try:
            for table, use in used.items():
                self._load(alone, table, use.columns).write.format("noop").mode("overwrite").save()
        except spark_errors() as error:
            return Lost(first_line(error))
        return None

    def _load(
        self, options: SourceOptions, table: str, columns: list[str], *, pushdown: bool = False
    ) -> DataFrame:
        """A table. pushdown: only where one place reads it, see `RocketMQSource.reader`."""
        reader = self.session.read.format(FORMAT).option("table", table).option("unreadable", "skip")
        reader = reader.option("paths", json.dumps(options.paths)).option("report", self.listener.address)
        if options.part_bytes is not None:
            reader = reader.option("part_bytes", str(options.part_bytes))
        if options.store_config is not None:
            reader = reader.option("store_config", options.store_config)
        if pushdown:
            reader = reader.option("pushdown", "true")
        return reader.option("columns", ",".join(columns)).load()


def _columns(table: str) -> list[str]:
    """What a statement may name: the columns of the local tables."""
    more = ("plain_body", "body_sha256", "plain_body_sha256") if table == "messages" else ()
    return [*default_columns(table), *more]


def _with_nulls(frame: DataFrame, table: str) -> DataFrame:
    """All columns of a table, those that `frame` does not read as nulls of their type."""
    from pyspark.sql.functions import col, lit

    every = struct_of(chosen_schema(table, _columns(table)))
    return frame.select(
        [
            col(one.name) if one.name in frame.columns else lit(None).cast(one.dataType).alias(one.name)
            for one in every
        ]
    )


def _of_stores(stores: Mapping[str, Store], schema: pa.Schema, make: Any) -> pa.Table:
    """A small table of all stores, with the column `store`, in one chunk: Spark stops at an empty one."""
    parts = [schema.empty_table().append_column("store", pa.array([], pa.string()))]
    for path, store in stores.items():
        made = make(store)
        parts.append(made.append_column("store", pa.repeat(as_text(path), made.num_rows)))
    return pa.concat_tables(parts).combine_chunks()


def _nodes(plan: Any) -> Iterator[Any]:
    """A plan with all that is in it, also in WITH and in subqueries."""
    yield plan
    for children in (plan.children(), plan.innerChildren()):
        for number in range(children.size()):
            yield from _nodes(children.apply(number))


def _tables(frame: DataFrame) -> frozenset[str]:
    """The views that a query reads; a name in WITH is none."""
    nodes = _nodes(frame._jdf.queryExecution().analyzed())  # noqa: SLF001
    views = (one for one in nodes if one.getClass().getName().endswith(".logical.View"))
    return frozenset(str(one.desc().identifier().table()) for one in views)


def _used(frame: DataFrame) -> dict[str, _Use]:
    """Table → what the plan of a query wants of it; Spark asks a source for all columns always."""
    used: dict[str, set[str]] = {}
    places: Counter[str] = Counter()
    for leaf, wanted in _leaves(frame._jdf.queryExecution().optimizedPlan(), None):  # noqa: SLF001
        table = _table_of(leaf)
        if table is not None:
            places[table] += 1
            every = _elements(leaf.output())
            names = (one.name() for one in every if wanted is None or one.exprId().id() in wanted)
            used.setdefault(table, set()).update(names)
    return {
        table: _Use([name for name in _columns(table) if name in names] or ["store"], places[table])
        for table, names in used.items()
    }


def _leaves(node: Any, wanted: frozenset[int] | None) -> Iterator[tuple[Any, frozenset[int] | None]]:
    """The leaves of an optimized plan, each with the ids of the columns that the plan reads of it.

    wanted: what the nodes above read of `node`; None for all its columns. Only projections, aggregates and
    filters say by their expressions what they read; others, such as UNION, go by the place of a column. (The
    optimizer has put projections below those that do not need all.)
    """
    for number in range(node.innerChildren().size()):
        yield from _leaves(node.innerChildren().apply(number), None)
    if not node.children().size():
        yield node, wanted
        return
    name = node.getClass().getSimpleName()
    reads = frozenset(one.exprId().id() for one in _elements(node.references().toSeq()))
    below = None
    if name in {"Project", "Aggregate"}:
        below = reads
    elif name == "Filter" and wanted is not None:
        below = wanted | reads
    for number in range(node.children().size()):
        yield from _leaves(node.children().apply(number), below)


def _elements(sequence: Any) -> list[Any]:
    return [sequence.apply(number) for number in range(sequence.size())]


def _table_of(leaf: Any) -> str | None:
    """The table that a leaf of a plan reads, by the option of its source."""
    if not leaf.getClass().getName().endswith((".DataSourceV2ScanRelation", ".DataSourceV2Relation")):
        return None
    relation = leaf.relation() if leaf.getClass().getName().endswith("ScanRelation") else leaf
    return str(relation.options().get("table"))
