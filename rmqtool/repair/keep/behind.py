"""Messages of which only entries are left: the log was longer than it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from rmqtool.repair.keep.queue_files import by_base, units_of
from rmqtool.repair.plan_words import counted
from rmqtool.scan.units import BATCH_UNIT, UNIT
from rmqtool.store.kinds import FileKind

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    import numpy.typing as npt

    from rmqtool.build.queues import BuiltQueue
    from rmqtool.store.layout import Store

    Key = tuple[str, int]

_FAR = 1 << 39
"""bytes behind the end of a log from which on an offset is noise"""
_UNITS = {FileKind.CONSUMEQUEUE: UNIT, FileKind.BATCHCONSUMEQUEUE: BATCH_UNIT}


@dataclass(frozen=True)
class Behind:
    """Entries, of so many queues, that lead behind the log; the messages and bytes that they tell of."""

    entries: int = 0
    queues: int = 0
    messages: int = 0
    bytes: int = 0

    def notes(self, end: int) -> list[str]:
        """What a plan says of them; `end` is that of the log."""
        if not self.entries:
            return []
        lead = "consume queue entry leads" if self.entries == 1 else "consume queue entries lead"
        where = f"in {counted(self.queues, 'queue')} {self.entries} {lead} behind its end at {end}"
        return [f"the log was longer: {where}; these messages are lost, and new ones get their queue offsets"]


def behind_log(
    store: Store,
    end: int,
    built: Mapping[Key, BuiltQueue],
    left: Collection[Key],
    sizes: Mapping[FileKind, int],
) -> Behind:
    """What lies at the end of queues, behind the last entry that leads into the log, which ends at `end`.

    An entry at the queue offset of a record that the log has is wrong, whatever it leads to. left: queues
    that stay as they are. sizes: of files.
    """
    entries = queues = 0
    offsets, lengths = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for kind, unit in _UNITS.items():
        for queue in store.queues(kind):
            if queue.topic is None or queue.queue_id is None or (queue.topic, queue.queue_id) in left:
                continue
            of_log = built.get((queue.topic, queue.queue_id))
            below = of_log.next_slot if of_log is not None and kind is FileKind.CONSUMEQUEUE else 0
            found = 0
            for base, file in reversed(by_base(queue, sizes[kind]).items()):
                units = units_of(file, unit, sizes[kind])
                part = _trailing(units[max(below - base // unit.itemsize, 0) :], end)
                found += len(part)
                offsets.append(part["physical_offset"].astype(np.int64))
                lengths.append(part["size"].astype(np.int64))
                if len(part) < np.count_nonzero(units["size"]):
                    break
            entries, queues = entries + found, queues + bool(found)
    # light queues and units of several topics lead to one record
    each, first = np.unique(np.concatenate(offsets), return_index=True)
    return Behind(entries, queues, len(each), int(np.concatenate(lengths)[first].sum()))


def _trailing(units: npt.NDArray[Any], end: int) -> npt.NDArray[Any]:
    """The last of the entries in use, as many as lead behind `end`, each further than the one before."""
    used = units[units["size"] != 0]
    offsets = used["physical_offset"].astype(np.int64)
    wrong = (offsets < end) | (offsets - end > _FAR) | (used["size"] < 0)
    wrong[:-1] |= np.diff(offsets) <= 0
    last: npt.NDArray[Any] = used[int(np.flatnonzero(wrong)[-1]) + 1 if wrong.any() else 0 :]
    return last
