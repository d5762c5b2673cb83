"""Topics in memory for readers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from rmqtool.messagestore.memory.log_reader import MemoryLogReader
from rmqtool.messagestore.memory.queue_view import MemoryQueueView
from rmqtool.messagestore.reading import Reader

if TYPE_CHECKING:
    from rmqtool.broker.get_message import PullLimits
    from rmqtool.messagestore.memory.log import MemoryLog

_ALWAYS_HOT = 1 << 40
"""per cent of the machine's memory, at which a pull takes everything to be in memory"""


class MemoryReader(Reader):
    """Reads topics in memory as `StoredReader` reads those on disk."""

    def __init__(self, log: MemoryLog, limits: PullLimits) -> None:
        self._addressed = MemoryLogReader(log)
        limits = replace(limits, memory_ratio=_ALWAYS_HOT)
        super().__init__(self._addressed, limits, log.kernels, reads_slave=False)
        self._memory = log

    def queue(self, topic: str, queue_id: int) -> MemoryQueueView | None:
        """A queue of a memory topic as it is now, None where there is none."""
        found = self._memory.queue(topic, queue_id)
        return None if found is None else MemoryQueueView(found, self._addressed, self._memory)

    def _timed(self, queue: Any) -> MemoryQueueView:
        return cast("MemoryQueueView", queue)
