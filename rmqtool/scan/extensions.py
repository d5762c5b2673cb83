"""The extension files of a store's consume queues, opened when a unit leads there."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING

from rmqtool.scan.extension import ExtensionLookup
from rmqtool.store.beside import folder_beside
from rmqtool.store.kinds import FileKind

if TYPE_CHECKING:
    from typing import Self

    from rmqtool.store.access import Access
    from rmqtool.store.layout import Store


class Extensions:
    """A context manager: files stay open until it ends, those of a queue are looked for once."""

    def __init__(self, store: Store, access: Access) -> None:
        self._store = store
        self._access = access
        self._known: dict[tuple[str, int], ExtensionLookup | None] = {}
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def of(self, topic: str | None, queue_id: int | None) -> ExtensionLookup | None:
        """Those of a queue; None when there are none."""
        if topic is None or queue_id is None:
            return None
        key = topic, queue_id
        if key not in self._known:
            around = folder_beside(self._store, FileKind.CONSUMEQUEUE_EXT, topic, str(queue_id))
            queues = around.queues(FileKind.CONSUMEQUEUE_EXT) if around is not None else ()
            files = [
                (file.base_offset or 0, self._open.enter_context(file.open(self._access)))
                for queue in queues
                if (queue.topic, queue.queue_id) == key
                for file in queue.files
            ]
            self._known[key] = ExtensionLookup(files) if files else None
        return self._known[key]
