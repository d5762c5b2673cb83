"""Damage that lies in a store before a start, and that the start neither repairs nor makes worse."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from formats.checkpoint import TIMES
from rmqtool.broker.record_check import ORDINARY_STOPS
from rmqtool.query.lost_end import behind_end
from rmqtool.recovery.fillers import FILLER
from rmqtool.store.names import parse_base_offset

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from rmqtool.check.findings import Finding
    from rmqtool.recovery.config_tables import ConfigOutcome
    from rmqtool.recovery.lookback import Looked
    from rmqtool.recovery.loss import Loss
    from rmqtool.recovery.matching import WrongEntries
    from rmqtool.recovery.observed_start import ObservedStart
    from rmqtool.recovery.skipped_records import HiddenRecords
    from rmqtool.recovery.unbuilt_queues import UnbuiltQueue


@dataclass(frozen=True, slots=True)
class ExistingDamage:
    """What cannot be read, or not as it was sent.

    bytes: of the log, which hold no record or a damaged one. paths: files concerned. config: tables that were
    lost before.
    """

    messages: int = 0
    bytes: int = 0
    paths: tuple[str, ...] = ()
    config: tuple[str, ...] = ()

    @property
    def repairable(self) -> bool:
        """Whether `recover` has to do with it: it leaves compaction logs as they are."""
        elsewhere = any(not path.startswith("compaction/") for path in self.paths)
        return bool(self.messages or self.bytes or elsewhere)

    def __bool__(self) -> bool:
        return bool(self.messages or self.bytes or self.paths or self.config)


@dataclass
class _Sum:
    messages: int = 0
    bytes: int = 0
    paths: set[str] = field(default_factory=set)

    def add(self, messages: int, length: int, paths: Iterable[str]) -> None:
        self.messages += messages
        self.bytes += length
        self.paths.update(paths)


def existing_damage(
    start: ObservedStart,
    looked: Looked,
    hidden_records: Iterable[HiddenRecords],
    wrong: Iterable[WrongEntries],
    unbuilt: Iterable[UnbuiltQueue],
    config: Iterable[ConfigOutcome],
    loss: Loss,
    compaction: Sequence[Finding] = (),
) -> ExistingDamage:
    """What the start read, what was read besides, and the tables that are lost already."""
    found = _Sum()
    for first, end, paths in missing_files(start):
        found.add(0, end - first, paths)
    for path, _, length in looked.gaps:
        found.add(0, length, (path,))
    harmed = start.witness.harmed
    bases = {one.base: one.path for one in start.loaded}
    found.add(harmed.count, harmed.bytes, (bases[base] for base in harmed.bases if base in bases))
    if (longer := indexed_behind_end(start, loss)) is not None:
        path, end, high = longer
        found.add(0, end - high, (path,))
    if known_behind_end(start, loss) is not None:
        found.add(0, 0, ("checkpoint",))
    for one in hidden_records:
        found.add(0, FILLER, (one.path,))  # an entry of a queue still leads to what is behind it
    for entries in wrong:
        found.add(entries.messages, 0, (entries.path,))
    for queue in unbuilt:
        if not queue.dispatched:
            found.add(queue.count, 0, (queue.path,))
    found.add(0, 0, (one.path for one in compaction if one.path is not None))
    if start.end is not None and start.clean and start.end.reason not in ORDINARY_STOPS:
        # after a crash a record that was not written to its end is ordinary
        found.add(0, 0, (start.loaded[start.end.file].path,))
    lost = tuple(one.path for one in config if one.loses)
    return ExistingDamage(found.messages, found.bytes, tuple(sorted(found.paths)), lost)


def indexed_behind_end(start: ObservedStart, loss: Loss | None) -> tuple[str, int, int] | None:
    """An index file that leads behind the end of the log, how far, and that end; None without one.

    loss: what the start gives up. When there is any, the log ends behind it: the index may mean that. Without
    any, the start's end counts: what lies behind it is left from before, or no record at all.
    """
    kept = start.end is not None and (loss is None or not loss.messages)
    return behind_end(start.store, start.log.max_offset if kept else None)


def known_behind_end(start: ObservedStart, loss: Loss | None) -> int | None:
    """A store time (ms) in the checkpoint that is later than every message of the log, None without one.

    Brokers write the times of messages that lie in the log there (`CommitLog$FlushRealTimeService#run`,
    `DefaultMessageStore$FlushConsumeQueueService#doFlush`), and never read them against the end of the log.
    loss: what the start gives up, which may have that time.
    """
    latest = start.witness.latest
    if (
        start.end is None
        or latest is None
        or indexed_behind_end(start, loss) is not None
        or (loss is not None and loss.messages)
    ):
        return None
    known = max(int(start.checkpoint[name]) for name in TIMES)
    return known if known > latest else None


def missing_files(start: ObservedStart) -> Iterator[tuple[int, int, tuple[str, str]]]:
    """Physical offsets [first, end) that no file of the log covers, and what lies on both sides.

    Before the first file only where a directory has the place of one: files that have expired leave none.
    """
    for entry in start.listing.commit_log() if start.loaded else ():
        base = parse_base_offset(entry.name) if entry.file is None else None
        low = start.loaded[0]
        if base is not None and base < low.base:
            yield base, low.base, (entry.path, low.path)
            break
    for before, after in pairwise(start.loaded):
        first = before.base + start.log.size
        if after.base > first:
            yield first, after.base, (before.path, after.path)
