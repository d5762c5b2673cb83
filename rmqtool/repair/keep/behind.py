"""Messages of which only entries are left: the log was longer than it is, at its end or in front."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rmqtool.repair.keep.queue_files import by_base, units_of
from rmqtool.repair.plan_words import counted
from rmqtool.scan.units import BATCH_UNIT, UNIT
from rmqtool.store.kinds import FileKind

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    import numpy.typing as npt

    from rmqtool.broker.file_rules import FileRules
    from rmqtool.build.queues import BuiltQueue
    from rmqtool.store.layout import Queue, Store

    Key = tuple[str, int]

_FAR = 1 << 39
"""bytes behind the end of a log from which on an offset is noise"""


@dataclass(frozen=True)
class OnlyEntries:
    """Entries, of so many queues, without records; the messages and bytes that they tell of."""

    entries: int = 0
    queues: int = 0
    messages: int = 0
    bytes: int = 0

    def behind_notes(self, end: int) -> list[str]:
        """What a plan says of those that lead behind the log, which ends at `end`."""
        words = f"the log was longer: {self._lead} behind its end at {end}"
        return [f"{words}; these messages are lost, and new ones get their queue offsets"] * bool(
            self.entries
        )

    def front_notes(self, begin: int, emptied: int) -> list[str]:
        """What a plan says of so many segments in front of the log, which begins at `begin`."""
        words = f"segments in front of the log, which begins at {begin}, hold no record"
        if self.entries:
            return [f"{words}: {self._lead} into them; these messages are lost"]
        unknown = (
            f"{words} ({counted(emptied, 'segment')}); no consume queue entry shows whether they ever did"
        )
        return [unknown] * bool(emptied)

    @property
    def _lead(self) -> str:
        lead = "consume queue entry leads" if self.entries == 1 else "consume queue entries lead"
        return f"in {counted(self.queues, 'queue')} {self.entries} {lead}"


def behind_log(
    store: Store,
    end: int,
    built: Mapping[Key, BuiltQueue],
    left: Collection[Key],
    rules: FileRules,
) -> OnlyEntries:
    """What lies at the end of queues, behind the last entry that leads into the log, which ends at `end`.

    An entry at the queue offset of a record that the log has is wrong, whatever it leads to. left: queues
    whose records do not tell the places of entries.
    """
    entries = queues = 0
    offsets, lengths = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for queue, unit, size in _queues(store, rules):
        stays = (queue.topic, queue.queue_id) in left
        if queue.topic is None or queue.queue_id is None or (stays and unit is not UNIT):
            continue
        of_log = built.get((queue.topic, queue.queue_id))
        below = of_log.next_slot if of_log is not None and unit is UNIT and not stays else 0
        found = 0
        for base, file in reversed(by_base(queue, size).items()):
            units = units_of(file, unit, size)
            part = _trailing(units[max(below - base // unit.itemsize, 0) :], end)
            found += len(part)
            offsets.append(part["physical_offset"].astype(np.int64))
            lengths.append(part["size"].astype(np.int64))
            if len(part) < np.count_nonzero(units["size"]):
                break
        entries, queues = entries + found, queues + bool(found)
    return _only_entries(entries, queues, offsets, lengths)


def front_of_log(
    store: Store, begin: int, emptied: Collection[tuple[int, int]], rules: FileRules
) -> OnlyEntries:
    """Entries that lead into segments in front of the log, which begins at `begin`, that hold no record.

    emptied: begin and end of these; what expiry has deleted is none of them.
    """
    entries = queues = 0
    offsets, lengths = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    if not emptied:
        return OnlyEntries()
    starts, ends = np.array(sorted(emptied), np.int64).T
    for queue, unit, size in _queues(store, rules):
        found = 0
        for file in by_base(queue, size).values():
            units = units_of(file, unit, size)
            used = units[units["size"] > 0]
            places = used["physical_offset"].astype(np.int64)
            inside = np.searchsorted(starts, places, "right") > np.searchsorted(ends, places, "right")
            found += int(inside.sum())
            offsets.append(places[inside])
            lengths.append(used["size"][inside].astype(np.int64))
            if len(places) and places[-1] >= begin:
                break
        entries, queues = entries + found, queues + bool(found)
    return _only_entries(entries, queues, offsets, lengths)


def _queues(store: Store, rules: FileRules) -> Iterator[tuple[Queue, np.dtype[Any], int]]:
    """Queues, with the type of their units and the size of their files."""
    for kind, unit, size in (
        (FileKind.CONSUMEQUEUE, UNIT, rules.consume_queue_size),
        (FileKind.BATCHCONSUMEQUEUE, BATCH_UNIT, rules.batch_queue_size),
    ):
        for queue in store.queues(kind):
            yield queue, unit, size


def _only_entries(
    entries: int, queues: int, offsets: list[npt.NDArray[np.int64]], lengths: list[npt.NDArray[np.int64]]
) -> OnlyEntries:
    """Light queues and units of several topics lead to one record."""
    each, first = np.unique(np.concatenate(offsets), return_index=True)
    return OnlyEntries(entries, queues, len(each), int(np.concatenate(lengths)[first].sum()))


def _trailing(units: npt.NDArray[Any], end: int) -> npt.NDArray[Any]:
    """The last of the entries in use, as many as lead behind `end`, each further than the one before."""
    used = units[units["size"] != 0]
    offsets = used["physical_offset"].astype(np.int64)
    wrong = (offsets < end) | (offsets - end > _FAR) | (used["size"] < 0)
    wrong[:-1] |= np.diff(offsets) <= 0
    last: npt.NDArray[Any] = used[int(np.flatnonzero(wrong)[-1]) + 1 if wrong.any() else 0 :]
    return last
