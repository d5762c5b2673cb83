"""Damage of a queue's own files that keeps messages from being listed, as rows of `not_covered`.

A broker reads a damaged queue without a word: it ends at the first unit that is none and skips what is gone.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

from rmqtool.store.coverage import Incomplete

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.broker.queue_view import QueueView
    from rmqtool.store.layout import Store

    Row = dict[str, Any]


def queue_damage(view: QueueView, store: Store) -> Iterator[Row]:
    """Units behind the place where a broker ends the queue, files that are short or not there."""
    if view.hidden is not None:
        number, position, count = view.hidden
        file = view.queue.files[number]
        why = f"an entry that is none ends the queue here; {count} entries lie behind it"
        yield _row(file.shown, position, file.size - position, why)
    files = list(view.queue.files)
    while files and not files[-1].size:
        files.pop()  # nothing was in a last file without bytes
    usual = store.sizes[view.queue.kind].value if files else 0
    for file in files:
        if file.size < usual:
            yield _row(file.shown, file.size, usual - file.size, f"the file has {file.size} of {usual} bytes")
        elif usual and (file.base_offset or 0) % usual:
            yield _row(file.shown, 0, file.size, f"its name is no multiple of the {usual} bytes of a file")
    for before, behind in pairwise(files):
        if before.base_offset is None or behind.base_offset is None:
            continue
        start = before.base_offset + max(before.size, usual)
        if start < behind.base_offset:
            what = f"no file has the entries from byte {start} to {behind.base_offset} of the queue"
            yield {"path": view.path, "reason": Incomplete.DAMAGE.value, "error": what}


def skipped(view: QueueView, first: int, count: int) -> Row:
    """Units that lead to no record, though the log reaches back to where they point."""
    what = (
        f"{count} entries from queue offset {first} on lead to no record, or are skipped with one that does"
    )
    return {"path": view.path, "queue_offset": first, "reason": Incomplete.DAMAGE.value, "error": what}


def _row(path: str, position: int, length: int, error: str) -> Row:
    place = {"path": path, "position": position, "length": length}
    return {**place, "reason": Incomplete.DAMAGE.value, "error": error}
