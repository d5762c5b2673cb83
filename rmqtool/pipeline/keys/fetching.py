"""Records at known places: read one by one where they are few, in one pass where they lie close together."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rmqtool.errors import RmqtoolError
from rmqtool.pipeline.keys.key_request import noted
from rmqtool.pipeline.opening import open_any
from rmqtool.query.select_found import FoundFilter
from rmqtool.scan.events import Records
from rmqtool.scan.fields import TORN, Field
from rmqtool.scan.log import LogScan, scan_log
from rmqtool.scan.picked import Damaged, Missing, pick
from rmqtool.store.coverage import unreadable
from rmqtool.store.names import as_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    import numpy.typing as npt

    from rmqtool.pipeline.keys.key_request import KeyRequest
    from rmqtool.pipeline.options import SourceOptions
    from rmqtool.store.layout import Store
    from rmqtool.store.segments import SegmentSet

    Ints = npt.NDArray[np.int64]

_CLOSE = 1 << 15
"""bytes a record up to which reading everything is quicker than going to each"""
_APART = 1 << 20
"""bytes between two records that are never read through"""
_OF_DAMAGE = ("segment", "physical_offset", "store_size", "crc", "issues")
_FEW = 256
"""records that are held together where they are read one by one"""


def fetch(segments: SegmentSet, offsets: Ints, columns: Sequence[str]) -> Iterator[pa.RecordBatch | Missing]:
    """The records that begin at `offsets` (ascending, each once), as `scan.picked.pick` has them.

    In physical order, but for those that a scan does not come to, which follow behind their neighbours.
    columns: with `physical_offset`.
    """
    single = bool(segments.twins() or segments.overlaps())
    apart = np.diff(offsets.astype(np.float64)) > _APART  # items may hold any number
    for near in np.split(offsets, np.flatnonzero(apart) + 1):
        if not len(near):
            continue
        left = near
        if not single and len(near) > 1 and int(near[-1]) - int(near[0]) < len(near) * _CLOSE:
            seen = np.zeros(len(near), bool)
            for batch in _scanned(segments, near, columns):
                seen[near.searchsorted(batch["physical_offset"].to_numpy())] = True
                yield batch
            left = near[~seen]
        for start in range(0, len(left), _FEW):
            yield from pick(segments, left[start : start + _FEW].tolist(), columns)


def _scanned(segments: SegmentSet, offsets: Ints, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    def choose(records: Records, base: int, path: str) -> Records:  # noqa: ARG001 - as a scan calls it
        rows = records.rows
        found = rows[:, Field.POSITION] + base
        places = np.minimum(offsets.searchsorted(found), len(offsets) - 1)
        wanted = (offsets[places] == found) & (rows[:, Field.STORED_PHYSICAL_OFFSET] == found)
        return Records(rows[wanted], records.window, records.origin)

    how = LogScan(columns=columns, choose=choose, offsets=(int(offsets[0]), int(offsets[-1]) + 1))
    for piece in scan_log(segments, how):
        if isinstance(piece.content, pa.RecordBatch) and piece.content.num_rows:
            yield piece.content


def hits(
    store: Store, path: str, offsets: Ints, keys: pa.Array, asked: KeyRequest
) -> Iterator[pa.RecordBatch]:
    """Records at `offsets` with their wanted `keys` as `hits_schema` has them; notes of those not there."""
    judge = FoundFilter(asked.chosen)
    own = tuple(name for name in asked.columns if name != "store")
    columns = tuple(dict.fromkeys((*own, *_OF_DAMAGE, *judge.columns)))
    shown = tuple(dict.fromkeys((*own, "segment", "physical_offset")))
    for made in fetch(store.segments, offsets, columns):
        if isinstance(made, Missing):
            place = offsets.searchsorted([made.physical_offset])
            yield noted({"store": path, "not_covered": [made.row()]})
            batch = pa.record_batch({"physical_offset": offsets[place]})
            yield _named(batch, path, keys.take(pa.array(place)), kept=False)
            continue
        passes = judge.mask(made)
        if damaged := list(_damaged(store, made.filter(pa.array(passes)))):
            yield noted({"store": path, "not_covered": damaged})
        matched = keys.take(pa.array(offsets.searchsorted(made["physical_offset"].to_numpy())))
        for kept, names in ((passes, shown), (~passes, ("segment", "physical_offset"))):
            if kept.any():
                mask = pa.array(kept)
                batch = made.select(list(names)).filter(mask)
                yield _named(batch, path, matched.filter(mask), kept=names is shown)


def _damaged(store: Store, batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """Rows of `not_covered` for listed records whose body fails its CRC, or that are torn."""
    for row in batch.select(list(_OF_DAMAGE)).to_pylist():
        bad, torn = row["crc"] == "bad", bool(row["issues"] & int(TORN))
        place = store.segments.locate(row["physical_offset"]) if bad or torn else None
        if place is not None:
            at, size = row["physical_offset"], row["store_size"]
            yield Damaged(place[0].file.display_path, place[1], at, size, torn=not bad).row()


def _named(batch: pa.RecordBatch, path: str, matched: pa.Array, *, kept: bool) -> pa.RecordBatch:
    store, flag = (pa.repeat(pa.scalar(one), batch.num_rows) for one in (as_text(path), kept))
    return (
        batch.append_column("store", store).append_column("matched_keys", matched).append_column("kept", flag)
    )


@dataclass(frozen=True)
class ByStore:
    """A task over sorted rows (`store`: number, `physical_offset`, …): hands on those of one store at a time.

    work: store, its path, the rows → batches. What cannot be read is a note.
    """

    paths: tuple[str, ...]
    options: SourceOptions
    work: Callable[[Store, str, pa.RecordBatch], Iterator[pa.RecordBatch]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Rows of the work, and notes."""
        opened: tuple[int, Store | None] = (-1, None)
        for batch in batches:
            numbers = batch["store"].to_numpy()
            borders = [0, *(np.flatnonzero(np.diff(numbers)) + 1).tolist(), len(numbers)]
            for low, high in pairwise(borders):
                if low == high:
                    continue
                number = int(numbers[low])
                path = self.paths[number]
                try:
                    if opened[0] != number:
                        opened = number, open_any(path, config=self.options.config)
                    if opened[1] is not None:
                        yield from self.work(opened[1], path, batch.slice(low, high - low))
                except RmqtoolError as error:
                    opened = number, None
                    yield noted({"store": path, "not_covered": [unreadable(".", str(error))]})


@dataclass(frozen=True)
class FetchHits:
    """asked: broadcast. For `ByStore`."""

    asked: Any

    def __call__(self, store: Store, path: str, rows: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
        """Records with their matched keys."""
        yield from hits(
            store, path, rows["physical_offset"].to_numpy(), rows["matched_keys"], self.asked.value
        )
