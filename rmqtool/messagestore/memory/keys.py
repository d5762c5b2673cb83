"""Messages of memory topics by key: each chunk's keys by their hashes, made when first asked for."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from formats.index import key_hash
from rmqtool.errors import UsageError
from rmqtool.messagestore.messages import StoredMessage
from rmqtool.scan.fields import Field
from rmqtool.scan.keys import key_hashes

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from rmqtool.messagestore.by_key import KeyReader
    from rmqtool.messagestore.memory.log import MemoryLog
    from rmqtool.messagestore.memory.topic_log import Chunk

    Ints = npt.NDArray[np.int32]


class MemoryKeys:
    """See `KeyReader`, of memory topics. What one had in the log before it was one comes in front."""

    def __init__(self, stored: KeyReader, memory: MemoryLog) -> None:
        self._stored, self._memory = stored, memory

    def find(self, topic: str, key: str, limit: int, begin: int, end: int | None) -> list[StoredMessage]:
        """See `KeyReader.find`."""
        found = newest_with_key(self._memory, topic, key, limit, begin, end)
        with suppress(UsageError):  # without an index
            found = self._stored.find(topic, key, limit - len(found), begin, end) + found
        return found

    def find_each(
        self, topic: str, keys: Sequence[str], limit: int, begin: int, end: int | None
    ) -> dict[str, list[StoredMessage]]:
        """See `KeyReader.find_each`."""
        return {key: self.find(topic, key, limit, begin, end) for key in keys}


def newest_with_key(
    log: MemoryLog, topic: str, key: str, limit: int, begin: int, end: int | None
) -> list[StoredMessage]:
    """The newest `limit` messages of a topic with a key, stored from `begin` to `end` (ms), oldest first."""
    found: list[StoredMessage] = []
    value = key_hash(topic, key)
    for chunk in reversed(log.chunks_of(topic)):
        for raw in _with_hash(log, chunk, value):
            if len(found) >= limit:
                return found[::-1]
            message = StoredMessage(raw)
            at = message.store_timestamp
            if message.has_key(topic, key) and at >= begin and (end is None or at < end):
                found.append(message)
    return found[::-1]


def _with_hash(log: MemoryLog, chunk: Chunk, value: int) -> Iterator[bytes]:
    """Records of a chunk with a key of this hash, the newest first."""
    with log.lock:
        hashes, positions, sizes = _hashes(log, chunk)
        low = chunk.low
    first, last = np.searchsorted(hashes, value, "left"), np.searchsorted(hashes, value, "right")
    found = zip(positions[first:last].tolist(), sizes[first:last].tolist(), strict=True)
    for at, size in sorted({*found}, reverse=True):
        if at < low:
            return
        yield bytes(chunk.data[at : at + size])


def _hashes(log: MemoryLog, chunk: Chunk) -> tuple[Ints, Ints, Ints]:
    """Hashes of all keys in ascending order, and where their records begin and how long they are.

    They are kept with the chunk, 12 bytes a key, and made again when it has grown.
    """
    kept = chunk.keys
    if kept is not None and kept[0] == chunk.used:
        return kept[1]
    parts = []
    for run in log.records(chunk):
        hashes, owners = key_hashes(log.kernels.hashes, run)
        rows = run.rows[owners]
        parts.append((hashes, rows[:, Field.POSITION] - run.origin, rows[:, Field.STORE_SIZE]))
    hashes, positions, sizes = (np.concatenate(one).astype(np.int32) for one in zip(*parts, strict=True))
    order = np.argsort(hashes, kind="stable")
    made = hashes[order], positions[order], sizes[order]
    chunk.keys = chunk.used, made
    return made
