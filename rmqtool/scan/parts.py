"""Runs of records cut into parts that stay small in memory, whatever their bodies inflate to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rmqtool.scan.events import Records
from rmqtool.scan.fields import Field

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.scan.bodies import Plain
    from rmqtool.scan.parallel import WorkerContext

BATCH_BYTES = 4 << 20
"""bytes of records in one part, and of their bodies as inflated; a single record may be larger"""

_ROW_BYTES = 512
"""what the columns of a record need beside its own bytes, about"""

_COPIES = 2
"""how often columns hold a record: its text and properties are there whole and in parts"""


@dataclass(frozen=True, slots=True)
class Part:
    """Records of a run, with their bodies as the producer sent them where these were asked for."""

    records: Records
    plain: list[Plain] | None = None


def cut(records: Records) -> Iterator[Records]:
    """Parts of at most `BATCH_BYTES` as stored, at least one record each."""
    import numpy as np

    rows = records.rows
    sizes = rows[:, Field.STORE_SIZE]
    if len(rows) and sizes.sum() <= BATCH_BYTES:
        yield records
        return
    summed = np.cumsum(sizes)
    start = 0
    while start < len(rows):
        before = int(summed[start - 1]) if start else 0
        end = max(int(np.searchsorted(summed, before + BATCH_BYTES, side="right")), start + 1)
        yield Records(rows[start:end], records.window, records.origin)
        start = end


def parts(records: Records, worker: WorkerContext, *, plain: bool) -> Iterator[Part]:
    """A run cut by what it needs as columns, that memory taken from `worker` before it is used.

    plain: bodies are wanted as the producer sent them, each is decompressed once, here.
    """
    for some in cut(records):
        worker.take(_COPIES * int(some.rows[:, Field.STORE_SIZE].sum()) + _ROW_BYTES * len(some.rows))
        if plain and (some.rows[:, Field.SYS_FLAG] & 1).any():
            yield from _inflated(some, worker)
        else:
            yield Part(some)


def _inflated(records: Records, worker: WorkerContext) -> Iterator[Part]:
    """Only inflating tells how large a body is: in the room of a batch first, else alone, up to the limit."""
    from rmqtool.scan.bodies import PLAIN_LIMIT, inflate, stored_bodies

    plain: list[Plain] = []
    size = start = 0

    def closed(end: int) -> Part:
        return Part(Records(records.rows[start:end], records.window, records.origin), plain)

    flags = records.rows[:, Field.SYS_FLAG].tolist()
    worker.take(_COPIES * BATCH_BYTES)
    for index, (stored, flag) in enumerate(zip(stored_bodies(records), flags, strict=True)):
        body, fits = inflate(stored, flag, BATCH_BYTES)
        length = BATCH_BYTES + 1 if not fits else len(body or b"")
        if plain and size + length > BATCH_BYTES:
            yield closed(index)
            plain, size, start = [], 0, index
            worker.take(_COPIES * BATCH_BYTES)
        if not fits:
            worker.take(_COPIES * PLAIN_LIMIT)
            body, _ = inflate(stored, flag)
        plain.append(body)
        size += length
    yield closed(len(flags))
