"""Records of a few topics, from one columnar scan of the log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from formats.java import java_parse_int
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
_PLAIN = {32: "^-?[0-9]{1,9}$", 64: "^-?[0-9]{1,18}$"}
"""numbers of so many bits that nothing is odd about"""


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


def property_of(batch: pa.RecordBatch, name: str) -> pa.StringArray:
    """The last value of a property in each record, null without it."""
    return pc.map_lookup(batch["properties"], name, "last")


def numbers_of(texts: pa.StringArray, bits: int = 32) -> pa.Int64Array:
    """Texts as `java_parse_int` reads them, null where they are no numbers of so many bits."""
    plain = pc.match_substring_regex(texts, _PLAIN[bits])
    numbers = pc.if_else(plain, texts, None).cast(pa.int64())
    odd = pc.invert(plain).fill_null(False)
    coded = texts.filter(odd).dictionary_encode()
    read = pa.array([java_parse_int(one, bits) for one in coded.dictionary.to_pylist()], pa.int64())
    return pc.replace_with_mask(numbers, odd, read.take(coded.indices))
