"""Messages of one queue as they come: what `store get -f` lists."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from formats.consumequeue import is_ext_address
from rmqtool.broker.get_message import pull
from rmqtool.broker.log_view import LogView
from rmqtool.broker.queue_view import QueueView
from rmqtool.errors import StoreIOError, UnreadableError, VanishedError
from rmqtool.query.missing_runs import MissingRuns
from rmqtool.query.subscription import FilterType
from rmqtool.scan.picked import Damaged
from rmqtool.scan.units import UNIT
from rmqtool.store.coverage import Incomplete, coverage
from rmqtool.store.growing import queue_now, segments_now
from rmqtool.store.kinds import FileKind

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Self

    from rmqtool.broker.get_message import Delivered, Passes
    from rmqtool.broker.traits import Traits
    from rmqtool.query.subscription import Subscription
    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Queue, Store
    from rmqtool.store.segments import SegmentSet

Row = dict[str, Any]

POLL_SECONDS = 0.04
_SOON, _LATELY = 0.005, 0.25
"""seconds between two looks while the last message came so lately"""
_LOOKS = 25
"""looks at a file until it is opened again: another one may have its name"""
_AT_ONCE = 1024
"""messages of one look at the queue's files"""


@dataclass
class QueueFollow:
    """Messages from queue offset `at` on, at most `count` of them, without an end where that is None.

    subscription: as a consumer's, by tags or SQL92. at: where it goes on. messages: how many were given.
    """

    store: Store
    topic: str
    queue_id: int
    at: int
    traits: Traits
    count: int | None = None
    subscription: Subscription | None = None
    unread: Sequence[Row] = ()
    messages: int = 0
    interrupted: bool = False
    missing: MissingRuns = field(default_factory=MissingRuns)
    damaged: list[Damaged] = field(default_factory=list)
    _segments: SegmentSet | None = None

    def batches(self, columns: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, list[int]] | None]:
        """Records with their queue offsets; None when everything there is has been given."""
        subscription = self.subscription
        wanted = tuple(dict.fromkeys((*columns, *(subscription.columns if subscription else ()))))
        came, known = time.monotonic(), self.at
        while self.count is None or self.messages < self.count:
            queue = self._queue()
            end: int | None = None  # a file expired while it was opened: all of it once more
            with suppress(VanishedError):
                self._segments = segments_now(self.store)
                with LogView(self._segments) as log, QueueView(queue, log, self.traits) as view:
                    for batch, slots in self._there(view, wanted):
                        yield batch.select(list(columns)), slots
                    end = view.files[-1].base + view.files[-1].written if view.files else 0
            yield None
            if self.at != known:
                came, known = time.monotonic(), self.at
            with _Next(queue, end) as following:
                while self.count is None or self.messages < self.count:
                    time.sleep(_SOON if time.monotonic() - came < _LATELY else POLL_SECONDS)
                    if following.may_be_there():
                        break

    def summary(self) -> Row:
        """The closing summary."""
        return {
            "topic": self.topic,
            "queue_id": self.queue_id,
            "next_begin_offset": self.at,
            "messages": self.messages,
            "followed": True,
        } | coverage(self.not_covered())

    def not_covered(self) -> list[Row]:
        """Records that could not be shown, and what came later."""
        rows: list[Row] = [*self.unread, *self.missing.rows, *map(Damaged.row, self.damaged)]
        path = f"{FileKind.CONSUMEQUEUE}/{self.topic}/{self.queue_id}"
        if self.interrupted:
            rows.append({"path": path, "queue_offset": self.at, "reason": Incomplete.INTERRUPTED})
        elif self.count is not None and self.messages >= self.count:
            rows.append({"path": path, "queue_offset": self.at, "reason": Incomplete.LIMIT})
        return rows

    def _queue(self) -> Queue:
        batch = queue_now(self.store, FileKind.BATCHCONSUMEQUEUE, self.topic, self.queue_id)
        if batch.files:
            return batch
        return queue_now(self.store, FileKind.CONSUMEQUEUE, self.topic, self.queue_id)

    def _there(self, view: QueueView, columns: Sequence[str]) -> Iterator[tuple[pa.RecordBatch, list[int]]]:
        """What lies between `at` and the end of the queue; `at` moves along."""
        self.at = max(self.at, view.min_offset)
        while self.at < view.max_offset:
            left = _AT_ONCE if self.count is None else min(self.count - self.messages, _AT_ONCE)
            if left <= 0:
                return
            answer = pull(view, self.at, left, self._passes())
            yield from self._picked([one for one in answer.delivered if not one.foreign], columns)
            if answer.next_begin_offset <= self.at:
                return
            self.at = answer.next_begin_offset

    def _picked(
        self, some: list[Delivered], columns: Sequence[str]
    ) -> Iterator[tuple[pa.RecordBatch, list[int]]]:
        segments = self.store.segments if self._segments is None else self._segments
        for part, found in self.missing.picked(segments, some, columns, self.damaged):
            batch, slots = part, [one.queue_offset for one in found]
            if self.subscription is not None:
                good = self.subscription.passes(part)
                batch = part.filter(pa.array(good))
                slots = [slot for slot, passed in zip(slots, good, strict=True) if passed]
            self.messages += batch.num_rows
            yield batch, slots

    def _passes(self) -> Passes | None:
        """What a broker asks of a unit; of SQL92, and behind an extension, the record is asked afterwards."""
        wanted = self.subscription
        if wanted is None or wanted.type is not FilterType.TAG:
            return None
        return lambda code, _offset, _size: is_ext_address(code) or wanted.passes_unit(code)


@dataclass
class _Next:
    """The unit at byte `end` of a queue, where the next one goes; None: where the queue ends is not known.

    A file stays open for so many looks: what opens one with care costs more than the look.
    """

    queue: Queue
    end: int | None
    _source: ByteSource | None = None
    _looks: int = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._close()

    def may_be_there(self) -> bool:
        """Whether there is one, or the queue has to be listed again to tell; costs a few bytes read."""
        if self.end is None or not self.queue.files:
            return True
        size = self.queue.files[-1].mapped_size
        for file in self.queue.files:
            position = self.end - (file.base_offset or 0)
            if 0 <= position < file.mapped_size:
                try:
                    source = self._opened(file)
                    return bool(source.window(position, min(UNIT.itemsize, source.size - position)).any())
                except (VanishedError, StoreIOError, UnreadableError):
                    return True  # listing it again shows what became of it
        return not size or _listed(self.queue) != {file.name for file in self.queue.files}

    def _opened(self, file: StoreFile) -> ByteSource:
        self._looks += 1
        if self._source is None or self._looks > _LOOKS:
            self._close()
            self._source, self._looks = file.open("pread"), 0
        return self._source

    def _close(self) -> None:
        if self._source is not None:
            self._source.close()
            self._source = None


def _listed(queue: Queue) -> set[str]:
    """Names in the directory of a queue that has files; none when it is gone."""
    with suppress(OSError):
        return set(os.listdir(queue.files[-1].absolute.parent))
    return set()
