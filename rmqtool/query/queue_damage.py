"""Damage of a queue's own files that keeps messages from being listed, as rows of `not_covered`.

A broker reads a damaged queue without a word: it ends at the first unit that is none and skips what is gone.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from rmqtool.errors import VanishedError
from rmqtool.scan.units import UNIT, pre_blanks
from rmqtool.store.coverage import Incomplete

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.broker.queue_view import QueueView
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Queue, Store

    Row = dict[str, Any]


def queue_damage(view: QueueView, store: Store) -> Iterator[Row]:
    """Units behind the place where a broker ends the queue, files of another length, or not there."""
    if view.hidden is not None:
        number, position, count = view.hidden
        file = view.queue.files[number]
        why = f"an invalid entry ends the queue here; {count} entries lie behind it"
        yield _row(file.display_path, position, file.size - position, why)
    files = list(view.queue.files)
    while files and not files[-1].size:
        files.pop()  # nothing was in a last file without bytes
    usual = store.sizes[view.queue.kind].value if files else 0
    for file in files:
        if file.size < usual:
            yield _row(
                file.display_path, file.size, usual - file.size, f"the file has {file.size} of {usual} bytes"
            )
        elif usual and file.size > usual:
            why = f"the file has {file.size} bytes, others {usual}"
            yield _row(file.display_path, usual, file.size - usual, why)
        elif usual and (file.base_offset or 0) % usual:
            yield _row(
                file.display_path, 0, file.size, f"its name is not a multiple of the {usual} bytes of a file"
            )
    yield from missing_files(view.queue, store)
    yield from _turned_back(view)


def missing_files(queue: Queue, store: Store) -> Iterator[Row]:
    """Places between the files of a queue that no file has."""
    usual = store.sizes[queue.kind].value if queue.files else 0
    for before, behind in pairwise(queue.files):
        if before.base_offset is None or behind.base_offset is None:
            continue
        start = before.base_offset + max(before.size, usual)
        if start < behind.base_offset:
            what = f"no file has the entries from byte {start} to {behind.base_offset} of the queue"
            path = before.display_path.rpartition("/")[0]
            yield {"path": path, "reason": Incomplete.DAMAGE.value, "error": what}


def _turned_back(view: QueueView) -> Iterator[Row]:
    """Files that lead to the log in front of where the file before ends: another one's, or a copy."""
    if view.batch:
        return
    for before, behind in pairwise(view.queue.files):
        if behind.base_offset != (before.base_offset or 0) + before.size or not before.size:
            continue
        last, first = _leads_to(before, before.size - view.width), _leads_to(behind, 0)
        if last is not None and first is not None and first <= last:
            why = (
                f"its entries begin with offset {first} of the log, those of the file before end with {last}"
            )
            yield _row(behind.display_path, 0, behind.size, why)


def _leads_to(file: StoreFile, position: int) -> int | None:
    """The physical offset in a unit, None for one of no message, and of a file that has expired meanwhile."""
    try:
        with file.open("pread") as source:
            raw = source.window(position, UNIT.itemsize)[: UNIT.itemsize]
    except VanishedError:
        return None
    units = raw.view(UNIT) if len(raw) == UNIT.itemsize else np.zeros(1, UNIT)
    if not units["size"][0] or pre_blanks(units)[0]:
        return None
    return int(units["physical_offset"][0])


def skipped(view: QueueView, first: int, count: int) -> Row:
    """Units that lead to no record, though the log reaches back to where they point."""
    what = (
        f"{count} entries from queue offset {first} on lead to no record, or are skipped with one that does"
    )
    return {"path": view.path, "queue_offset": first, "reason": Incomplete.DAMAGE.value, "error": what}


def _row(path: str, position: int, length: int, error: str) -> Row:
    place = {"path": path, "position": position, "length": length}
    return {**place, "reason": Incomplete.DAMAGE.value, "error": error}
