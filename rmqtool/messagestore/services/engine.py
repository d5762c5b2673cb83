"""What services do with a store: read its queues, append records that stand for others, keep tables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rmqtool.messagestore.log_reader import RecordCursor
from rmqtool.messagestore.messages import StoredMessage
from rmqtool.store.releases import version_key

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy.typing as npt

    from rmqtool.messagestore.appending import NotAppendedError, Place
    from rmqtool.messagestore.log_reader import LogReader
    from rmqtool.messagestore.memory.routing import RoutedReader
    from rmqtool.messagestore.messages import GetResult
    from rmqtool.messagestore.records import Prepared, RecordMaker
    from rmqtool.messagestore.settings import StoreSettings
    from rmqtool.messagestore.state_files import StateFiles
    from rmqtool.messagestore.topics import Topics
    from rmqtool.messagestore.writing import Writer
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.store.layout import Store

    Ints = npt.NDArray[np.int64]
    Copy = tuple[str, int, Prepared]
    """topic, queue and record"""


class Units(NamedTuple):
    """Units of a plain queue. first: queue offset of the first of them."""

    first: int
    physical_offsets: Ints
    sizes: Ints
    codes: Ints

    def part(self, start: int, stop: int) -> Units:
        """Some of them, by their numbers here."""
        places, sizes = self.physical_offsets[start:stop], self.sizes[start:stop]
        return Units(self.first + start, places, sizes, self.codes[start:stop])


@dataclass(frozen=True)
class Engine:
    """An open store as its services see it. stored: its files as they were when it was opened.

    catch_up: dispatches all that was written. flush: all that was written is on the medium when it returns.
    clock: ms. clean: the store was closed in order before. get: as `MessageStore.get`. wait: until messages
    have come, at most so many seconds.
    """

    stored: Store
    release: str
    settings: StoreSettings
    files: StateFiles
    topics: Topics
    maker: RecordMaker
    writer: Writer
    reader: RoutedReader
    log: LogReader
    catch_up: Callable[[], None]
    flush: Callable[[], bool]
    clock: Callable[[], int]
    clean: bool
    kernels: Kernels
    get: Callable[..., GetResult]
    wait: Callable[[float], None]

    def since(self, release: tuple[int, int, int]) -> bool:
        """Whether the store is of that release or a later one."""
        return version_key(self.release) >= release

    @property
    def of_5(self) -> bool:
        """Whether it is a store of 5.x."""
        return self.since((5, 0, 0))

    def offsets(self, topic: str, queue_id: int) -> tuple[int, int]:
        """Queue offset of the first message, and of the next one; twice 0 without the queue."""
        return self.reader.bounds(topic, queue_id)

    def units(self, topic: str, queue_id: int, offset: int, most: int) -> Units | None:
        """Units from a queue offset on, those of one file, None where none are.

        Raises `StoreIOError`, `UnreadableError`.
        """
        queue = self.reader.queue(topic, queue_id)
        found = None if queue is None or queue.batch else queue.slice_from(offset, most)
        if found is None or not len(found[1]):
            return None
        first, units = found
        return Units(
            first,
            units["physical_offset"].astype(np.int64),
            units["size"].astype(np.int64),
            units["tags_code"].astype(np.int64),
        )

    def records(self, physical_offsets: Sequence[int]) -> list[StoredMessage | None]:
        """Messages at these places, None where none begins. Raises as `units`."""

        def read() -> list[bytes | None]:
            cursor = RecordCursor(self.log)
            return [cursor.record(one) for one in physical_offsets]

        found = self.log.retried(read, physical_offsets)
        return [None if one is None else StoredMessage(one) for one in found]

    def append(self, copies: Sequence[Copy]) -> list[Place | NotAppendedError]:
        """Appends records one behind the other; nothing is waited for (`WAIT` is false for all of them).

        Raises `IllegalMessageError` where the store takes nothing now, `StoreClosedError`.
        """
        return self.writer.append_prepared(copies)
