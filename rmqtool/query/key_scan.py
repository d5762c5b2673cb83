"""Keys in the log itself: the hashes of all keys of a run, compared as one column."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from formats.commitlog import SysFlag
from rmqtool.query.not_read import not_read
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import Records
from rmqtool.scan.fields import TORN, Check, Field, Issue
from rmqtool.scan.keys import key_hashes
from rmqtool.scan.log import LogScan, scan_log
from rmqtool.scan.opened import odd_rows
from rmqtool.scan.options import data_bytes
from rmqtool.scan.sound import RunsWithoutKeys
from rmqtool.scan.table import to_batch

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import numpy.typing as npt

    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.segments import SegmentSet

COMPARED = ("physical_offset", "topic", "keys", "uniq_key", "store_timestamp")
"""columns by which a candidate is judged"""


class Hashed(Protocol):
    """Wanted keys by their hashes: `WantedKeys`, or a `KeySieve`, which lets some others through."""

    @property
    def topic(self) -> str | None:
        """The one that is wanted, None for any."""

    @property
    def bits(self) -> npt.NDArray[np.uint8]:
        """Of a sieve that has the hash of each key, see `kernels.hashes.first_in_sieve`."""

    def hits(self, topic: str, hashes: npt.NDArray[np.int32]) -> npt.NDArray[np.bool_]:
        """Which of these index hashes are of a wanted key in the topic."""


class KeyScan:
    """Reads parts of a log for records whose keys have a wanted hash; `matching` tells which really do.

    not_covered: what could not be read, or is not a record, as in `store.coverage`. reached: physical offset
    up to which the log was read.
    """

    def __init__(
        self,
        wanted: Hashed,
        window: tuple[int | None, int | None],
        reading: ReadOptions,
        columns: Sequence[str] = COMPARED,
    ) -> None:
        self._wanted = wanted
        self._columns = columns
        self._window = window
        self._reading = reading
        self.not_covered: list[dict[str, Any]] = []
        self.reached = 0

    def read(self, segments: SegmentSet, start: int, end: int) -> Iterator[pa.RecordBatch]:
        """Candidates among the records at [start, end), which begins at a record or at the log's start."""
        self._kernels = choose_kernels(min(data_bytes(segments), end - start))
        self._hashing = self._kernels.hashes
        how = LogScan(
            columns=self._columns,
            choose=self._choose,
            offsets=(start, end),
            checks=Check.TEXT,
            options=self._reading,
            passing=lambda kernels: RunsWithoutKeys(kernels, Check.TEXT, self._wanted.bits),
        )
        for piece in scan_log(segments, how):
            content = piece.content
            if isinstance(content, pa.RecordBatch):
                yield content
                if content.num_rows:
                    self.reached = content["physical_offset"][-1].as_py()
                continue
            self.reached = max(self.reached, piece.segment.base + content.position)
            self.not_covered += not_read(piece.segment, content)

    def _choose(self, records: Records, base: int, path: str) -> Records:
        rows = records.rows
        low, high = self._window
        if low is not None:
            rows = rows[rows[:, Field.STORE_TIMESTAMP] >= low]
        if high is not None:
            rows = rows[rows[:, Field.STORE_TIMESTAMP] < high]
        if len(rows):
            rows = rows[self._has_hash(Records(rows, records.window, records.origin), base, path)]
        return Records(rows, records.window, records.origin)

    def _has_hash(self, records: Records, base: int, path: str) -> npt.NDArray[np.bool_]:
        """Which records have a key with a wanted hash, or damaged text that may hide one.

        Also rolled back ones, which no index has.
        """
        rows = records.rows
        if np.bitwise_or.reduce(rows[:, Field.SYS_FLAG]) & int(SysFlag.ROLLBACK) == int(SysFlag.ROLLBACK):
            rows = rows.copy()
            rows[:, Field.SYS_FLAG] &= ~int(SysFlag.ROLLBACK)
        hashes, owners = key_hashes(self._hashing, Records(rows, records.window, records.origin))
        if self._wanted.topic is not None:
            hit = self._wanted.hits(self._wanted.topic, hashes)
        else:
            hit = self._in_any_topic(records, base, path, hashes, owners)
        found = np.zeros(len(rows), np.bool_)
        found[owners[hit]] = True
        if odd_rows(self._kernels, records):
            found |= (rows[:, Field.ISSUES] & int(TORN | Issue.PROPERTIES_UTF8)) != 0
        return found

    def _in_any_topic(
        self, records: Records, base: int, path: str, hashes: np.ndarray, owners: np.ndarray
    ) -> npt.NDArray[np.bool_]:
        batch = to_batch(records, base=base, path=path, kernels=self._kernels, columns=("topic",))
        coded = pc.dictionary_encode(batch["topic"])
        numbers = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False)[owners]
        hit = np.zeros(len(hashes), np.bool_)
        for number, topic in enumerate(coded.dictionary.to_pylist()):
            of_topic = np.flatnonzero(numbers == number)
            hit[of_topic] = self._wanted.hits(topic, hashes[of_topic])
        return hit
