"""A handler that does nothing for a message that was handled before, by its key."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rmqtool.messagestore.messages import StoredMessage

_MOST = 100_000


def message_key(message: StoredMessage) -> str | None:
    """The first of its keys, else its unique key, which a message keeps when it comes again."""
    return next(iter(message.keys), None) or message.uniq_key


class Idempotent:
    """Calls `handler` once for each key, also from several threads, as long as it remembers the key.

    It remembers the last `most` keys that were handled well, in memory. A message without a key is handled
    each time. key: of a message, by default `message_key`.

    >>> handle = Idempotent(lambda message: print(message.body))
    """

    def __init__(
        self,
        handler: Callable[[StoredMessage], bool | None],
        *,
        key: Callable[[StoredMessage], str | None] = message_key,
        most: int = _MOST,
    ) -> None:
        self._handler, self._key, self._most = handler, key, most
        self._done: OrderedDict[str, None] = OrderedDict()
        self._under_way: set[str] = set()
        self._guard = threading.Lock()
        self._changed = threading.Condition(self._guard)

    def __call__(self, message: StoredMessage) -> bool | None:
        """What the handler answers; True for a message that it was called with before."""
        key = self._key(message)
        if key is None:
            return self._handler(message)
        with self._guard:
            while key in self._under_way:
                self._changed.wait()
            if key in self._done:
                self._done.move_to_end(key)
                return True
            self._under_way.add(key)
        good: bool | None = False
        try:
            good = self._handler(message)
        finally:
            with self._guard:
                self._under_way.discard(key)
                if good is not False:
                    self._done[key] = None
                    while len(self._done) > self._most:
                        self._done.popitem(last=False)
                self._changed.notify_all()
        return good
