"""Many keys as columns: their index hashes in any topic, without hashing them again for each."""

from __future__ import annotations

from collections import OrderedDict
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from rmqtool.query.key_columns import hash_columns, index_hashes, powers_of
from rmqtool.query.key_sieve import KeySieve, codes_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy.typing as npt

    from rmqtool.query.key_columns import Hashes

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
        lengths, self._hashes = hash_columns(pa.array(self.keys, pa.string()))
        self._powers = powers_of(lengths)
        self._lengths = lengths
        self._known: OrderedDict[str, Hashes] = OrderedDict()

    @cached_property
    def bits(self) -> npt.NDArray[np.uint8]:
        """See `key_scan.Hashed`."""
        return KeySieve.of([codes_of(self._lengths, self._hashes)], len(self.keys)).bits

    def matches(self, topic: str | None) -> bool:
        """Whether records of the topic are wanted at all."""
        return topic is not None and self.topic in {None, topic}

    def of_record(self, keys: list[str] | None, uniq_key: str | None) -> frozenset[str]:
        """Those that a record with these KEYS and this UNIQ_KEY has."""
        have = frozenset() if self._uniq_key_only else self.set.intersection(keys or ())
        return have | {uniq_key} if uniq_key in self.set else have

    def hits(self, topic: str, hashes: Hashes) -> npt.NDArray[np.bool_]:
        """Which of these index hashes are of a wanted key in the topic."""
        wanted = self.in_topic(topic)
        if len(wanted) == 1:
            same: npt.NDArray[np.bool_] = hashes == wanted[0]
            return same
        places = np.minimum(wanted.searchsorted(hashes), max(len(wanted) - 1, 0))
        return wanted[places] == hashes if len(wanted) else np.zeros(len(hashes), bool)

    def in_topic(self, topic: str) -> Hashes:
        """Index hashes of all keys in that topic, sorted, each once."""
        known = self._known.get(topic)
        if known is None:
            known = np.sort(index_hashes(topic, self._powers, self._hashes))
            known = known[np.diff(known, prepend=-1) != 0]  # np.unique takes many times as long
            self._remember(topic, known)
        else:
            self._known.move_to_end(topic)
        return known

    def _remember(self, topic: str, hashes: Hashes) -> None:
        self._known[topic] = hashes
        while len(self._known) > 1 and len(self._known) * max(hashes.nbytes, 1) > _HELD_BYTES:
            self._known.popitem(last=False)
