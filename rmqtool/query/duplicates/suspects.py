"""Records that share a key with others, as one table: a row for every key of every record."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pyarrow as pa

from rmqtool.query.duplicates.hashes import Room, Share, among, keys_of, text_hashes

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from rmqtool.query.duplicates.hashes import Hashes

_FACTS = (
    "physical_offset", "store_size", "topic", "queue_id", "queue_offset", "born_timestamp", "born_host",
    "uniq_key", "sys_flag",
)  # fmt: skip
COLUMNS = (*_FACTS, "keys")
"""columns of the record table by which duplicates are reported"""


def keyed(batch: pa.RecordBatch, *, by_key: bool) -> pa.Table:
    """A row for every key of a batch: `key`, and what `verdict.judge` asks for of its record."""
    texts, owners = keys_of(batch, by_key=by_key)
    return _rows(batch, texts, owners)


def _rows(batch: pa.RecordBatch, texts: pa.StringArray, owners: npt.NDArray[np.int64]) -> pa.Table:
    facts = pa.Table.from_batches([batch.select(_FACTS)]).take(pa.array(owners, pa.int64()))
    return facts.append_column("key", texts)


@dataclass
class Suspects:
    """Records whose key has one of the sorted `hashes`; `share` is halved as often as memory demands.

    left: the other halves, for further passes.
    """

    hashes: Hashes
    by_key: bool
    share: Share = field(default_factory=Share)
    left: list[Share] = field(default_factory=list)
    room: Room = field(default_factory=Room)
    _parts: list[pa.Table] = field(default_factory=list)
    _held: int = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds the records of a batch."""
        texts, owners = keys_of(batch, by_key=self.by_key)
        if not len(texts):
            return
        hashes = text_hashes(texts)
        hit = self.share.holds(hashes) & among(hashes, self.hashes)
        if hit.any():
            self._parts.append(_rows(batch, texts.filter(pa.array(hit)), owners[hit]))
            self._held += self._parts[-1].nbytes
        while self._held > self.room.bytes and self.share.divisible and len(self.hashes) > 1:
            self._halve()

    def _halve(self) -> None:
        self.share, other = self.share.halves()
        self.left.append(other)
        table = pa.concat_tables(self._parts)
        kept = self.share.holds(text_hashes(table["key"].combine_chunks()))
        self._parts = [table.filter(pa.array(kept))]
        self._held = self._parts[0].nbytes
        self.hashes = self.hashes[self.share.holds(self.hashes)]

    def table(self) -> pa.Table | None:
        """What was found, None when nothing was."""
        return pa.concat_tables(self._parts) if self._parts else None
