"""Which messages are meant: the filters that all commands that list messages share, as plain data."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rmqtool.query.subscription import Subscription


@dataclass(frozen=True)
class MessageFilter:
    """A message passes when it passes every field that is set; several values of one field are alternatives.

    `properties` is the exception: all pairs must be there. Ranges are half-open, None means no bound. Times
    are epoch milliseconds. `limit` and `sample` do not choose messages, they stop or thin the listing, so
    they make an answer incomplete with reason "limit".
    """

    topics: tuple[str, ...] = ()
    """globs (`*`, `?`, `[…]`), compared with case"""
    queues: frozenset[int] = frozenset()
    store_from: int | None = None
    store_to: int | None = None
    born_from: int | None = None
    born_to: int | None = None
    offset_from: int | None = None
    """physical offset of the record's first byte"""
    offset_to: int | None = None
    queue_offset_from: int | None = None
    queue_offset_to: int | None = None
    tags: frozenset[str] = frozenset()
    keys: frozenset[str] = frozenset()
    """elements of KEYS, as the broker splits them"""
    uniq_keys: frozenset[str] = frozenset()
    properties: tuple[tuple[str, str], ...] = ()
    body_contains: str | None = None
    """searched as UTF-8 in the decompressed body"""
    subscription: Subscription | None = None
    """what a consumer with such a filter is given"""
    limit: int | None = None
    sample: int | None = None

    @property
    def selects_all(self) -> bool:
        """True when every message passes (whatever `limit` and `sample` say)."""
        chosen = (field for field in fields(self) if field.name not in {"limit", "sample"})
        return all(getattr(self, field.name) in (None, (), frozenset()) for field in chosen)
