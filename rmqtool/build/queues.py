"""Queues that are built from the log alone, and what is reported of them afterwards."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from rmqtool.broker.batch_consume_queue import BatchConsumeQueue
from rmqtool.broker.consume_queue import LARGEST_SLOT, ConsumeQueue
from rmqtool.broker.extension_files import ExtensionFiles
from rmqtool.broker.mapped_files import MappedFiles
from rmqtool.store.names import file_name

if TYPE_CHECKING:
    from rmqtool.broker.file_rules import FileRules
    from rmqtool.broker.queue_records import QueueRecords
    from rmqtool.build.files import DerivedFiles
    from rmqtool.scan.kernel_types import Kernels

    Key = tuple[str, int]


@dataclass(frozen=True)
class BuiltQueue:
    """What was built of one queue.

    first: queue offset of its first message, None without one. next_slot: that behind the last. units: of
    messages. filled: blank ones between them, for messages whose records could not be read. misplaced: units
    at another queue offset than that of their record. doubled: records that got no unit, as theirs was taken.
    """

    directory: str
    topic: str
    queue_id: int
    first: int | None
    next_slot: int
    units: int
    filled: int
    misplaced: int
    doubled: int

    @classmethod
    def of(cls, queue: ConsumeQueue | BatchConsumeQueue) -> BuiltQueue:
        """Of a queue as it is now."""
        return cls(
            directory=queue.directory,
            topic=queue.topic,
            queue_id=queue.queue_id,
            first=queue.min_offset if queue.appended else None,
            next_slot=queue.max_offset,
            units=queue.appended,
            filled=queue.filled,
            misplaced=queue.misplaced,
            doubled=queue.doubled + queue.skipped,
        )


def file_path(directory: str, topic: str, queue_id: int, base: int) -> str:
    """Path of the file of a queue that begins at byte `base`, relative to the store."""
    return f"{directory}/{topic}/{queue_id}/{file_name(base)}"


class QueueSink(Protocol):
    """Takes the records of queues in the order of the log."""

    def append(self, key: Key, run: QueueRecords, lost: int) -> None:
        """See `ConsumeQueue.append`."""


class Queues:
    """Queues by topic and number, each made when its first record comes, with `disk` to write to.

    turned: topics whose batches were seen only after a plain queue of theirs had been made; nothing is
    built of them, and they want another reading of the log with `rules` that name them.
    """

    def __init__(self, rules: FileRules, files: DerivedFiles, kernels: Kernels) -> None:
        self._rules = rules
        self._files = files
        self._kernels = kernels
        self._made: dict[Key, ConsumeQueue | BatchConsumeQueue] = {}
        self._plain: set[str] = set()
        self.turned: set[str] = set()

    def append(self, key: Key, run: QueueRecords, lost: int = 0) -> None:
        """See `ConsumeQueue.append`."""
        topic = key[0]
        batch = run.counts is not None or topic in self._rules.batch_topics
        if batch and topic in self._plain:
            self._turn(topic)
        if topic in self.turned:
            return
        if batch:
            run = run.without_others()
            if not len(run):
                return
        else:
            self._plain.add(topic)
        queue = self._made.get(key)
        if queue is None:
            queue = self._made[key] = self._make(*key, batch=batch)
        if isinstance(queue, ConsumeQueue) and not queue.files.files:
            run = _nameable(queue, run)
        queue.append(run, lost)

    def built(self) -> dict[Key, BuiltQueue]:
        """What was built up to now."""
        return {key: BuiltQueue.of(queue) for key, queue in self._made.items()}

    def _turn(self, topic: str) -> None:
        self._plain.remove(topic)
        self.turned.add(topic)
        self._made = {key: queue for key, queue in self._made.items() if key[0] != topic}
        ours = tuple(f"{kind}/{topic}/" for kind in ("consumequeue", "consumequeue_ext"))
        for path in [path for path in self._files.times if path.startswith(ours)]:
            self._files.remove(path)

    def _make(self, topic: str, queue_id: int, *, batch: bool) -> ConsumeQueue | BatchConsumeQueue:
        rules = self._rules
        kind = BatchConsumeQueue if batch else ConsumeQueue
        size = rules.batch_queue_size if kind is BatchConsumeQueue else rules.consume_queue_size
        files = MappedFiles(size, f"{kind.directory}/{topic}/{queue_id}", disk=self._files)
        if kind is BatchConsumeQueue:
            return BatchConsumeQueue(topic, queue_id, files, "pread", keep_units=False)
        extension = (
            ExtensionFiles(topic, queue_id, rules.extension_size, self._files) if rules.extends else None
        )
        return ConsumeQueue(topic, queue_id, files, "pread", None, self._kernels, extension=extension)


def _nameable(queue: ConsumeQueue, run: QueueRecords) -> QueueRecords:
    """From the first record on whose slot has a place; a broker names its first file by whatever comes."""
    sound = (run.slots >= 0) & (run.slots < LARGEST_SLOT)
    start = int(np.argmax(sound)) if sound.any() else len(run)
    queue.doubled += start
    return run.behind(start) if start else run
