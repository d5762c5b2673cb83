"""The tags code that the broker's filter sees: that of the unit, or the one that its extension unit holds."""

from __future__ import annotations

from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from formats.consumequeue import is_ext_address
from rmqtool.errors import VanishedError
from rmqtool.scan.extension import ExtensionLookup
from rmqtool.store.kinds import FileKind

if TYPE_CHECKING:
    from typing import Self

    from rmqtool.store.layout import Store


class UnitTags:
    """The extension files of one queue, open as long as the block lasts."""

    def __init__(self, store: Store, topic: str | None, queue_id: int | None) -> None:
        self._files = [
            file
            for queue in store.queues(FileKind.CONSUMEQUEUE_EXT)
            if (queue.topic, queue.queue_id) == (topic, queue_id)
            for file in queue.files
        ]
        self._open = ExitStack()
        self._lookup: ExtensionLookup | None = None

    def __enter__(self) -> Self:
        if self._files:
            files = []
            for one in self._files:
                with suppress(VanishedError):  # expired since it was listed: nothing lies there
                    files.append((one.base_offset or 0, self._open.enter_context(one.open("pread"))))
            self._lookup = ExtensionLookup(files)
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def of(self, tags_code: int) -> int | None:
        """What an address resolves to, None where nothing lies there; any other code is itself.

        Without extension files no number is an address (`ConsumeQueue#isExtAddr`).
        """
        return tags_code if self._lookup is None or not is_ext_address(tags_code) else self.behind(tags_code)

    def behind(self, address: int) -> int | None:
        """What an address resolves to, None where nothing lies there."""
        return None if self._lookup is None else self._lookup.tags_code(address)
