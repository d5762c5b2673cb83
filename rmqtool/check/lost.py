"""Records that queues know of behind the end of the log: acknowledged, dispatched, and not there any more."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rmqtool.check.findings import finding
from rmqtool.scan.units import OK, unit_states

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from rmqtool.check.findings import Finding
    from rmqtool.check.queue_files import QueueUnits
    from rmqtool.store.segments import SegmentSet

_NEAR = 2
"""segments between two lost records at most; a unit that points further away is wrong itself"""


def lost_end(
    queues: Iterable[QueueUnits], segments: SegmentSet, end: int, segment_size: int
) -> Iterator[Finding]:
    """One finding from the end of the log to the end of the last record that a queue knows of.

    end: of the last record. Units that point far beyond any other are left to the check of units.
    """
    claims = [found for queue in queues if len(found := _claims(queue, end))]
    if not claims:
        return
    starts = np.unique(np.concatenate(claims), axis=0)
    steps = np.diff(starts[:, 0], prepend=end)
    far = np.flatnonzero(steps > _NEAR * segment_size)
    near = starts[: far[0]] if len(far) else starts
    if not len(near):
        return
    last = segments[-1]
    limit = int(near.sum(axis=1).max())
    yield finding(
        "X-LOST",
        path=last.file.display_path,
        position=end - last.base if end >= last.base else None,
        physical_offset=end,
        length=limit - end,
        expected=limit,
        found=len(near),
    )


def _claims(queue: QueueUnits, end: int) -> npt.NDArray[np.int64]:
    """Offset and size of units that point to `end` or further, from the last files of a queue."""
    found: list[npt.NDArray[np.int64]] = []
    for number in reversed(range(len(queue.files))):
        held = reached = False
        for _, units in queue.parts(number):
            beyond = units[units["physical_offset"] >= end]
            beyond = beyond[unit_states(beyond, None) == OK]
            pairs = [beyond[name].astype(np.int64) for name in ("physical_offset", "size")]
            found.append(np.stack(pairs, axis=1))
            reached = reached or len(beyond) > 0
            held = held or reached or number in queue.sound or bool((unit_states(units, None) == OK).any())
        if held and not reached:
            break
    return np.concatenate([*found, np.zeros((0, 2), np.int64)])
