"""`sql` over many stores: Spark's SQL over the tables of the data source, of the columns that it needs."""

from __future__ import annotations

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
from rmqtool.pipeline.types import TABLES, default_columns
from rmqtool.pipeline.workers import refuse_workers
from rmqtool.query.sql import derived

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from rmqtool.pipeline.options import SourceOptions
    from rmqtool.store.layout import Store

    Row = dict[str, Any]

_COMMAND = "org.apache.spark.sql.catalyst.plans.logical.Command"
_LARGE = ("messages", "consumequeue", "index_items")


@dataclass
class SqlResult:
    """A result, which lies on the executors' disks. not_covered: what could not be read, with its store."""

    frame: DataFrame
    not_covered: list[Row]


@contextmanager
def sql(
    session: SparkSession, options: SourceOptions, stores: Mapping[str, Store], statement: str
) -> Iterator[SqlResult]:
    """One query over `messages`, `consumequeue`, `index_items`, `consumer_offsets`, `topics`.

    Every table has a column `store`. Raises `UsageError` for what Spark does not understand, and for
    statements that are no query.
    """
    session.dataSource.register(RocketMQSource)
    host = str(session.conf.get("spark.driver.host", "127.0.0.1"))
    with Listener(host) as listener, told():
        _refuse_commands(session, statement)
        for name in _LARGE:
            _view(session, options, listener, name, None)
        for name, schema, make in (
            ("consumer_offsets", derived.CONSUMER_OFFSETS, derived.consumer_offsets),
            ("topics", derived.TOPICS, derived.topics),
        ):
            session.createDataFrame(_of_stores(stores, schema, make)).createOrReplaceTempView(name)
        used = _used(session.sql(statement))
        frame, lost = _Query(session, options, listener, statement, used).made()
        yield SqlResult(frame, [*lost, *listener.rows])
        frame.unpersist()


@contextmanager
def told() -> Iterator[None]:
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
    """A statement over the stores of `options`. used: how it looks at each table."""

    session: SparkSession
    options: SourceOptions
    listener: Listener
    statement: str
    used: Mapping[str, _Use]

    def made(self) -> tuple[DataFrame, list[Row]]:
        """The result, made but not fetched, and the stores that it lacks since their tasks fail each time."""
        from pyspark import StorageLevel

        options = self.options
        lost: list[Row] = []
        while True:
            for table, use in self.used.items():
                _view(self.session, options, self.listener, table, use)
            frame = self.session.sql(self.statement).persist(StorageLevel.DISK_ONLY)
            try:
                frame.count()
            except spark_errors() as error:
                refuse_workers(error)
                frame.unpersist()
                failing = self._failing(options)
                if not failing:
                    raise
                lost += [lost_store(why) | {"store": path} for path, why in failing.items()]
                rest = tuple(path for path in options.paths if path not in failing)
                options = replace(options, paths=rest)
                continue
            return frame, lost

    def _failing(self, options: SourceOptions) -> dict[str, Lost]:
        """The stores whose tables no task can read."""
        with ThreadPoolExecutor(2 * parallelism(self.session)) as pool:
            tried = pool.map(partial(self._try, options), options.paths)
            return {path: why for path, why in zip(options.paths, tried, strict=True) if why is not None}

    def _try(self, options: SourceOptions, path: str) -> Lost | None:
        alone = replace(options, paths=(path,))
        try:
            for table, use in self.used.items():
                read = _table(self.session, alone, self.listener, table, use)
                read.write.format("noop").mode("overwrite").save()
        except spark_errors() as error:
            return Lost(first_line(error))
        return None


def _view(
    session: SparkSession, options: SourceOptions, listener: Listener, table: str, use: _Use | None
) -> None:
    _table(session, options, listener, table, use).createOrReplaceTempView(table)


def _table(
    session: SparkSession, options: SourceOptions, listener: Listener, table: str, use: _Use | None
) -> DataFrame:
    import json

    reader = session.read.format(FORMAT).option("table", table).option("unreadable", "skip")
    reader = reader.option("paths", json.dumps(list(options.paths))).option("report", listener.address)
    if options.part_bytes is not None:
        reader = reader.option("part_bytes", str(options.part_bytes))
    if options.store_config is not None:
        reader = reader.option("store_config", options.store_config)
    if use is not None and use.places == 1:
        reader = reader.option("pushdown", "true")  # with more, see `RocketMQSource.reader`
    names = [*default_columns(table), *_more(table)] if use is None else use.columns
    return reader.option("columns", ",".join(names)).load()


def _more(table: str) -> tuple[str, ...]:
    """Columns that the local tables have besides the default ones."""
    return ("plain_body", "body_sha256", "plain_body_sha256") if table == "messages" else ()


def _of_stores(stores: Mapping[str, Store], schema: pa.Schema, make: Any) -> pa.Table:
    """A small table of all stores, with the column `store`."""
    parts = []
    for path, store in stores.items():
        made = make(store)
        parts.append(made.append_column("store", pa.repeat(pa.scalar(path, pa.string()), made.num_rows)))
    return pa.concat_tables(parts) if parts else schema.empty_table()


def _refuse_commands(session: SparkSession, statement: str) -> None:
    """Nothing is written, and nothing but the stores is read."""
    plan = session._jsparkSession.sessionState().sqlParser().parsePlan(statement)  # noqa: SLF001
    command = plan.getClass().getClassLoader().loadClass(_COMMAND)
    for node in _nodes(plan):
        name = node.getClass().getName()
        if command.isInstance(node) or name.rpartition(".")[2] in {
            "InsertIntoStatement",
            "CreateTableAsSelect",
        }:
            raise UsageError("only queries are run: the statement is a command")
        if name.endswith(".UnresolvedRelation") and node.multipartIdentifier().size() > 1:
            raise UsageError("only the tables of the stores are read")


def _nodes(plan: Any) -> Iterator[Any]:
    """A plan with all that is in it, also in WITH and in subqueries."""
    yield plan
    for children in (plan.children(), plan.innerChildren()):
        for number in range(children.size()):
            yield from _nodes(children.apply(number))


def _used(frame: DataFrame) -> dict[str, _Use]:
    """Table → what the plan of a query wants of it; Spark asks a source for all columns always."""
    plan = frame._jdf.queryExecution().optimizedPlan()  # noqa: SLF001
    wanted: set[int] = set()
    leaves: list[Any] = []
    for node in _nodes(plan):
        if node.children().size() == 0:
            leaves.append(node)
        attributes = node.references().toSeq()
        wanted |= {attributes.apply(one).exprId().id() for one in range(attributes.size())}
    output = plan.output()
    wanted |= {output.apply(one).exprId().id() for one in range(output.size())}
    used: dict[str, set[str]] = {}
    places: Counter[str] = Counter()
    for leaf in leaves:
        table = _table_of(leaf)
        if table is not None:
            places[table] += 1
            columns = leaf.output()
            every = [columns.apply(one) for one in range(columns.size())]
            used.setdefault(table, set()).update(one.name() for one in every if one.exprId().id() in wanted)
    return {
        table: _Use([name for name in TABLES[table].names if name in names] or ["store"], places[table])
        for table, names in used.items()
    }


def _table_of(leaf: Any) -> str | None:
    """The table that a leaf of a plan reads, by the option of its source."""
    if not leaf.getClass().getName().endswith((".DataSourceV2ScanRelation", ".DataSourceV2Relation")):
        return None
    relation = leaf.relation() if leaf.getClass().getName().endswith("ScanRelation") else leaf
    return str(relation.options().get("table"))
