"""`sql` over many stores: Spark's SQL over the tables of the data source, of the columns that it needs."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rmqtool.errors import RmqtoolError, UsageError
from rmqtool.pipeline.notes import Listener
from rmqtool.pipeline.runner import spark_errors
from rmqtool.pipeline.session import first_line
from rmqtool.pipeline.source import FORMAT, RocketMQSource
from rmqtool.pipeline.types import TABLES, default_columns
from rmqtool.query.sql import derived

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from rmqtool.pipeline.options import SourceOptions
    from rmqtool.store.layout import Store

    Row = dict[str, Any]

_LARGE = ("messages", "consumequeue", "index_items")


@dataclass
class SqlResult:
    """A result: a table of Spark that is read while the listener hears what tasks could not read."""

    frame: DataFrame
    listener: Listener

    @property
    def not_covered(self) -> list[Row]:
        """What was damaged or could not be read so far, each with its store."""
        return self.listener.rows


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
        used = _columns_used(session.sql(statement))
        for name, columns in used.items():
            _view(session, options, listener, name, columns)
        yield SqlResult(session.sql(statement), listener)


@contextmanager
def told() -> Iterator[None]:
    """What Spark complains about is one line of `UsageError`."""
    try:
        yield
    except RmqtoolError:
        raise
    except spark_errors() as error:
        raise UsageError(first_line(error)) from error


def _view(
    session: SparkSession, options: SourceOptions, listener: Listener, table: str, columns: list[str] | None
) -> None:
    import json

    reader = session.read.format(FORMAT).option("table", table).option("unreadable", "skip")
    reader = reader.option("paths", json.dumps(list(options.paths))).option("report", listener.address)
    reader = reader.option("part_bytes", str(options.part_bytes))
    if options.store_config is not None:
        reader = reader.option("store_config", options.store_config)
    names = columns or [*default_columns(table), *_more(table)]
    reader.option("columns", ",".join(names)).load().createOrReplaceTempView(table)


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
    for node in _nodes(plan):
        name = node.getClass().getName()
        if ".command." in name or name.rpartition(".")[2] in {"InsertIntoStatement", "CreateTableAsSelect"}:
            raise UsageError("only queries are run: the statement is a command")
        if name.endswith(".UnresolvedRelation") and node.multipartIdentifier().size() > 1:
            raise UsageError("only the tables of the stores are read")


def _nodes(plan: Any) -> Iterator[Any]:
    yield plan
    children = plan.children()
    for number in range(children.size()):
        yield from _nodes(children.apply(number))


def _columns_used(frame: DataFrame) -> dict[str, list[str]]:
    """Table → columns that the plan of a query looks at; Spark asks a source for all of them always."""
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
    for leaf in leaves:
        table = _table_of(leaf)
        if table is not None:
            columns = leaf.output()
            every = [columns.apply(one) for one in range(columns.size())]
            used.setdefault(table, set()).update(one.name() for one in every if one.exprId().id() in wanted)
    return {
        table: [name for name in TABLES[table].names if name in names] or ["store"]
        for table, names in used.items()
    }


def _table_of(leaf: Any) -> str | None:
    """The table that a leaf of a plan reads, by the option of its source."""
    if not leaf.getClass().getName().endswith((".DataSourceV2ScanRelation", ".DataSourceV2Relation")):
        return None
    relation = leaf.relation() if leaf.getClass().getName().endswith("ScanRelation") else leaf
    return str(relation.options().get("table"))
