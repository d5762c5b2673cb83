"""Damage of a queue's own files that keeps messages from being listed, as rows of `not_covered`.

A broker reads a damaged queue without a word: it ends at the first unit that is none and skips what is gone.
"""

from __future__ import annotations

from glob import escape
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rmqtool.query.message_filter import MessageFilter
from rmqtool.query.not_read import not_read
from rmqtool.query.select import Selector
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.fields import Check
from rmqtool.scan.log import LogScan, scan_log
from rmqtool.store.coverage import Incomplete

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.query.queue_view import QueueView
    from rmqtool.store.layout import Store
    from rmqtool.store.segments import SegmentSet

    Row = dict[str, Any]


def queue_damage(view: QueueView, store: Store) -> Iterator[Row]:
    """Units behind the place where a broker ends the queue, files that are short or not there."""
    if view.hidden is not None:
        number, position, count = view.hidden
        file = view.queue.files[number]
        why = f"a unit that is none ends the queue here; {count} units lie behind it"
        yield _row(file.shown, position, file.size - position, why)
    files = list(view.queue.files)
    while files and not files[-1].size:
        files.pop()  # nothing was in a last file without bytes
    usual = store.sizes[view.queue.kind].value if files else 0
    if files and files[0].base_offset and view.log.low == 0 and _front_lost(view, store.segments):
        what = (
            f"no file has the units in front of byte {files[0].base_offset}, and nothing of the log expired"
        )
        yield {"path": view.path, "reason": Incomplete.DAMAGE.value, "error": what}
    for file in files:
        if file.size < usual:
            yield _row(file.shown, file.size, usual - file.size, f"the file has {file.size} of {usual} bytes")
    for before, behind in pairwise(files):
        if before.base_offset is None or behind.base_offset is None:
            continue
        start = before.base_offset + max(before.size, usual)
        if start < behind.base_offset:
            what = f"no file has the units from byte {start} to {behind.base_offset} of the queue"
            yield {"path": view.path, "reason": Incomplete.DAMAGE.value, "error": what}


def _front_lost(view: QueueView, segments: SegmentSet) -> bool:
    """Whether the log has messages for queue offsets in front of the first file, or damage there.

    A queue may as well begin with any file (`ConsumeQueue#fillPreBlank`). Reads the log up to the first
    message of that file.
    """
    if view.begins_at is None:
        return False
    end, in_front = view.begins_at, (view.queue.files[0].base_offset or 0) // view.width
    topic, queue_id = view.queue.topic or "", view.queue.queue_id or 0
    wanted = MessageFilter((escape(topic),), frozenset({queue_id}), offset_to=end, queue_offset_to=in_front)
    selector = Selector(wanted, choose_kernels(end))
    how = LogScan(("transaction",), choose=selector.choose, offsets=(0, end), checks=Check.FRAME)
    for piece in scan_log(segments, how):
        if not isinstance(piece.content, pa.RecordBatch):
            if not_read(piece.segment, piece.content):
                return True
        elif {"none", "commit"} & set(piece.content["transaction"].to_pylist()):
            return True
    return False


def skipped(view: QueueView, first: int, count: int) -> Row:
    """Units that lead to no record, though the log reaches back to where they point."""
    what = f"{count} units from queue offset {first} on lead to no record, or are skipped with one that does"
    return {"path": view.path, "queue_offset": first, "reason": Incomplete.DAMAGE.value, "error": what}


def _row(path: str, position: int, length: int, error: str) -> Row:
    place = {"path": path, "position": position, "length": length}
    return {**place, "reason": Incomplete.DAMAGE.value, "error": error}
