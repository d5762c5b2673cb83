"""The data source `rocketmq`: stores as tables of Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

from rmqtool.pipeline.notes import send
from rmqtool.pipeline.options import SourceOptions, parse_options
from rmqtool.pipeline.planning import partitions
from rmqtool.pipeline.pushdown import narrowed
from rmqtool.pipeline.reading import batches, refuse_unreadable
from rmqtool.pipeline.stream import LogStreamReader
from rmqtool.pipeline.stream_options import parse_stream_options
from rmqtool.pipeline.types import checked_schema, chosen_schema, struct_of, to_spark

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import InputPartition
    from pyspark.sql.types import StructType

FORMAT = "rocketmq"


class RocketMQSource(DataSource):
    """`format("rocketmq")` of `spark.read` and `spark.readStream`; docs/pipeline.md has its options."""

    @classmethod
    def name(cls) -> str:
        """What `format` takes."""
        return FORMAT

    def schema(self) -> StructType:
        """The columns named by option `columns`, or the default ones of the table."""
        options = parse_stream_options(self.options).source  # whether it is a stream is not known yet
        return struct_of(chosen_schema(options.table, options.columns))

    def reader(self, schema: StructType) -> DataSourceReader:
        """A reader that takes filters with option `pushdown`.

        Not by itself: up to Spark 4.3, all queries over what one `load` gave share one reader, and filters
        that one of them pushed hold for others as well, which then lack rows. (And sessions without
        `spark.sql.python.filterPushdown.enabled` refuse such a reader.)
        """
        options = parse_options(self.options)
        return FilteredReader(options, schema) if options.pushdown else StoreReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802 - Spark's name
        """Follows the logs of stores that are being written."""
        return LogStreamReader(parse_stream_options(self.options), schema)


class StoreReader(DataSourceReader):
    """Reads what options and schema ask for."""

    def __init__(self, options: SourceOptions, schema: StructType) -> None:
        self._options = options
        self._wanted = options.wanted
        self._schema = checked_schema(options.table, schema)

    def partitions(self) -> list[InputPartition]:
        """See `planning.partitions`."""
        return partitions(self._options, self._wanted)

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """The batches of a partition, each of at most a few MiB."""
        lost: list[dict[str, Any]] = []
        skip = self._options.unreadable == "skip"
        found = batches(
            partition,
            self._options,
            self._wanted,
            self._schema.names,
            lost.append if skip else refuse_unreadable,
        )
        for batch in found:
            yield to_spark(batch, self._schema)
        if self._options.report is not None:
            store = getattr(partition, "store", None)
            send(self._options.report, [row | {"store": store} for row in lost])


class FilteredReader(StoreReader):
    """The same, and filters of the query choose segments and records."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802 - Spark's name
        """Takes what it can use; Spark applies all of them once more."""
        if self._options.table == "messages":
            self._wanted = narrowed(self._wanted, filters)
        return filters
