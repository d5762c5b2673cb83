"""The store as a simulated start leaves it, stopped in order or refused: what the next start meets."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from formats.checkpoint import CHECKPOINT_SIZE, Checkpoint
from rmqtool.broker.batch_consume_queue import BatchConsumeQueue
from rmqtool.recovery.view import changed, file_with
from rmqtool.scan.units import UNIT

if TYPE_CHECKING:
    from rmqtool.broker.mapped_files import MappedFile
    from rmqtool.broker.start import AnyQueue, Start
    from rmqtool.recovery.view import ImaginedFile
    from rmqtool.store.layout import Store


def store_after(start: Start, *, started: bool) -> Store:
    """The store behind a start that was gone through with `keep_units`.

    started: the broker came up and was then stopped in order, which removes `abort` unless dispatching stands
    elsewhere than at the log's end (`DefaultMessageStore#shutdown`); a refused one leaves it as it is.
    Bytes that recovery gave up are still there: it moves positions and deletes files. Times in the checkpoint
    stay as they are, for only a start after a crash asks for them.
    """
    store = start.store
    raw = {one.display_path: one.path for one in store.files}
    files = (start.log, *(queue.files for queue in start.queues.values()))
    gone = {raw.get(path, path) for one in files for path in one.deleted}
    gone |= {raw.get(path, path) for path in start.index.deleted}
    if started and start.reput is not None and start.reput.offset == start.log.max_offset:
        gone.add("abort")
    put = {}
    for queue in start.queues.values():
        for one in queue.files.files:
            if _was_written(queue, one):
                path = one.file.path if one.file is not None else one.path
                put[path] = file_with(store, path, queue.files.size, partial(_content, queue, one))
    if start.traits.confirm_from_checkpoint and start.confirm >= 0:
        put["checkpoint"] = _checkpoint(start)
    return changed(store, gone, put)


def _was_written(queue: AnyQueue, one: MappedFile) -> bool:
    if isinstance(queue, BatchConsumeQueue):
        return queue.appended > 0 or one.file is None
    return one.appended is not None or one.file is None


def _content(queue: AnyQueue, one: MappedFile) -> bytes:
    """Bytes of a queue file; tags codes of appended units are 0, no start asks for them."""
    if isinstance(queue, BatchConsumeQueue):
        return queue.content_of(one)
    units = np.zeros(queue.files.size // UNIT.itemsize, UNIT)
    if one.file is not None:
        with one.file.open("pread") as source:
            raw = source.window(0, units.nbytes)
        whole = len(raw) // UNIT.itemsize
        units[:whole] = raw[: whole * UNIT.itemsize].view(UNIT)
    for numbers, offsets, sizes in one.appended.written() if one.appended is not None else ():
        units["physical_offset"][numbers], units["size"][numbers] = offsets, sizes
        units["tags_code"][numbers] = 0
    return units.tobytes()


def _checkpoint(start: Start) -> ImaginedFile:
    """The checkpoint with the confirm offset that recovery puts into it."""
    values = {**start.checkpoint, "confirm_physical_offset": start.confirm}
    return file_with(start.store, "checkpoint", CHECKPOINT_SIZE, lambda: Checkpoint.build(values))
