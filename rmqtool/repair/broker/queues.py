"""Queue files as recovery leaves them, as edits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from formats.consumequeue import COMPACTED_OFFSET
from rmqtool.broker.batch_consume_queue import BatchConsumeQueue
from rmqtool.repair.broker.edits import over, put_whole
from rmqtool.repair.content import Inline, Joined, Zeros
from rmqtool.scan.units import BATCH_UNIT, UNIT
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from rmqtool.broker.consume_queue import ConsumeQueue
    from rmqtool.broker.mapped_files import MappedFile
    from rmqtool.broker.start import Start
    from rmqtool.repair.broker.watching import Watcher
    from rmqtool.repair.plan import Edit

    Units = npt.NDArray[Any]


def queue_edits(start: Start, watcher: Watcher) -> Iterator[Edit]:
    """Units that recovery appends to queues, in files that exist or are new.

    Those that truncation takes away again leave their bytes (`ConsumeQueue#truncateDirtyLogicFiles`).
    """
    for _, queue in sorted(start.queues.items()):
        for one in queue.files.files:
            if isinstance(queue, BatchConsumeQueue):
                yield from _batch_file(queue, one, watcher)
            else:
                yield from _plain_file(queue, one, watcher)


def _plain_file(queue: ConsumeQueue, one: MappedFile, watcher: Watcher) -> Iterator[Edit]:
    parts = list(one.appended.written()) if one.appended is not None else []
    if not parts and one.file is not None:
        return
    timestamp = None
    low, units = 0, np.zeros(0, UNIT)
    if parts:
        low = min(int(numbers.min()) for numbers, _, _ in parts)
        high = max(int(numbers.max()) for numbers, _, _ in parts) + 1
        units = _on_disk(one, high, UNIT)[low:]
        fresh = np.zeros(len(units), np.bool_)
        for numbers, offsets, sizes in parts:
            units["physical_offset"][numbers - low], units["size"][numbers - low] = offsets, sizes
            fresh[numbers - low] = True
        codes, times = watcher.codes_and_times(units["physical_offset"].astype(np.int64))
        units["tags_code"][fresh] = np.where(units["size"] == (1 << 31) - 1, 0, codes)[fresh]
        timestamp = int(times[-1])
    yield from _laid(one, low, units, queue.files.size, timestamp)


def _batch_file(queue: BatchConsumeQueue, one: MappedFile, watcher: Watcher) -> Iterator[Edit]:
    fresh = queue.written_to(one)
    if not fresh.size and one.file is not None:
        return
    low, high = (int(fresh[0]), int(fresh[-1]) + 1) if fresh.size else (0, 0)
    units = np.frombuffer(queue.content_of(one), BATCH_UNIT, high)[low:].copy()
    fresh -= low
    codes, times = watcher.codes_and_times(units["physical_offset"].astype(np.int64))
    units["tags_code"][fresh], units["store_timestamp"][fresh] = codes[fresh], times[fresh]
    units["compacted_offset"][fresh] = COMPACTED_OFFSET
    timestamp = int(times[-1]) if len(times) else None
    yield from _laid(one, low, units, queue.files.size, timestamp)


def _on_disk(one: MappedFile, count: int, dtype: np.dtype[Any]) -> Units:
    """The first units of a file, zeros where it has no bytes."""
    units = np.zeros(count, dtype)
    if one.file is not None:
        with one.file.open("pread") as source:
            raw = source.window(0, units.nbytes)
        whole = len(raw) // dtype.itemsize
        units[:whole] = raw[: whole * dtype.itemsize].view(dtype)
    return units


def _laid(one: MappedFile, low: int, units: Units, size: int, timestamp: int | None) -> Iterator[Edit]:
    """`units` from number `low` on, over an existing file or in a new one of `size` bytes."""
    message = f"{len(units)} entries from number {low} on" if len(units) else "made empty"
    data, position = units.tobytes(), low * units.dtype.itemsize
    path = one.file.display_path if one.file is not None else escape_name(one.path)
    if one.file is None:
        content = Joined((Zeros(position), Inline(data), Zeros(size - position - len(data))))
        yield put_whole(path, content, "consumequeue", message, timestamp)
        return
    with one.file.open("pread") as source:
        if source.window(position, len(data)).tobytes() == data:
            return
    yield over(path, position, data, "consumequeue", message, timestamp)
