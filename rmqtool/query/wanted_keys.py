"""Many keys as columns: their index hashes in any topic, without hashing them anew for each."""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

import numpy as np

from formats.java import java_hash, utf16_units

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    Hashes = npt.NDArray[np.int32]

_FACTOR = 31
_WORD = 0xFFFFFFFF
_HELD_BYTES = 64 << 20
"""bytes of hashes that are remembered for topics seen before"""


class WantedKeys:
    """Keys to look for in the index or in records, in one topic or in all (`topic` None).

    uniq_key_only: they are unique ids; elements of KEYS do not count.
    """

    def __init__(self, keys: Iterable[str], topic: str | None = None, *, uniq_key_only: bool = False) -> None:
        self._uniq_key_only = uniq_key_only
        self.keys = tuple(dict.fromkeys(keys))
        self.topic = topic
        self.set = frozenset(self.keys)
        self._hashes = np.array([java_hash(key) & _WORD for key in self.keys], np.uint64)
        lengths = [len(utf16_units(key)) for key in self.keys]
        self._powers = np.array([pow(_FACTOR, one, 1 << 32) for one in lengths], np.uint64)
        self._known: OrderedDict[str, Hashes] = OrderedDict()

    def matches(self, topic: str | None) -> bool:
        """Whether records of the topic are wanted at all."""
        return topic is not None and self.topic in {None, topic}

    def of_record(self, keys: list[str] | None, uniq_key: str | None) -> frozenset[str]:
        """Those that a record with these KEYS and this UNIQ_KEY has."""
        have = frozenset() if self._uniq_key_only else self.set.intersection(keys or ())
        return have | {uniq_key} if uniq_key in self.set else have

    def in_topic(self, topic: str) -> Hashes:
        """Index hash of every key in that topic (`IndexFile#indexKeyHashMethod`), in the order of `keys`.

        `hash(a + b) = hash(a) * 31^length(b) + hash(b)`, so the part of the key is computed once.
        """
        known = self._known.get(topic)
        if known is None:
            begun = np.uint64(java_hash(f"{topic}#") & _WORD)
            known = _folded((begun * self._powers + self._hashes) & np.uint64(_WORD))
            self._remember(topic, known)
        else:
            self._known.move_to_end(topic)
        return known

    def _remember(self, topic: str, hashes: Hashes) -> None:
        self._known[topic] = hashes
        while len(self._known) > 1 and len(self._known) * max(hashes.nbytes, 1) > _HELD_BYTES:
            self._known.popitem(last=False)


def _folded(values: npt.NDArray[np.uint64]) -> Hashes:
    """Java's `Math.abs` of each 32-bit hash, 0 for the one that has no positive partner."""
    signed = values.astype(np.uint32).view(np.int32).astype(np.int64)
    positive = np.abs(signed)
    positive[positive == 1 << 31] = 0
    return positive.astype(np.int32)
