"""Keys as columns of numbers: `String#hashCode` of many at once, and index hashes from them.

`hash(a + b) = hash(a) * 31^length(b) + hash(b)`, so the part of a key is computed once for all topics.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formats.java import java_hash, utf16_length

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    Hashes = npt.NDArray[np.int32]
    Words = npt.NDArray[np.uint64]

_FACTOR = 31
WORD = np.uint64((1 << 32) - 1)
_LONGEST = 64
"""characters of a key up to which all of a column take each step together"""


def hash_columns(keys: pa.Array) -> tuple[Words, Words]:
    """Java's length (UTF-16 units) and hash (its 32 bits) of each string of a column without nulls."""
    ends = np.frombuffer(keys.buffers()[1], np.int32)[keys.offset : keys.offset + len(keys) + 1]
    data = np.frombuffer(keys.buffers()[2] or b"", np.uint8)
    starts, lengths = ends[:-1].astype(np.int64), np.diff(ends).astype(np.int64)
    hashes = np.zeros(len(keys), np.uint64)
    for place in range(min(int(lengths.max(initial=0)), _LONGEST)):
        longer = lengths > place
        some = slice(None) if longer.all() else longer
        hashes[some] = hashes[some] * np.uint64(_FACTOR) + data[starts[some] + place]
    hashes &= WORD
    units = lengths.astype(np.uint64)
    odd = np.concatenate(([0], np.cumsum(data[ends[0] : ends[-1]] >= 0x80)))
    wide = odd[ends[1:] - ends[0]] > odd[ends[:-1] - ends[0]]
    for number in np.flatnonzero(wide | (lengths > _LONGEST)).tolist():
        text = keys[number].as_py()
        units[number], hashes[number] = utf16_length(text), java_hash(text) & int(WORD)
    return units, hashes


def powers_of(lengths: Words) -> Words:
    """31^length of each, its low 32 bits."""
    distinct, places = np.unique(lengths, return_inverse=True)
    powers = np.array([pow(_FACTOR, one, 1 << 32) for one in distinct.tolist()], np.uint64)
    return powers[places]


def topic_hash(topic: str) -> Words:
    """The hash of what stands in front of a key of this topic, as an array of one."""
    return np.array([java_hash(f"{topic}#") & int(WORD)], np.uint64)


def index_hashes(topic: str, powers: Words, hashes: Words) -> Hashes:
    """Index hash of every key in a topic (`IndexFile#indexKeyHashMethod`)."""
    signed = ((topic_hash(topic) * powers + hashes) & WORD).astype(np.uint32).view(np.int32).astype(np.int64)
    positive = np.abs(signed)
    positive[positive == 1 << 31] = 0  # which has no positive partner
    return positive.astype(np.int32)
