"""Consume queues: the plain unit, the unit of batch queues, the extension unit and its address.

docs/format/consumequeue.md; `ConsumeQueue`, `BatchConsumeQueue`, `ConsumeQueueExt`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import construct as cs

from formats.errors import FormatError
from formats.primitives import Require, Schema, sizeof

if TYPE_CHECKING:
    from formats.primitives import Container

Unit = Schema(cs.Struct("physical_offset" / cs.Int64sb, "size" / cs.Int32sb, "tags_code" / cs.Int64sb))
"""One message of a plain queue; unit n lies at byte n * 20 of the queue's address space."""

PRE_BLANK_SIZE = 0x7FFFFFFF
PRE_BLANK = Unit.build({"physical_offset": 0, "size": PRE_BLANK_SIZE, "tags_code": 0})
"""Fills a queue's first file in front of the first message, when its queue offset is not 0. No message."""

BatchUnit = Schema(
    cs.Struct(
        "physical_offset" / cs.Int64sb,
        "size" / cs.Int32sb,
        "tags_code" / cs.Int64sb,
        "store_timestamp" / cs.Int64sb,
        "base_offset" / cs.Int64sb,
        "batch_size" / cs.Int16sb,
        "compacted_offset" / cs.Int32sb,
        "reserved" / cs.Int32sb,
    )
)
"""One record of a batch queue: `batch_size` messages from queue offset `base_offset` on."""

COMPACTED_OFFSET = -1
"""What `compacted_offset` holds when a unit is appended."""

COMPACTION_END = BatchUnit.build(
    {
        "physical_offset": -1,
        "size": 0,
        "tags_code": 0,
        "store_timestamp": 0,
        "base_offset": 0,
        "batch_size": 0,
        "compacted_offset": COMPACTED_OFFSET,
        "reserved": 0,
    }
)
"""Ends a queue file of a compaction topic that is not full."""


def _bit_map_length(unit: Container) -> int:
    return max(int(unit.bit_map_size), 0)


def _ext_size_rule(unit: Container) -> str | None:
    if unit.size < EXT_MIN_SIZE:
        return f"{unit.size} is less than {EXT_MIN_SIZE}"
    expected = EXT_MIN_SIZE + _bit_map_length(unit)
    return None if unit.size == expected else f"{unit.size}, but the bit map makes it {expected}"


_EXT_FIELDS = [
    "size" / cs.Int16sb,
    "tags_code" / cs.Int64sb,
    "msg_store_time" / cs.Int64sb,
    "bit_map_size" / cs.Int16sb,
]

ExtHead = Schema(cs.Struct(*_EXT_FIELDS))
"""An extension unit without its bit map."""

ExtUnit = Schema(
    cs.Struct(*_EXT_FIELDS, Require("size", _ext_size_rule), "bit_map" / cs.Bytes(_bit_map_length))
)
"""One unit of an extension file. A bit map size below 1 means no bit map."""

EXT_MIN_SIZE = sizeof(cs.Struct(*_EXT_FIELDS))
EXT_MAX_SIZE = 0x7FFF
"""`CqExtUnit#MAX_EXT_UNIT_SIZE`"""
EXT_END_MARKER = cs.Int16sb.build(-1)
"""Stands where the next unit would start when a file has no room for it; readers go on in the next file."""

EXT_ADDRESS_BASE = -(1 << 63)
"""the address of the first byte"""
EXT_MAX_ADDRESS = -(1 << 31) - 1
EXT_MAX_REAL_OFFSET = EXT_MAX_ADDRESS - EXT_ADDRESS_BASE


def is_pre_blank(physical_offset: int, size: int, tags_code: int) -> bool:
    """Whether a unit is filler and stands for no message."""
    return physical_offset == 0 and size == PRE_BLANK_SIZE and tags_code == 0


def is_ext_address(tags_code: int) -> bool:
    """Whether a unit's tags code is the address of an extension unit: no sign-extended hash is that small."""
    return tags_code <= EXT_MAX_ADDRESS


def ext_address(real_offset: int) -> int:
    """The tags code that points to byte `real_offset` of the extension files."""
    if not 0 <= real_offset <= EXT_MAX_REAL_OFFSET:
        raise FormatError(f"{real_offset} is not an offset in extension files", "tags_code")
    return real_offset + EXT_ADDRESS_BASE


def real_offset(address: int) -> int:
    """The byte in the extension files that an address points to; FormatError when it is not an address."""
    if not is_ext_address(address) or address < EXT_ADDRESS_BASE:
        raise FormatError(f"{address} is not an extension address", "tags_code")
    return address - EXT_ADDRESS_BASE


def encode_ext_unit(tags_code: int, msg_store_time: int, bit_map: bytes = b"") -> bytes:
    """An extension unit with its two lengths filled in; FormatError when the bit map is too long."""
    return ExtUnit.build(
        {
            "size": EXT_MIN_SIZE + len(bit_map),
            "tags_code": tags_code,
            "msg_store_time": msg_store_time,
            "bit_map_size": len(bit_map),
            "bit_map": bit_map,
        }
    )
