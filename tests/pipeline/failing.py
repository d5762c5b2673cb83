"""Work for tasks that goes wrong; tasks import it by name."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rmqtool.build.index_cut import IndexShare
from rmqtool.errors import StoreIOError
from rmqtool.pipeline.keys.probing import ScanTask
from rmqtool.pipeline.keys.tasks import KeyTask
from rmqtool.pipeline.options import parse_options
from rmqtool.pipeline.planning import LogPartition
from rmqtool.pipeline.rebuild_tasks import Bucket, BuildTask, Built
from rmqtool.pipeline.source import FilteredReader, RocketMQSource, StoreReader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import pyarrow as pa
    from pyspark.sql.datasource import DataSourceReader, InputPartition
    from pyspark.sql.types import StructType

    from rmqtool.pipeline.keys.key_request import Unit


def work(item: str) -> str:
    """`dies` kills its worker each time, `once:FILE` the first time, `executor:FILE` the executor, once."""
    kind, _, name = item.partition(":")
    if kind == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "once" and _first(Path(name)):
        os.kill(os.getpid(), signal.SIGKILL)
    if kind == "executor" and _first(Path(name)):
        os.kill(java_of(os.getpid()), signal.SIGKILL)
    if kind == "refused":
        raise StoreIOError(f"{name}: Permission denied")
    return item.upper()


def _first(marker: Path) -> bool:
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def java_of(process: int) -> int:
    """The Java process that a Python worker belongs to."""
    while True:
        status = Path(f"/proc/{process}/status").read_text()
        process = int(status.split("PPid:")[1].split()[0])
        if "java" in os.readlink(f"/proc/{process}/exe"):
            return process


class DyingIndex(BuildTask):
    """Kills its worker where it is to build an index file."""

    def __call__(self, share: Bucket | IndexShare) -> Built:
        """Never comes back for an index file."""
        if isinstance(share, IndexShare):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(share)


DYING = "v498-basic"
"""the golden whose tasks die"""


def _dies(unit: Unit) -> bool:
    return DYING in unit.store and (unit.part is None or unit.part.segment.base == 0)


class DyingKeys(KeyTask):
    """Kills its worker in the index of the store `DYING`, and in its first segment."""

    def __call__(self, unit: Unit) -> Iterator[pa.RecordBatch]:
        """Rows of other units."""
        if _dies(unit):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(unit)


class DyingScan(ScanTask):
    """The same of a shuffle join."""

    def __call__(self, unit: Unit) -> Iterator[pa.RecordBatch]:
        """Rows of other units."""
        if _dies(unit):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(unit)


DYING_TASKS = {"KeyTask": DyingKeys, "ScanTask": DyingScan}


class DyingReader(StoreReader):
    """Kills its worker in the store `DYING`."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Batches of other stores."""
        if DYING in getattr(partition, "store", ""):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().read(partition)


class DyingSource(RocketMQSource):
    """The data source with that reader."""

    def reader(self, schema: StructType) -> DataSourceReader:
        """Without filters."""
        return DyingReader(parse_options(self.options), schema)


def dying(rows: Iterable[Any], segments: Any) -> Iterator[Any]:
    """Kills its worker in the place of `judge_keys`."""
    os.kill(os.getpid(), signal.SIGKILL)
    yield from (rows, segments)


class OnlyLastPlain(StoreReader):
    """Refuses segments in front of the last one of the golden `DYING`."""

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Batches of the last segment."""
        if isinstance(partition, LogPartition) and partition.part.segment.base < 98304:
            raise StoreIOError("a segment in front is read")
        return super().read(partition)


class OnlyLastReader(OnlyLastPlain, FilteredReader):
    """The same, and it takes filters."""


class OnlyLast(RocketMQSource):
    """The data source with that reader."""

    def reader(self, schema: StructType) -> DataSourceReader:
        """With filters where they are asked for."""
        options = parse_options(self.options)
        return (OnlyLastReader if options.pushdown else OnlyLastPlain)(options, schema)
