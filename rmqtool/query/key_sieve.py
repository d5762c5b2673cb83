"""Any number of keys in a few MiB: which index hashes may be of a wanted key.

The code of a key is its length and its Java hash. From an index hash and a topic follows, for each length,
the one code that a key must have (two, since the index holds absolute values), so that no hash of a wanted
key in any topic has to be kept. A bitmap tells most codes that nobody wants; whoever needs to be certain
looks for the codes that are left among those of the keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.query.key_columns import WORD, powers_of, topic_hash
from rmqtool.scan.fields import SIEVE_FACTOR

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    import numpy.typing as npt

    from rmqtool.query.key_columns import Words

    Ints = npt.NDArray[np.int64]

_BITS_A_KEY = 16
_LEAST, _MOST = 20, 29
"""exponents of the number of bits: 128 KiB to 64 MiB"""
_FACTOR = np.uint64(SIEVE_FACTOR)
_SHIFT = np.uint64(32)
_RUN = 1 << 15
"""hashes that are tried at once, few enough for a processor's cache"""


def codes_of(lengths: Words, hashes: Words) -> Ints:
    """The codes of keys of these lengths and hashes (`key_columns.hash_columns`)."""
    return (lengths << _SHIFT | hashes).view(np.int64)


@dataclass(frozen=True)
class KeySieve:
    """lengths: of all wanted keys, each once. bits: 2^exponent, by code. topic: as in `WantedKeys`."""

    topic: str | None
    lengths: Words
    exponent: int
    bits: npt.NDArray[np.uint8]

    @classmethod
    def of(cls, codes: Iterable[Ints], count: int, topic: str | None = None) -> KeySieve:
        """A sieve of the codes of about `count` keys."""
        exponent = min(max((count * _BITS_A_KEY).bit_length(), _LEAST), _MOST)
        bits = np.zeros(1 << (exponent - 3), np.uint8)
        lengths = np.empty(0, np.uint64)
        for some in codes:
            words = some.view(np.uint64)
            places = _places(words, exponent)
            np.bitwise_or.at(bits, places >> 3, np.uint8(1) << (places & 7).astype(np.uint8))
            lengths = np.union1d(lengths, words >> _SHIFT)
        return cls(topic, lengths, exponent, bits)

    def hits(self, topic: str, hashes: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """Which of these index hashes may be of a wanted key in the topic; others surely are not."""
        found = np.zeros(len(hashes), bool)
        for owners, _ in self.codes([topic], hashes):
            found[owners] = True
        return found

    def codes(self, topics: Sequence[str], hashes: npt.NDArray[np.int32]) -> Iterator[tuple[Ints, Ints]]:
        """(places in `hashes`, codes) of the keys that they may stand for in one of the topics."""
        powers = powers_of(self.lengths)
        for start in range(0, len(hashes), _RUN):
            some = hashes[start : start + _RUN]
            for signed in _signs(some):
                for topic in map(topic_hash, topics):
                    for place in range(len(powers)):
                        one = slice(place, place + 1)
                        words = (signed - topic * powers[one]) & WORD | self.lengths[one] << _SHIFT
                        kept = np.flatnonzero(self._has(words))
                        if len(kept):
                            yield kept + start, words[kept].view(np.int64)

    def _has(self, words: Words) -> npt.NDArray[np.bool_]:
        places = _places(words, self.exponent)
        return np.asarray(self.bits[places >> 3] >> (places & 7).astype(np.uint8) & 1, bool)


def _places(words: Words, exponent: int) -> Ints:
    """By the hashes alone, so that kernels need no lengths (`kernels.hashes.first_in_sieve`)."""
    return ((words & WORD) * _FACTOR >> np.uint64(64 - exponent)).view(np.int64)


def _signs(hashes: npt.NDArray[np.int32]) -> tuple[Words, Words]:
    """The two 32-bit hashes of which an index holds this absolute value; 0 also stands for the smallest."""
    positive = hashes.astype(np.int64).view(np.uint64)
    negative = (np.uint64(1 << 32) - positive) & WORD
    negative[positive == 0] = np.uint64(1 << 31)
    return positive, negative
