"""Inside of records: compressed bodies, properties as Java decodes them, messages in batches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formats.batch import CLIENT_MESSAGE_OVERHEAD, inner_messages
from formats.commitlog import SysFlag
from formats.errors import FormatError
from formats.java import java_parse_int
from formats.properties import INNER_NUM, decode
from rmqtool.check.findings import about
from rmqtool.scan.bodies import BodyError, decompress
from rmqtool.scan.crc import crc32
from rmqtool.scan.fields import CrcState, Field
from rmqtool.scan.text import gather

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from rmqtool.check.findings import Finding
    from rmqtool.scan.events import Records
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.store.segments import Segment

    Ints = npt.NDArray[np.int64]

_WRAPPED = int(SysFlag.INNER_BATCH | SysFlag.NEED_UNWRAP)
_MOST_MESSAGES = (1 << 15) - 1
"""messages that a batch unit can count (its `batch_size` is a short); a bomb of tiny ones ends here"""

_SEPARATOR = 1


def inside(run: Records, segment: Segment, kernels: Kernels) -> list[Finding]:
    """What is wrong inside of these records, made with `Check.ALL`; those with a bad CRC are passed over.

    A body may grow to `bodies.PLAIN_LIMIT` bytes, one at a time; what wants more is a finding.
    """
    rows = run.rows
    findings = list(_properties(run, segment, kernels))
    flags = rows[:, Field.SYS_FLAG]
    wanted = (flags & (SysFlag.COMPRESSED | _WRAPPED) != 0) & (rows[:, Field.CRC_STATE] != CrcState.BAD)
    for row in rows[wanted]:
        findings += _body(run, row, segment)
    return findings


def _body(run: Records, row: Ints, segment: Segment) -> Iterator[Finding]:
    raw = _bytes(run, row, Field.BODY_POSITION)
    try:
        plain = decompress(raw, int(row[Field.SYS_FLAG]))
    except BodyError as error:
        yield about("CL-BODY", row, segment, part="body", found=str(error))
        return
    if row[Field.SYS_FLAG] & _WRAPPED:
        yield from _batch(run, row, segment, plain)


def _batch(run: Records, row: Ints, segment: Segment, plain: bytes) -> Iterator[Finding]:
    """The messages in a batch: each whole, with the size and CRC that it says, as many as INNER_NUM says."""
    count = 0
    wrong: dict[str, tuple[int, int]] = {}
    try:
        for item in inner_messages(plain):
            count += 1
            message = item.message
            size = CLIENT_MESSAGE_OVERHEAD + message.body_length + message.properties_length
            if message.total_size != size:
                wrong.setdefault(f"messages.{item.number}.total_size", (size, message.total_size))
            if message.body_crc and message.body_crc != crc32(message.body) & 0x7FFFFFFF:
                found = crc32(message.body) & 0x7FFFFFFF
                wrong.setdefault(f"messages.{item.number}.body_crc", (found, message.body_crc))
            if count > _MOST_MESSAGES:
                break
    except FormatError as error:
        yield about("CL-INNER", row, segment, part=f"messages.{count}", found=str(error))
        return
    for part, (expected, found) in list(wrong.items())[:1]:
        yield about("CL-INNER-FIELD", row, segment, part=part, expected=expected, found=found)
    said = decode(_bytes(run, row, Field.PROPERTIES_POSITION)).get(INNER_NUM)
    number = None if said is None else java_parse_int(said, 16)
    if said is not None and number != count:
        yield about("CL-INNER-COUNT", row, segment, part=INNER_NUM, expected=said, found=count)


def _properties(run: Records, segment: Segment, kernels: Kernels) -> Iterator[Finding]:
    """Properties that releases read differently, and those of which only the last counts."""
    rows = run.rows
    positions = rows[:, Field.PROPERTIES_POSITION] - run.origin
    lengths = np.ascontiguousarray(rows[:, Field.PROPERTIES_LENGTH])
    pairs = np.maximum(rows[:, Field.PROPERTY_COUNT], 0)
    spans = np.empty((int(pairs.sum()), 4), np.int64)
    counts = np.zeros(len(rows), np.int64)
    empty = np.zeros(len(rows), bool)
    total = kernels.property_spans(run.window, positions, lengths, spans, counts, empty)
    for row in rows[counts < pairs]:
        yield about("CL-PROPERTY-TWICE", row, segment, part="properties")
    values = np.ascontiguousarray(spans[:total, 2]), np.ascontiguousarray(spans[:total, 3])
    offsets, data = gather(kernels, run.window, *values)
    marks = np.flatnonzero(np.frombuffer(data, np.uint8) == _SEPARATOR)
    if len(marks):
        owners = np.repeat(np.arange(len(rows)), counts)
        ends = np.frombuffer(offsets, np.int32)[1 : total + 1]
        for index in np.unique(owners[np.searchsorted(ends, marks, side="right")]):
            yield about("CL-PROPERTY-SPLIT", rows[index], segment, part="properties")


def _bytes(run: Records, row: Ints, at: Field) -> bytes:
    start = int(row[at]) - run.origin
    return run.window[start : start + max(int(row[at + 1]), 0)].tobytes()
