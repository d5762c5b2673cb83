"""Reading sources again: bytes of a place, records of a run."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.errors import UnreadableError
from rmqtool.repair.salvage.moved import Why, moved_rows, none_moved
from rmqtool.repair.salvage.reading import BATCH_ROWS, RecordReader
from rmqtool.repair.salvage.tables import Found, Run, joined, merged
from rmqtool.repair.salvage.tabulate import Tabulator
from rmqtool.store.access import open_source
from rmqtool.store.patched import ZeroFilledSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from types import TracebackType
    from typing import Self

    import numpy.typing as npt

    from rmqtool.repair.salvage.sources import Source
    from rmqtool.repair.salvage.tabulate import Names
    from rmqtool.scan.events import Records
    from rmqtool.store.access import OpenMode

    Ints = npt.NDArray[np.int64]
    Bytes = npt.NDArray[np.uint8]

OPEN_AT_ONCE = 64
CHUNK = 4 << 20


class Files:
    """The sources of a salvage, opened as they are needed. Used as a context manager by one thread."""

    def __init__(self, sources: Sequence[Source], names: Names, how: OpenMode = "auto") -> None:
        self.sources = sources
        self.names = names
        self._how = how
        self._open: OrderedDict[int, ZeroFilledSource] = OrderedDict()

    def bytes_at(self, source: int, position: int, length: int) -> Bytes:
        """A copy of so many bytes of a source, which could be read before.

        Raises `UnreadableError` where they no longer can: a store with zeros in place of records would look
        whole.
        """
        opened = self._open.get(source)
        if opened is None:
            file = self.sources[source]
            opened = ZeroFilledSource(open_source(file.location, self._how, name=file.path), file.size)
            self._open[source] = opened
            if len(self._open) > OPEN_AT_ONCE:
                self._open.popitem(last=False)[1].close()
        self._open.move_to_end(source)
        while True:
            taken = opened.window(position, length).copy()
            if opened.had_fault():
                continue
            for bad in opened.unreadable_in(position, position + length):
                raise UnreadableError(
                    opened.name, bad.start, bad.length, f"{bad.reason}, after records were found there"
                )
            return taken

    def same(self, one: tuple[int, int], other: tuple[int, int], length: int) -> bool:
        """Whether two places (source, position) have the same bytes."""
        for start in range(0, length, CHUNK):
            size = min(CHUNK, length - start)
            mine = self.bytes_at(one[0], one[1] + start, size)
            if not np.array_equal(mine, self.bytes_at(other[0], other[1] + start, size)):
                return False
        return True

    def batches(self, run: Ints) -> Iterator[tuple[Records, RecordReader]]:
        """The records of a run (a row of `Run`) once more."""
        start = int(run[Run.POSITION])
        with RecordReader(self.sources[run[Run.SOURCE]], self._how) as reader:
            end = start + int(run[Run.LENGTH])
            for batch in reader.records(start, end, follows=int(run[Run.OFFSET])):
                yield batch, reader

    def divided(self, run: Ints, verdict: Callable[[Records, Ints], Ints]) -> tuple[Found, Ints]:
        """The run without what does not stay: the runs that are left, and the others as rows of `Moved`.

        verdict: `Why` of each record, from the batch and the number of each record's partition.
        """
        kept: list[Found] = []
        gone = [none_moved()]
        source = int(run[Run.SOURCE])
        tabulator: Tabulator | None = None
        for batch, reader in self.batches(run):
            tabulator = tabulator or Tabulator(self.names, reader.kernels, BATCH_ROWS)
            partitions = tabulator.partitions_of(batch)
            why = verdict(batch, partitions)
            stay = why == Why.STAYS
            gone.append(moved_rows(batch, source, partitions, int(run[Run.HOST]), why)[~stay])
            if stay.any():
                kept.append(
                    tabulator.table(type(batch)(batch.rows[stay], batch.window, batch.origin), source)
                )
        left = joined(kept)
        left.runs[:, Run.HOST] = run[Run.HOST]
        return merged(left), np.concatenate(gone)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for source in self._open.values():
            source.close()
        self._open.clear()
