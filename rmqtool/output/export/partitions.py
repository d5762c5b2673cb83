"""Which records belong to which directory, by topic and day, and those that wait to be written there."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING
from urllib.parse import quote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
LONGEST = 200
"""bytes of a value in the name of a directory, which has 255 at most"""
_HALF_ESCAPE = re.compile("%.?$")


class Waiting:
    """Records that wait for their row groups, over all partitions.

    They lie in the batches in which they came: a batch for each of a thousand partitions would need many
    times the memory of the few rows in it.
    """

    def __init__(self, keys: Sequence[str]) -> None:
        self._keys = tuple(keys)
        self._places: dict[str, int] = {}
        self._batches: list[pa.RecordBatch] = []
        self._owners: list[Ints] = []
        self.bytes = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Takes records."""
        self._batches.append(batch)
        self._owners.append(self._numbers(batch))
        self.bytes += batch.nbytes

    def taken(self, leave: int) -> Iterator[tuple[str, pa.Table]]:
        """Partitions with their records, largest first, until no more than `leave` bytes wait."""
        if not self._batches:
            return
        rows, owners = pa.concat_batches(self._batches), np.concatenate(self._owners)
        size, self._batches, self._owners, self.bytes = self.bytes, [], [], 0
        order = np.argsort(owners, kind="stable")
        numbers, starts = np.unique(owners[order], return_index=True)
        summed = np.concatenate(([0], np.cumsum(rows["store_size"].to_numpy()[order], dtype=np.int64)))
        ends = np.append(starts[1:], len(order))
        shares = summed[ends] - summed[starts]
        whole = max(int(summed[-1]), 1)
        names = list(self._places)
        kept = int(summed[-1])
        largest = np.argsort(-shares, kind="stable").tolist()
        for done, which in enumerate(largest):
            if kept * size <= leave * whole:
                self._keep(rows, owners, numbers[largest[done:]])
                return
            kept -= int(shares[which])
            chosen = order[starts[which] : ends[which]]
            part = rows if len(chosen) == len(order) else rows.take(pa.array(chosen))
            yield names[numbers[which]], pa.Table.from_batches([part])

    def _keep(self, rows: pa.RecordBatch, owners: Ints, numbers: Ints) -> None:
        left = np.flatnonzero(np.isin(owners, numbers))
        self._batches, self._owners = [rows.take(pa.array(left))], [owners[left]]
        self.bytes = self._batches[0].nbytes

    def _numbers(self, batch: pa.RecordBatch) -> Ints:
        """Of the partition of each record, among all those that were met."""
        columns = [_PARTITION_VALUES[key](batch) for key in self._keys]
        coded = [pc.dictionary_encode(column, null_encoding="encode") for column in columns]
        codes = np.stack([one.indices.to_numpy() for one in coded])
        distinct, places = np.unique(codes, axis=1, return_inverse=True)
        values = [[_escaped(value) for value in one.dictionary.to_pylist()] for one in coded]
        names = (
            "/".join(f"{key}={one[code]}" for key, one, code in zip(self._keys, values, column, strict=True))
            for column in distinct.T
        )
        numbers = [self._places.setdefault(name, len(self._places)) for name in names]
        return np.array(numbers, np.int64)[places.reshape(-1)]


def _day(batch: pa.RecordBatch) -> pa.Array:
    return pc.strftime(batch["store_time"], format="%Y-%m-%d")


_PARTITION_VALUES: dict[str, Callable[[pa.RecordBatch], pa.Array]] = {
    "topic": lambda batch: batch["topic"],
    "day": _day,
}


def _escaped(value: str | None) -> str:
    """A value as part of a path, as Hive and its readers have it."""
    if value is None or not value:
        return _NO_VALUE
    quoted = quote(value, safe=" ")
    return shortened(quoted.replace(".", "%2E") if not value.strip(".") else quoted)


def shortened(quoted: str) -> str:
    """A quoted value that a file system takes as a name: a long one is cut and ends in its digest.

    Two values never get the same name.
    """
    if len(quoted) <= LONGEST:
        return quoted
    digest = hashlib.sha256(quoted.encode()).hexdigest()[:32]
    return f"{_HALF_ESCAPE.sub('', quoted[:LONGEST])}~{digest}"
