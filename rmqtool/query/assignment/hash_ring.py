"""The ring of consistent hashing (`ConsistentHashRouter`)."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

_POINTS = 10
"""of each client (`virtualNodeCnt`)"""
_HASHED = 4


def ring_hash(text: str) -> int:
    """The first four bytes of the MD5, without a sign (`ConsistentHashRouter$MD5Hash#hash`)."""
    digest = hashlib.md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()
    return int.from_bytes(digest[:_HASHED], "big")


class HashRing:
    """Points of clients. A client that is given twice has twice as many; of equal points the last stays."""

    def __init__(self, clients: Iterable[str]) -> None:
        self._owners: dict[int, str] = {}
        for client in clients:
            there = sum(one == client for one in self._owners.values())
            for number in range(there, there + _POINTS):
                self._owners[ring_hash(f"{client}-{number}")] = client
        self._points = sorted(self._owners)

    def owner(self, text: str) -> str | None:
        """Whose point is the first one at or behind the text's, None on an empty ring."""
        if not self._points:
            return None
        at = bisect_left(self._points, ring_hash(text))
        return self._owners[self._points[at % len(self._points)]]
