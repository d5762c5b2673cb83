"""The record under a filler's header: eight bytes that look like the end of a file hide it.

A broker clears nothing behind a filler, so the rest of the record lies there as it was written.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.commitlog import FLAT_HEADERS, is_v6
from formats.primitives import crc32_masked
from rmqtool.scan.legal import may_be_topic

if TYPE_CHECKING:
    from collections.abc import Callable

_SMALLEST, _LARGEST = (pick(one.size for one in FLAT_HEADERS.values()) for pick in (min, max))
_WIDTHS = (1, 2)
"""bytes of a topic's length, in V1 and V2; the first byte of the longer one is 0 in all but endless topics"""


def under_filler(read: Callable[[int, int], bytes], room: int, offset: int) -> tuple[int, int] | None:
    """Size and store timestamp (ms) of a record at its own place that is whole but for size and magic.

    read: gives bytes by position behind the record's first byte and count, fewer at the end of the file.
    room: bytes from there to the end of the file. offset: physical offset of the first byte.
    """
    head = read(0, min(_LARGEST, room))
    if len(head) < _SMALLEST:
        return None
    fixed = FLAT_HEADERS[False, False].unpack(head)
    if fixed["physical_offset"] != offset:
        return None
    schema = FLAT_HEADERS[is_v6(fixed["sys_flag"])]
    if len(head) < schema.size:
        return None
    fixed = schema.unpack(head)
    length, time = max(fixed["body_length"], 0), fixed["store_timestamp"]
    if schema.size + length + 3 > room or time <= 0:
        return None
    behind = read(schema.size + length, min(room - schema.size - length, 2 + (1 << 15) + 2))
    for width in _WIDTHS:
        topic = int.from_bytes(behind[:width], "big", signed=True)
        at = width + topic
        name = behind[width : max(at, 0)].decode("utf-8", "replace")
        if topic <= 0 or at + 2 > len(behind) or not may_be_topic(name):
            continue
        properties = int.from_bytes(behind[at : at + 2], "big", signed=True)
        size = schema.size + length + at + 2 + max(properties, 0)
        if size > room or (length and crc32_masked(read(schema.size, length)) != fixed["body_crc"]):
            return None
        return size, time
    return None
