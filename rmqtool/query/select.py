"""Which records of a scan pass a `MessageFilter`: whole columns at once."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rmqtool.scan.events import Records
from rmqtool.scan.fields import Field
from rmqtool.scan.table import to_batch

if TYPE_CHECKING:
    import numpy.typing as npt

    from rmqtool.query.message_filter import MessageFilter
    from rmqtool.scan.kernel_types import Kernels

    Mask = npt.NDArray[np.bool_]


class Selector:
    """A filter made ready to be applied to many runs of records."""

    def __init__(self, wanted: MessageFilter, kernels: Kernels) -> None:
        self._wanted = wanted
        self._kernels = kernels
        self._text = TextFilter(wanted)

    def choose(self, records: Records, base: int | None, path: str = "") -> Records:
        """The records that pass, in the same window. base: of the segment, None for a file that is none."""
        if self._wanted.selects_all:
            return records
        chosen = records.rows[self._row_mask(records.rows, base)]
        if self._text.columns and len(chosen):
            some = Records(chosen, records.window, records.origin)
            batch = to_batch(some, base=base, path=path, kernels=self._kernels, columns=self._text.columns)
            chosen = chosen[self._text.mask(batch)]
        return Records(chosen, records.window, records.origin)

    def _row_mask(self, rows: npt.NDArray[np.int64], base: int | None) -> Mask:
        wanted = self._wanted
        mask = np.ones(len(rows), bool)
        stored = rows[:, Field.STORED_PHYSICAL_OFFSET]
        offsets = stored if base is None else rows[:, Field.POSITION] + base
        for values, low, high in (
            (rows[:, Field.STORE_TIMESTAMP], wanted.store_from, wanted.store_to),
            (rows[:, Field.BORN_TIMESTAMP], wanted.born_from, wanted.born_to),
            (offsets, wanted.offset_from, wanted.offset_to),
            (rows[:, Field.QUEUE_OFFSET], wanted.queue_offset_from, wanted.queue_offset_to),
        ):
            if low is not None:
                mask &= values >= low
            if high is not None:
                mask &= values < high
        if wanted.queues:
            mask &= np.isin(rows[:, Field.QUEUE_ID], list(wanted.queues))
        return mask


class TextFilter:
    """The part of a filter that is judged by what a record says; `columns` of the record table are read."""

    def __init__(self, wanted: MessageFilter) -> None:
        self._wanted = wanted
        self.columns = _text_columns(wanted)
        self._is_topic = lru_cache(maxsize=None)(_topic_test(wanted.topics))

    def mask(self, batch: pa.RecordBatch) -> Mask:
        """Which rows pass."""
        wanted = self._wanted
        masks: list[Any] = []
        if wanted.topics:
            masks.append(self._topic_mask(batch["topic"]))
        if wanted.tags:
            masks.append(pc.is_in(batch["tags"], pa.array(sorted(wanted.tags), pa.string())))
        if wanted.uniq_keys:
            masks.append(pc.is_in(batch["uniq_key"], pa.array(sorted(wanted.uniq_keys), pa.string())))
        if wanted.keys:
            masks.append(_any_key(batch["keys"], wanted.keys))
        for name, value in wanted.properties:
            found = pc.map_lookup(batch["properties"], pa.scalar(name), "last")
            masks.append(pc.equal(found, value))
        if wanted.body_contains is not None:
            masks.append(pc.match_substring(batch["plain_body"], wanted.body_contains))
        if wanted.subscription is not None:
            masks.append(pa.array(wanted.subscription.passes(batch)))
        result = np.ones(batch.num_rows, bool)
        for mask in masks:
            result &= np.asarray(pc.fill_null(mask, False).to_numpy(zero_copy_only=False), bool)
        return result

    def _topic_mask(self, topics: pa.Array) -> pa.Array:
        distinct = [topic for topic in pc.unique(topics).to_pylist() if topic is not None]
        return pc.is_in(topics, pa.array([topic for topic in distinct if self._is_topic(topic)], pa.string()))


def _text_columns(wanted: MessageFilter) -> list[str]:
    needs = {
        "topic": wanted.topics,
        "tags": wanted.tags,
        "uniq_key": wanted.uniq_keys,
        "keys": wanted.keys,
        "properties": wanted.properties,
        "plain_body": wanted.body_contains is not None,
    }
    found = [name for name, needed in needs.items() if needed]
    further = () if wanted.subscription is None else wanted.subscription.columns
    return list(dict.fromkeys((*found, *further)))


def _topic_test(globs: tuple[str, ...]) -> Any:
    from fnmatch import fnmatchcase

    return lambda topic: any(fnmatchcase(topic, glob) for glob in globs)


def _any_key(keys: pa.Array, wanted: frozenset[str]) -> pa.Array:
    """Which lists hold one of the wanted elements."""
    hits = pc.is_in(keys.flatten(), pa.array(sorted(wanted), pa.string()))
    parents = pc.list_parent_indices(keys)
    mask = np.zeros(len(keys), bool)
    mask[parents.to_numpy(zero_copy_only=False)[hits.to_numpy(zero_copy_only=False).astype(bool)]] = True
    return pa.array(mask)
