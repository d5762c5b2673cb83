"""Every record of every file, by ranges side by side."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rmqtool.repair.salvage.reading import BATCH_ROWS, LEADING_ZEROS, RecordReader
from rmqtool.repair.salvage.tables import Found, Run, joined, merged
from rmqtool.repair.salvage.tabulate import Names, Tabulator
from rmqtool.scan.parallel import in_order
from rmqtool.store.access import open_source
from rmqtool.store.holes import data_places

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rmqtool.repair.salvage.sources import Source
    from rmqtool.scan.parallel import WorkerContext
    from rmqtool.store.access import OpenMode
    from rmqtool.store.patched import BadRange

RANGE = 256 << 20
"""bytes of a file that one thread takes at once"""


@dataclass(frozen=True, slots=True)
class _Range:
    source: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Carved:
    """What begins in a range; `end`: where the last record of it ends, at least the end of the range."""

    found: Found
    end: int
    bad: list[BadRange]


class Carver:
    """Reads `files` with `jobs` threads. `names` gets the topics, queues and hosts that were met."""

    def __init__(
        self,
        files: Sequence[Source],
        names: Names,
        *,
        jobs: int = 1,
        how: OpenMode = "auto",
        advance: Callable[[int], object] | None = None,
        range_bytes: int = RANGE,
    ) -> None:
        self._files = files
        self._names = names
        self._jobs = jobs
        self._how = how
        self._advance = advance
        self._range_bytes = range_bytes

    def run(self) -> Found:
        """All runs, in the order of files and positions. Unreadable ranges go to `Source.bad`."""
        ranges = [
            _Range(number, start, min(start + self._range_bytes, file.size))
            for number, file in enumerate(self._files)
            for start in self._starts(file)
        ]
        parts: list[Found] = []
        behind = (-1, 0)
        for one, carved in zip(ranges, in_order(ranges, self._work, self._jobs), strict=True):
            source = self._files[one.source]
            reached = behind[1] if behind[0] == one.source else 0
            right = self._behind(one, reached, carved)
            source.bad = _united(source.bad, right.bad)
            parts.append(right.found)
            behind = (one.source, max(right.end, reached))
        return joined(parts)

    def _starts(self, file: Source) -> Iterator[int]:
        """Where the ranges of a file begin, without those that are holes."""
        if file.size <= self._range_bytes:
            yield from range(0, file.size, self._range_bytes)
            return
        with open_source(file.location, "pread", name=file.path) as source:
            yield from data_places(source, 0, file.size, self._range_bytes, LEADING_ZEROS)

    def _behind(self, one: _Range, reached: int, carved: _Carved) -> _Carved:
        """The range without what lies in a record that begins before it and ends at `reached`."""
        runs = carved.found.runs
        if len(runs) == 0 or runs[0, Run.POSITION] >= reached:
            return carved
        return next(self._work(_Range(one.source, reached, max(one.end, reached)), None))

    def _work(self, one: _Range, worker: WorkerContext | None) -> Iterator[_Carved]:
        stop = None if worker is None else worker.stop
        advance = None if worker is None else self._advance
        with RecordReader(self._files[one.source], self._how, stop) as reader:
            tabulator = Tabulator(self._names, reader.kernels, BATCH_ROWS)
            tables = [
                tabulator.table(batch, one.source)
                for batch in reader.records(one.start, one.end, advance=advance)
            ]
            yield _Carved(merged(joined(tables)), reader.at, list(reader.source.unreadable))


def _united(known: list[BadRange], more: list[BadRange]) -> list[BadRange]:
    """Both lists by position; what two ranges of a file share is named once."""
    united: list[BadRange] = []
    for one in sorted([*known, *more], key=lambda bad: (bad.start, bad.end)):
        last = united[-1] if united else None
        if last is not None and one.reason == last.reason and one.start <= last.end:
            united[-1] = type(one)(last.start, max(last.end, one.end), one.reason)
        else:
            united.append(one)
    return united
