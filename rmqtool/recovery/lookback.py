"""The files of the log in front of the place where recovery begins: read for the sake of the verdict only.

The start itself does not touch them, but a message in them may have a queue offset that a queue which ends
too low gives out again. Many starts may be simulated on one store: a file is read once for all that come to
the same queues.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rmqtool.broker.log_walk import BudgetEndedError
from rmqtool.check.compaction import check_compaction
from rmqtool.errors import RmqtoolError
from rmqtool.recovery.matching import Matches
from rmqtool.recovery.spans import QueueSpans
from rmqtool.recovery.witness import Witness
from rmqtool.scan.events import Gap, Records
from rmqtool.scan.fields import Field
from rmqtool.scan.opened import handed_on, scanned
from rmqtool.scan.parallel import in_order
from rmqtool.store.kinds import COMPACTION_KINDS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rmqtool.broker.mapped_files import MappedFile
    from rmqtool.check.findings import Finding
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

    matches: records against entries, by queue. by_choice: some are unread because the allowance or the time
    was over.
    """

    unread: list[str] = field(default_factory=list)
    gaps: list[tuple[str, int, int]] = field(default_factory=list)
    matches: dict[Key, Matches] = field(default_factory=dict)
    by_choice: bool = False

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
class _Front:
    """What files hold, for the starts whose queues are those that `queues` stands for.

    batches: of the topics that were asked for whether their queues are batch queues.
    """

    queues: bytes | None
    batches: dict[str, bool] = field(default_factory=dict)
    seen: dict[str, _Seen] = field(default_factory=dict)

    def is_of(self, queues: bytes | None, start: ObservedStart) -> bool:
        """Whether a start with these queues makes the same of the files."""
        same = queues is not None and queues == self.queues
        return same and all(start.spans.is_batch(topic) == batch for topic, batch in self.batches.items())


@dataclass
class LookBack:
    """allowance: bytes of data that may be read for a start, None for no bound; files behind it stay unread.

    What is told of a start does not depend on those before it, unless the time is over.
    """

    allowance: int | None = None
    _fronts: list[_Front] = field(default_factory=list)
    _is_over: bool = False
    _compaction: dict[tuple[object, ...], tuple[Finding, ...]] = field(default_factory=dict)

    def bytes_ahead(self, fronts: Iterable[tuple[object, Sequence[StoreFile]]]) -> Iterator[int]:
        """What `take` will read for one start after the other, by the files in front of each.

        Each comes with what tells its queues from those of others, as far as that is known.
        """
        counted: set[tuple[object, str]] = set()
        for queues, files in fronts:
            there = [one for one in reversed(files) if one.absent is None]
            wanted = [one for one in self._allowed(there) if (queues, one.path) not in counted]
            counted |= {(queues, one.path) for one in wanted}
            yield sum(_bytes_of(one) for one in wanted)

    def take(self, start: ObservedStart) -> Looked:
        """Adds what the files in front hold to what the start has seen. The youngest are read first."""
        files = [one for one in start.loaded[: start.first_file] if one.file is not None]
        looked = Looked()
        if not files:
            return looked
        there = [one.file for one in reversed(files) if one.file is not None and one.file.absent is None]
        allowed = {one.path for one in self._allowed(there)}
        front = self._front(start)
        wanted = [one for one in reversed(files) if one.path in allowed - front.seen.keys()]
        try:
            if not self._is_over:
                self._read(wanted, start, front)
        except BudgetEndedError:
            self._is_over = True
        for one in files:
            seen = front.seen.get(one.path) if one.path in allowed else None
            if seen is not None:
                start.spans.add(seen.spans)
                start.witness.add(seen.witness)
                looked.gaps += seen.gaps
                looked.match(seen.matches)
            if seen is None or seen.failed:
                looked.unread.append(one.path)
        looked.by_choice = bool(looked.unread) and (self._is_over or len(allowed) < len(there))
        return looked

    def compaction(self, start: ObservedStart) -> tuple[Finding, ...] | None:
        """What is wrong in compaction logs, None where they are too long for the allowance or the time."""
        files = start.store.of_kind(*COMPACTION_KINDS)
        known = (*files, start.clean)
        if known not in self._compaction:
            if self._is_over or len(list(self._allowed(files))) < len(files):
                return None
            try:
                found = check_compaction(start.store, start.reading, unclean=not start.clean)
                self._compaction[known] = tuple(found)
            except BudgetEndedError:
                self._is_over = True
                return None
        return self._compaction[known]

    def _front(self, start: ObservedStart) -> _Front:
        """What was read for starts with the queues of this one."""
        queues = start.matcher.basis()
        found = next((one for one in self._fronts if one.is_of(queues, start)), None)
        if found is None:
            found = _Front(queues)
            if queues is not None:
                self._fronts.append(found)
        return found

    def _allowed(self, files: Iterable[StoreFile]) -> Iterator[StoreFile]:
        """Those for which the allowance has room, up to the first for which it has none."""
        left = self.allowance
        for one in files:
            if left is not None:
                left -= _bytes_of(one)
                if left < 0:
                    return
            yield one

    def _read(self, files: list[MappedFile], start: ObservedStart, front: _Front) -> None:
        found: dict[str, _Seen] = {}
        reading, matcher = start.reading, start.matcher

        def is_batch(topic: str) -> bool:
            return front.batches.setdefault(topic, start.spans.is_batch(topic))

        events = in_order(
            files, lambda one, worker: _events(one, reading, worker), reading.jobs, size=lambda one: one.wrote
        )
        for one, event in events:
            seen = found.get(one.path)
            if seen is None:
                spans = QueueSpans(reading.kernels, is_batch=is_batch)
                seen = found[one.path] = _Seen(spans, Witness(reading.kernels))
            if isinstance(event, Records):
                seen.witness.take(event, one.base)
                matcher.take(event, one.base, seen.spans)
            elif isinstance(event, Gap):
                seen.gaps.append((one.path, one.base + event.position, event.length))
            else:
                seen.failed = event is not None
                seen.matches = matcher.result()
                front.seen[one.path] = seen


def _bytes_of(file: StoreFile) -> int:
    return min(file.size, file.disk_bytes)


def _events(
    one: MappedFile, reading: ReadOptions, worker: WorkerContext
) -> Iterator[tuple[MappedFile, Records | Gap | RmqtoolError | None]]:
    """Records and gaps of a file; None behind the last, or the error that ended reading."""
    if one.file is None:
        return
    done = 0
    try:
        with scanned(one.file, one.base, reading, worker=worker, false_blanks=True) as (source, scan):
            for event in scan:
                if isinstance(event, Gap):
                    yield one, event
                elif isinstance(event, Records):
                    end = int(event.rows[-1, Field.POSITION])
                    yield one, handed_on(event, source, worker)
                    reading.done(end - done)
                    done = end
    except RmqtoolError as error:
        yield one, error
        return
    reading.done(one.file.size - done)
    yield one, None
