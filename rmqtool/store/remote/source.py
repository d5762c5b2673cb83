"""Bytes of a remote file in ranges, through a cache that all files of a process share."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from rmqtool.errors import UnreadableError, VanishedError
from rmqtool.store.bytes import SourceBase
from rmqtool.store.remote.address import address_of, failures, file_system, refused
from rmqtool.store.remote.facts import known_files

if TYPE_CHECKING:
    import os

    from rmqtool.store.bytes import Window

BLOCK_BYTES = 256 << 10
"""bytes that are asked for at least: about what a request costs in time"""
WINDOW_BYTES = 8 << 20
"""bytes asked for at once when reading on from one place"""
CACHE_BYTES = 64 << 20
"""bytes of blocks that a process keeps"""

_VERSIONS = ("ETag", "etag", "LastModified", "mtime", "updated", "created")
"""by which file systems tell one content of a file from the next"""


Version: TypeAlias = "tuple[tuple[str, Any], ...]"
"""(name, value) of marks, size among them"""
_Key: TypeAlias = "tuple[str, str, int]"


class _Cache:
    """The blocks used last, by address, version of the file, and number."""

    def __init__(self) -> None:
        self._blocks: OrderedDict[_Key, bytes] = OrderedDict()
        self._lock = threading.Lock()
        self._held = 0

    def get(self, key: _Key) -> bytes | None:
        with self._lock:
            found = self._blocks.get(key)
            if found is not None:
                self._blocks.move_to_end(key)
            return found

    def put(self, key: _Key, block: bytes) -> None:
        with self._lock:
            self._held += len(block) - len(self._blocks.pop(key, b""))
            self._blocks[key] = block
            while self._held > CACHE_BYTES and len(self._blocks) > 1:
                _, dropped = self._blocks.popitem(last=False)
                self._held -= len(dropped)


_cache = _Cache()


class _ReplacedError(Exception):
    """The far side has another version of the file now, or none. Its text says which."""


class RemoteSource(SourceBase):
    """One remote file; windows are copies. Missing blocks that lie side by side are one request."""

    window_bytes = WINDOW_BYTES

    def __init__(self, system: Any, address: str, facts: dict[str, Any], name: str) -> None:
        super().__init__(name, int(facts["size"] or 0))
        reported = next((facts[one] for one in _VERSIONS if facts.get(one)), "")
        self._version = f"{reported} {self._size}"
        self._facts = facts
        self._system = system
        self._address = address

    def window(self, offset: int, length: int) -> Window:
        """See `ByteSource.window`; raises `StoreIOError` when the far side does not answer."""
        wanted = self.clamp(offset, length, self._size)
        buffer = np.empty(wanted, dtype=np.uint8)
        done = 0
        try:
            blocks = self._blocks(offset, wanted)
        except _ReplacedError as error:
            reason = f"the file was {error} while it was read"
            raise UnreadableError(self._name, offset, wanted, reason) from None
        for at, block in blocks:
            start = offset + done - at
            some = min(len(block) - start, wanted - done)
            if some <= 0:
                break
            buffer[done : done + some] = np.frombuffer(block, np.uint8, some, start)
            done += some
        made = buffer[:done]
        made.flags.writeable = False
        return made

    def _blocks(self, offset: int, length: int) -> list[tuple[int, bytes]]:
        """(position, bytes) of the blocks that hold a range."""
        if not length:
            return []
        numbers = range(offset // BLOCK_BYTES, -(-(offset + length) // BLOCK_BYTES))
        found = {number: _cache.get((self._address, self._version, number)) for number in numbers}
        missing = [number for number in numbers if found[number] is None]
        while missing:
            run = 1
            while run < len(missing) and missing[run] == missing[0] + run:
                run += 1
            found.update(self._fetched(missing[0], run))
            missing = missing[run:]
        return [(number * BLOCK_BYTES, found[number] or b"") for number in numbers]

    def _fetched(self, first: int, count: int) -> list[tuple[int, bytes]]:
        start = first * BLOCK_BYTES
        end = min(start + count * BLOCK_BYTES, self._size)
        try:
            data: bytes = self._system.cat_file(self._address, start=start, end=end)
        except FileNotFoundError as error:
            raise _ReplacedError("removed") from error
        except failures() as error:
            self._refuse_another_version()
            raise refused(self._name, error) from error
        self._refuse_another_version()
        made: list[tuple[int, bytes]] = []
        for number in range(first, first + count):
            low = (number - first) * BLOCK_BYTES
            block = bytes(data[low : low + BLOCK_BYTES])
            _cache.put((self._address, self._version, number), block)
            made.append((number, block))
        return made

    def _refuse_another_version(self) -> None:
        """Raises `_ReplacedError` where the file is no longer the one that was opened.

        Asked after each fetch, so that the cache holds under a version what was fetched while it was there.
        """
        try:
            facts = _facts_of(self._system, self._address, self._name)
        except VanishedError as error:
            raise _ReplacedError("removed") from error
        if not _same_version(self._facts, facts):
            raise _ReplacedError("replaced")


def _same_version(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """By size and the marks that both have in one form: listings say less than questions for one file."""
    marks = [name for name in _VERSIONS if name in one and type(one[name]) is type(other.get(name))]
    return all(one[name] == other[name] for name in ("size", *marks[:1]))


def _facts_of(system: Any, address: str, name: str) -> dict[str, Any]:
    """What the far side says of a file at this moment."""
    try:
        system.invalidate_cache(address)
        facts: dict[str, Any] = system.info(address)
    except FileNotFoundError as error:
        raise VanishedError(f"{name}: no such file or directory") from error
    except failures() as error:
        raise refused(name, error) from error
    known_files.put(address, facts)
    return facts


def version_of(facts: dict[str, Any]) -> Version:
    """What of that which a file system says of a file tells one content of it from the next."""
    return tuple((one, facts[one]) for one in ("size", *_VERSIONS) if one in facts)


def open_remote(
    place: str | os.PathLike[str], name: str | None = None, version: Version | None = None
) -> RemoteSource:
    """Opens the file at an address; raises `VanishedError`, `StoreIOError`.

    version: the one that was listed, and is read or none, however long ago and by whomever it was listed.
    Without it the one that is there now.
    """
    address = address_of(place)
    system = file_system(address)
    facts = known_files.get(address) if version is None else dict(version)
    if facts is None:
        facts = _facts_of(system, address, name or address)
    return RemoteSource(system, address, facts, name or address)
