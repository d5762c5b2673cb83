"""The plain-Python twin of `kernels.columns`: same functions, same arguments, same answers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.commitlog import SysFlag
from rmqtool.scan import fields as f
from rmqtool.scan.fields import Alike, Field, Summary
from rmqtool.scan.spans_python import gather

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Bytes = npt.NDArray[np.uint8]
    Ints = npt.NDArray[np.int64]
    Int32s = npt.NDArray[np.int32]


def numbers(rows: Ints, summarised: Ints, figures: Ints, fields: Ints, narrow: Int32s, wide: Ints) -> None:
    """See `kernels.numbers`."""
    figures[:] = 0
    chosen = rows[:, summarised]
    if len(rows):
        figures[Summary.LOWEST], figures[Summary.HIGHEST] = chosen.min(axis=0), chosen.max(axis=0)
        figures[Summary.TOTAL] = chosen.clip(min=0).sum(axis=0)
    chosen = rows[:, fields].T
    narrow[:], wide[:] = chosen[: len(narrow)], chosen[len(narrow) :]


def _alike(buf: Bytes, origin: int, rows: Ints) -> int:
    """What records have in common."""
    topics, born, stored = set(), set(), set()
    for row in rows.tolist():
        at = row[Field.TOPIC_POSITION] - origin
        topics.add(bytes(buf[at : at + row[Field.TOPIC_LENGTH]]))
        flags = row[Field.SYS_FLAG]
        wide = f.HOST_V6_EXTRA if flags & SysFlag.BORNHOST_V6 else 0
        begin = row[Field.POSITION] - origin + f.OFF_BORN_HOST
        born.add(bytes(buf[begin : begin + f.HOST_V4_SIZE + wide]))
        begin = row[Field.POSITION] - origin + f.OFF_STORE_HOST + wide
        wide = f.HOST_V6_EXTRA if flags & SysFlag.STOREHOST_V6 else 0
        stored.add(bytes(buf[begin : begin + f.HOST_V4_SIZE + wide]))
    return (
        Alike.TOPIC * (len(topics) <= 1)
        | Alike.BORN_HOST * (len(born) <= 1)
        | Alike.STORE_HOST * (len(stored) <= 1)
    )


def gather_fields(
    buf: Bytes,
    origin: int,
    rows: Ints,
    compared: int,
    fields: Ints,
    ends: tuple[Int32s, ...],
    out: tuple[Bytes, ...],
) -> int:
    """See `kernels.gather_fields`."""
    for field, begins, copied in zip(fields.tolist(), ends, out, strict=True):
        if field >= 0:
            gather(buf, rows[:, field] - origin, rows[:, field + 1], begins, copied)
    return compared and compared & _alike(buf, origin, rows)
