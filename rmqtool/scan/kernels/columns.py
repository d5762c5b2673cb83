"""Rows and the fields that they tell of to columns, several of them in one pass over the records."""

from __future__ import annotations

import numpy as np

from formats.commitlog import SysFlag
from rmqtool.scan.fields import Alike, Summary
from rmqtool.scan.kernels.compiler import kernel
from rmqtool.scan.kernels.constants import (
    OFF_BORN_HOST,
    OFF_STORE_HOST,
    POSITION,
    SYS_FLAG,
    TOPIC_LENGTH,
    TOPIC_POSITION,
    V4_SIZE,
    V6_EXTRA,
)
from rmqtool.scan.kernels.hashes import same
from rmqtool.scan.kernels.intrinsics import prefetch_to_read
from rmqtool.scan.kernels.spans import AHEAD, copy_text, fetch

TOPIC = int(Alike.TOPIC)
BORN_HOST = int(Alike.BORN_HOST)
STORE_HOST = int(Alike.STORE_HOST)
BORN_V6, STORE_V6 = int(SysFlag.BORNHOST_V6), int(SysFlag.STOREHOST_V6)
LOWEST, HIGHEST, TOTAL = int(Summary.LOWEST), int(Summary.HIGHEST), int(Summary.TOTAL)
TOGETHER = 64
"""records that are looked at together, field by field, so that they stay in a cache"""


@kernel()
def _summarise(rows, begin, until, fields, figures):
    """Takes some rows into `figures`."""
    for k in range(fields.size):
        field = fields[k]
        lowest, highest, total = figures[LOWEST, k], figures[HIGHEST, k], figures[TOTAL, k]
        for r in range(begin, until):
            value = rows[r, field]
            lowest, highest = min(lowest, value), max(highest, value)
            total += max(value, 0)
        figures[LOWEST, k], figures[HIGHEST, k], figures[TOTAL, k] = lowest, highest, total


@kernel()
def numbers(rows, summarised, figures, fields, narrow, wide):
    """Copies fields into columns: the first of `fields` into `narrow`, of 32 bits, the others into `wide`.

    figures: get what `fields.Summary` says of each field of `summarised`; of no rows zeros.
    """
    figures[:] = 0
    for k in range(summarised.size if rows.shape[0] else 0):
        figures[LOWEST, k] = figures[HIGHEST, k] = rows[0, summarised[k]]
    few = narrow.shape[0]
    for begin in range(0, rows.shape[0], TOGETHER):
        until = min(begin + TOGETHER, rows.shape[0])
        _summarise(rows, begin, until, summarised, figures)
        for k in range(few):
            field, short = fields[k], narrow[k]
            for r in range(begin, until):
                short[r] = rows[r, field]
        for k in range(wide.shape[0]):
            field, long = fields[few + k], wide[k]
            for r in range(begin, until):
                long[r] = rows[r, field]


@kernel(forceinline=True)
def _width(row, flag):
    """Bytes of a host."""
    return V4_SIZE + V6_EXTRA if row[SYS_FLAG] & flag else V4_SIZE


@kernel(forceinline=True)
def _store_host(base, row):
    """Where it lies, behind the born host."""
    return base + row[POSITION] + OFF_STORE_HOST + _width(row, BORN_V6) - V4_SIZE


@kernel(forceinline=True)
def _same(a, length_a, b, length_b):
    return length_a == length_b and same(a, b, length_a)


@kernel()
def _alike(base, rows, begin, until, found):
    """Those of `found` that records have in common with the first one."""
    first = rows[0]
    topic, length = base + first[TOPIC_POSITION], first[TOPIC_LENGTH]
    born, born_width = base + first[POSITION] + OFF_BORN_HOST, _width(first, BORN_V6)
    stored, stored_width = _store_host(base, first), _width(first, STORE_V6)
    for r in range(begin, until):
        row = rows[r]
        if found & TOPIC and not _same(base + row[TOPIC_POSITION], row[TOPIC_LENGTH], topic, length):
            found &= ~TOPIC
        place = base + row[POSITION] + OFF_BORN_HOST
        if found & BORN_HOST and not _same(place, _width(row, BORN_V6), born, born_width):
            found &= ~BORN_HOST
        place = _store_host(base, row)
        if found & STORE_HOST and not _same(place, _width(row, STORE_V6), stored, stored_width):
            found &= ~STORE_HOST
    return found


@kernel()
def _gather_some(buf, origin, rows, begin, until, field, ends, out):
    """Copies a field of some records behind that of those in front of them."""
    if field < 0:
        return
    base = buf.ctypes.data - origin
    behind = buf.ctypes.data + buf.size
    target = out.ctypes.data
    end = target + out.size
    total = np.int64(ends[begin]) if begin else 0
    ends[begin] = total
    for r in range(begin, until):
        length = max(rows[r, field + 1], 0)
        fetch(base + rows[min(r + AHEAD, rows.shape[0] - 1), field], length)
        copy_text(target + total, base + rows[r, field], length, end, behind)
        total += length
        ends[r + 1] = total


@kernel()
def gather_fields(buf, origin, rows, compared, fields, ends, out):
    """Copies fields of records, each kind behind each other: `out[k]` are those at position `fields[k]`.

    The length is the next field; a negative one copies nothing. ends (n+1, int32): where each begins, and the
    last ends. A field below 0 is none. Returns those of `compared` that all records have in common,
    `fields.Alike`.
    """
    base = buf.ctypes.data - origin
    for begin in range(0, max(rows.shape[0], 1), TOGETHER):
        until = min(begin + TOGETHER, rows.shape[0])
        if compared:
            for r in range(begin + AHEAD, min(until + AHEAD, rows.shape[0])):
                prefetch_to_read(base + rows[r, POSITION] + OFF_BORN_HOST)
                prefetch_to_read(base + rows[r, TOPIC_POSITION])
        _gather_some(buf, origin, rows, begin, until, fields[0], ends[0], out[0])
        _gather_some(buf, origin, rows, begin, until, fields[1], ends[1], out[1])
        _gather_some(buf, origin, rows, begin, until, fields[2], ends[2], out[2])
        _gather_some(buf, origin, rows, begin, until, fields[3], ends[3], out[3])
        _gather_some(buf, origin, rows, begin, until, fields[4], ends[4], out[4])
        if compared and begin < until:
            compared = _alike(base, rows, begin, until, compared)
    return compared
