"""The files of the log in front of the place where recovery begins: read for the sake of the verdict only.

The start itself does not touch them, but a message in them may have a queue offset that a queue which ends
too low gives out again. Many starts may be simulated on one store, each file is read once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rmqtool.broker.log_walk import BudgetEndedError
from rmqtool.errors import RmqtoolError
from rmqtool.recovery.matching import Matches
from rmqtool.recovery.spans import QueueSpans
from rmqtool.recovery.witness import Witness
from rmqtool.scan.events import Gap, Records
from rmqtool.scan.fields import Field
from rmqtool.scan.opened import handed_on, scanned
from rmqtool.scan.parallel import in_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rmqtool.broker.mapped_files import MappedFile
    from rmqtool.recovery.observed_start import ObservedStart
    from rmqtool.recovery.spans import Key
    from rmqtool.scan.options import ReadOptions
    from rmqtool.scan.parallel import WorkerContext
    from rmqtool.store.files import StoreFile

ALLOWANCE = 2 << 30
"""bytes that are read without being asked for: as much as a start may scan and still be simulated at once"""


@dataclass
class Looked:
    """unread: paths not read, or not to their end. gaps: (path, offset, length) of what is not a record.

    matches: records against entries, by queue.
    """

    unread: list[str] = field(default_factory=list)
    gaps: list[tuple[str, int, int]] = field(default_factory=list)
    matches: dict[Key, Matches] = field(default_factory=dict)

    def match(self, found: Mapping[Key, Matches]) -> None:
        """Adds what some records made of the queues."""
        for key, one in found.items():
            self.matches.setdefault(key, Matches()).add(one)


@dataclass
class _Seen:
    """What one file holds. failed: it could not be read to its end."""

    spans: QueueSpans
    witness: Witness
    gaps: list[tuple[str, int, int]] = field(default_factory=list)
    matches: dict[Key, Matches] = field(default_factory=dict)
    failed: bool = False


@dataclass
class LookBack:
    """allowance: bytes of data that may be read, None for no bound; files behind it stay unread."""

    allowance: int | None = None
    _seen: dict[str, _Seen] = field(default_factory=dict)

    @property
    def is_spent(self) -> bool:
        """Files stay unread because the allowance or the time was over."""
        return self.allowance == 0

    def bytes_ahead(self, fronts: Iterable[Sequence[StoreFile]]) -> Iterator[int]:
        """What `take` will read for one start after the other, by the files in front of each."""
        trial, counted = LookBack(self.allowance), set(self._seen)
        for files in fronts:
            there = (one for one in reversed(files) if one.path not in counted and one.absent is None)
            wanted = [one for one in there if trial.may_read(one)]
            counted |= {one.path for one in wanted}
            yield sum(min(one.size, one.disk_bytes) for one in wanted)

    def take(self, start: ObservedStart) -> Looked:
        """Adds what the files in front hold to what the start has seen. The youngest are read first."""
        files = start.loaded[: start.first_file]
        there = [one for one in files if one.file is not None and one.file.absent is None]
        wanted = [one for one in reversed(there) if one.path not in self._seen]
        try:
            self._read([one for one in wanted if self.may_read(one.file)], start)
        except BudgetEndedError:
            self.allowance = 0
        looked = Looked()
        for one in files:
            seen = self._seen.get(one.path)
            if seen is not None:
                start.spans.add(seen.spans)
                start.witness.add(seen.witness)
                looked.gaps += seen.gaps
                looked.match(seen.matches)
            if one.file is not None and (seen is None or seen.failed):
                looked.unread.append(one.path)
        return looked

    def may_read(self, file: StoreFile | None) -> bool:
        """Whether the allowance has room for a file, which is taken from it then."""
        if self.allowance is None or file is None:
            return True
        size = min(file.size, file.disk_bytes)
        if size > self.allowance:
            self.allowance = 0
            return False
        self.allowance -= size
        return True

    def _read(self, files: list[MappedFile], start: ObservedStart) -> None:
        found: dict[str, _Seen] = {}
        reading, matcher = start.reading, start.matcher
        events = in_order(
            files, lambda one, lane: _events(one, reading, lane), reading.jobs, size=lambda one: one.wrote
        )
        for one, event in events:
            seen = found.get(one.path)
            if seen is None:
                spans = QueueSpans(reading.kernels, is_batch=start.spans.is_batch)
                seen = found[one.path] = _Seen(spans, Witness(reading.kernels))
            if isinstance(event, Records):
                seen.witness.take(event, one.base)
                matcher.take(event, one.base, seen.spans)
            elif isinstance(event, Gap):
                seen.gaps.append((one.path, one.base + event.position, event.length))
            else:
                seen.failed = event is not None
                seen.matches = matcher.result()
                self._seen[one.path] = seen


def _events(
    one: MappedFile, reading: ReadOptions, lane: WorkerContext
) -> Iterator[tuple[MappedFile, Records | Gap | RmqtoolError | None]]:
    """Records and gaps of a file; None behind the last, or the error that ended reading."""
    if one.file is None:
        return
    done = 0
    try:
        with scanned(one.file, one.base, reading, lane=lane, false_blanks=True) as (source, scan):
            for event in scan:
                if isinstance(event, Gap):
                    yield one, event
                elif isinstance(event, Records):
                    end = int(event.rows[-1, Field.POSITION])
                    yield one, handed_on(event, source, lane)
                    reading.done(end - done)
                    done = end
    except RmqtoolError as error:
        yield one, error
        return
    reading.done(one.file.size - done)
    yield one, None
