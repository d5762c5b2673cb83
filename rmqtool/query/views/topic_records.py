"""Records of a few topics, from one columnar scan of the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rmqtool.query.displaced import lost_by_units
from rmqtool.query.message_filter import MessageFilter
from rmqtool.query.not_read import not_read
from rmqtool.query.select import Selector
from rmqtool.scan.fields import Check
from rmqtool.scan.log import LogScan, scan_log
from rmqtool.store.coverage import holes_in

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store

Row = dict[str, Any]


def records_of(
    store: Store, globs: Sequence[str], columns: Sequence[str], reading: ReadOptions, left: list[Row]
) -> Iterator[pa.RecordBatch]:
    """Batches with these columns, in physical order. left: gets what is unread, damaged or gone."""
    lost = lost_by_units(store)
    selector = Selector(MessageFilter(topics=tuple(globs)), reading.kernels)
    how = LogScan(columns=tuple(columns), choose=selector.choose, checks=Check.TEXT, options=reading)
    for piece in scan_log(store.segments, how):
        if isinstance(piece.content, pa.RecordBatch):
            if piece.content.num_rows:
                yield piece.content
        else:
            left += not_read(piece.segment, piece.content)
    if len(store.segments):
        left += holes_in(store.segments, [store.segments.span])
    left += lost


def property_of(batch: pa.RecordBatch, name: str) -> list[str | None]:
    """The last value of a property in each record, None without it."""
    values: list[str | None] = pc.map_lookup(batch["properties"], name, "last").to_pylist()
    return values


def numbers_of(texts: Sequence[str | None]) -> list[int | None]:
    """Texts as 32-bit numbers, None where they are none."""
    from formats.java import java_parse_int

    return [None if one is None else java_parse_int(one) for one in texts]
