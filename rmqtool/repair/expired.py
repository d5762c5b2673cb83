"""Units of records that have expired: copied from the old files in front of what was built from the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rmqtool.broker.batch_consume_queue import BatchConsumeQueue
from rmqtool.broker.consume_queue import ConsumeQueue
from rmqtool.build.queues import file_path
from rmqtool.scan.extension import ExtensionLookup
from rmqtool.scan.units import BATCH_UNIT, UNIT, pre_blanks, valid_units
from rmqtool.store.holes import data_windows
from rmqtool.store.kinds import FileKind

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy.typing as npt

    from rmqtool.broker.file_rules import FileRules
    from rmqtool.build.files import DerivedFiles
    from rmqtool.build.queues import BuiltQueue
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Queue, Store

    Units = npt.NDArray[Any]
    Key = tuple[str, int]


class Keeper:
    """Writes older units into the built files, which stay what they are from the first record that exists on.

    A queue keeps them as far as they lie gaplessly in front of that record. Tags codes that are addresses in
    extension files, which are rebuilt, become the codes that lie there. A queue of which no record exists
    keeps its files.
    """

    def __init__(self, store: Store, rules: FileRules, files: DerivedFiles) -> None:
        self._store = store
        self._rules = rules
        self._files = files
        self._floor = store.segments.first_offset
        self._extensions = {(one.topic, one.queue_id): one for one in store.queues(FileKind.CONSUMEQUEUE_EXT)}
        self.units = 0
        """units kept"""

    def keep(self, built: Mapping[Key, BuiltQueue], wanted: Callable[[str, int], bool]) -> None:
        """All queues that are wanted. Raises `UnreadableError` where an old file cannot be read."""
        for kind in (FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE):
            for queue in self._store.queues(kind):
                if queue.topic is None or queue.queue_id is None or not wanted(queue.topic, queue.queue_id):
                    continue
                made = built.get((queue.topic, queue.queue_id))
                if made is None or made.first is None:
                    self._keep_all(queue)
                elif made.directory == ConsumeQueue.directory and kind is FileKind.CONSUMEQUEUE:
                    self._keep_plain(queue, made.first)
                elif made.directory == BatchConsumeQueue.directory and kind is FileKind.BATCHCONSUMEQUEUE:
                    self._keep_batches(queue, made)

    def _keep_all(self, queue: Queue) -> None:
        for file in queue.files:
            if file.regular and file.size and file.path not in self._files.times:
                with file.open("pread") as source:
                    self._files.write(file.path, source.size, 0, b"", _time(file))
                    for position, data in data_windows(source, 0, source.size, source.window_bytes):
                        self._files.write(file.path, source.size, position, data, _time(file))

    def _keep_plain(self, queue: Queue, first: int) -> None:
        size, whole = self._rules.consume_queue_size, self._rules.units
        old = {file.base_offset: file for file in queue.files if file.regular and file.size == size}
        place = first % whole
        base = (first - place) * UNIT.itemsize
        while True:
            file = old.get(base)
            units = None if file is None else _read(file, UNIT)[: place or None]
            if file is not None and units is not None and len(units):
                good = valid_units(units) & ~pre_blanks(units)
                offsets = units["physical_offset"].astype(np.int64)
                lowest_behind = np.minimum.accumulate(offsets[::-1])[::-1]
                good &= (offsets < self._floor) & (offsets == lowest_behind)
                start = int(np.flatnonzero(~good)[-1]) + 1 if not good.all() else 0
                if start == len(units):
                    return
                self._write_plain(queue, file, units, start, whole_file=place == 0)
                if start:
                    return
            elif place:
                return
            if base == 0 or (file is None and place == 0 and base < first * UNIT.itemsize):
                return
            base, place = base - size, 0

    def _write_plain(
        self, queue: Queue, file: StoreFile, units: Units, start: int, *, whole_file: bool
    ) -> None:
        self._resolve(queue, units)
        begin = 0 if whole_file else start
        path = file_path("consumequeue", str(queue.topic), int(queue.queue_id or 0), file.base_offset or 0)
        time = _time(file) if whole_file else None
        data = units[begin:].tobytes()
        self._files.write(path, self._rules.consume_queue_size, begin * UNIT.itemsize, data, time)
        self.units += len(units) - start

    def _resolve(self, queue: Queue, units: Units) -> None:
        """Puts tags codes in the place of addresses of extension units."""
        extension = self._extensions.get((queue.topic, queue.queue_id))
        if extension is None:
            return
        sources = [(file.base_offset or 0, file.open("pread")) for file in extension.files if file.regular]
        try:
            lookup = ExtensionLookup(sources)
            codes = [lookup.tags_code(code) for code in units["tags_code"].tolist()]
        finally:
            for _, source in sources:
                source.close()
        found = np.array([code is not None for code in codes], np.bool_)
        units["tags_code"][found] = [code for code in codes if code is not None]

    def _keep_batches(self, queue: Queue, made: BuiltQueue) -> None:
        size, whole = self._rules.batch_queue_size, self._rules.batch_units
        old = [file for file in queue.files if file.regular and file.size == size]
        kept = [_read(file, BATCH_UNIT)[:whole] for file in old]
        before = np.concatenate([np.zeros(0, BATCH_UNIT), *kept])
        good = valid_units(before) & (before["physical_offset"] < self._floor)
        before = before[: len(good) if good.all() else int(np.flatnonzero(~good)[0])]
        if not len(before):
            return
        built = self._built_batches(queue, made.units)
        # joined structures get the byte order of this machine
        units = np.concatenate([before, built]).astype(BATCH_UNIT)
        times = units["store_timestamp"]
        first = (old[0].base_offset or 0) // size
        for number, at in enumerate(range(0, len(units), whole)):
            path = file_path("batchconsumequeue", made.topic, made.queue_id, (first + number) * size)
            part = units[at : at + whole]
            self._files.write(path, size, 0, part.tobytes(), int(times[at + len(part) - 1]))
        self.units += len(before)

    def _built_batches(self, queue: Queue, count: int) -> Units:
        """The units that were built, whose files go: all of them move behind the older ones."""
        units = np.zeros(count, BATCH_UNIT)
        size, whole = self._rules.batch_queue_size, self._rules.batch_units
        for number, at in enumerate(range(0, count, whole)):
            path = file_path("batchconsumequeue", str(queue.topic), int(queue.queue_id or 0), number * size)
            place = self._files.place(path)
            part = np.fromfile(place, BATCH_UNIT, min(whole, count - at))
            units[at : at + len(part)] = part
            self._files.remove(path)
        return units


def _read(file: StoreFile, dtype: np.dtype[Any]) -> Units:
    """All units of a file of the size that the rules have."""
    with file.open("pread") as source:
        raw = source.window(0, source.size)
        return raw[: len(raw) // dtype.itemsize * dtype.itemsize].view(dtype).copy()


def _time(file: StoreFile) -> int:
    return file.mtime_ns // 1_000_000
