"""Whole records in files that leave the store, which its repaired log does not have.

Such a file may be a copy, and all its records are in the log, or the only file that has them.
"""

from __future__ import annotations

from contextlib import ExitStack
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.repair.plan import Action
from rmqtool.repair.plan_words import counted
from rmqtool.repair.prove.records import LikelyBegin, differing, has_at, open_segment, record_at, sound
from rmqtool.scan.events import Records
from rmqtool.scan.fields import Check, Field
from rmqtool.scan.joined_runs import joined_runs
from rmqtool.scan.segment import SegmentScan
from rmqtool.store.kinds import FileKind
from rmqtool.store.patched import ZeroFilledSource

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from rmqtool.repair.plan import Edit
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.store.access import Access
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store

    Ints = npt.NDArray[np.int64]

MOST = 10_000
"""records of a file that are looked at one by one"""
_NEAR = 1 << 20
"""bytes of the result that are read at once"""


def lacking_beside(
    store: Store, after: Store, edits: Iterable[Edit], kernels: Kernels, access: Access
) -> Iterator[str]:
    """One text for each file with records that are in neither the store's log nor the repaired one.

    Those in front of the log have expired.
    """
    for edit in edits:
        file = store.file(edit.change.path) if edit.change.action is Action.REMOVE else None
        if file is None or file.kind not in (FileKind.COMMITLOG, FileKind.UNKNOWN) or not file.regular:
            continue
        others = (one for some in _not_in(after, file, kernels, access) for one in some.tolist())
        looked = list(islice(others, MOST))
        lost = [one for one in looked if record_at(store, one, kernels, access) is None]
        keep = "keep that file, rmqtool salvage reads it"
        if next(others, None) is not None:
            yield (
                f"{file.display_path} has more than {MOST:,} whole records that differ from the result, and "
                f"only these were looked at; {len(lost):,} of them are missing from it: {keep}"
            )
        elif lost:
            yield (
                f"{file.display_path} has {counted(len(lost), 'whole record')} that the result lacks, the "
                f"first of physical offset {min(lost)}: {keep}"
            )


def _not_in(after: Store, file: StoreFile, kernels: Kernels, access: Access) -> Iterator[Ints]:
    """Physical offsets that records of the file state, where the log has other bytes."""
    log = after.segments
    bases = np.array([one.base for one in log], np.int64)
    with ZeroFilledSource(file.open(access), file.size) as source, ExitStack() as stack:
        scan = SegmentScan(
            source, 0, checks=Check.ALL, active=True, keep_stale=True, past_blanks=True, kernels=kernels
        )
        opened, result, begin = None, None, LikelyBegin()
        for run in joined_runs(scan):
            first = begin.of(run)
            stated = run.rows[:, Field.STORED_PHYSICAL_OFFSET]
            asked = np.flatnonzero(sound(run, kernels) & (stated >= log.first_offset))
            if not len(log):
                yield stated[asked]
                continue
            shifts = stated[asked] - run.rows[asked, Field.POSITION]
            numbers = np.searchsorted(bases, stated[asked], "right") - 1
            cuts = np.flatnonzero((np.diff(shifts) != 0) | (np.diff(numbers) != 0)) + 1
            for part in np.split(np.arange(len(asked)), cuts) if len(asked) else ():
                segment = log[int(numbers[part[0]])]
                if result is None or segment is not opened:
                    stack.close()
                    opened, result = segment, stack.enter_context(open_segment(segment, access, _NEAR))
                own, there = Records(run.rows[asked[part]], run.window, run.origin), stated[asked[part]]
                odd = np.flatnonzero(differing(own, result, int(there[0]) - segment.base))
                if len(odd) and shifts[part[0]] != first:  # the offset that they state may be wrong
                    odd = odd[[not has_at(after, own, one, first, kernels, access) for one in odd.tolist()]]
                yield there[odd]
