"""Fixed fields of a record that may be damaged, read leniently."""

from __future__ import annotations

from typing import Any

from formats.commitlog import (
    FLAT_HEADERS,
    MAX_PROPERTIES_LENGTH,
    MESSAGE_MAGIC_CODE_V2,
    TOPIC_LENGTH,
    is_v6,
)
from formats.primitives import crc32_masked
from rmqtool.repair.keep.model import Header

_SMALLEST = min(one.size for one in FLAT_HEADERS.values())
SMALLEST_RECORD = _SMALLEST + 3


def read_header(data: bytes, place: int, length: int) -> Header | None:
    """The fields of a record of `length` bytes at physical offset `place`; `data` are its bytes.

    None where there are too few bytes for the fixed fields.
    """
    if len(data) < _SMALLEST:
        return None
    fixed = _fixed(data)
    topic, properties, framed = _rest(data, fixed, length)
    headless = False
    for magic in TOPIC_LENGTH if not framed and fixed["physical_offset"] == place > 0 else ():
        other = fixed | {"total_size": length, "magic": magic}
        found = _rest(data, other, length)
        if found[0] and found[2] and _is_sound(data, other):
            (topic, properties, framed), fixed, headless = found, other, True
            break
    sound = framed and _is_sound(data, fixed)
    return Header(
        size=fixed["total_size"],
        magic=fixed["magic"],
        queue_id=fixed["queue_id"],
        flag=fixed["flag"],
        queue_offset=fixed["queue_offset"],
        physical_offset=fixed["physical_offset"],
        sys_flag=fixed["sys_flag"],
        born_timestamp=fixed["born_timestamp"],
        store_timestamp=fixed["store_timestamp"],
        born_host=(fixed["born_host.ip"], fixed["born_host.port"]),
        store_host=(fixed["store_host.ip"], fixed["store_host.port"]),
        reconsume_times=fixed["reconsume_times"],
        prepared_transaction_offset=fixed["prepared_transaction_offset"],
        topic=topic,
        properties=properties,
        framed=framed,
        sound=sound,
        own_place=fixed["physical_offset"] == place and (place > 0 or fixed["magic"] in TOPIC_LENGTH),
        headless=headless,
    )


def _is_sound(data: bytes, fixed: dict[str, Any]) -> bool:
    at = FLAT_HEADERS[is_v6(fixed["sys_flag"])].size
    body = data[at : at + max(fixed["body_length"], 0)]
    return bool(fixed["body_length"] <= 0 or crc32_masked(body) == fixed["body_crc"])


def _fixed(data: bytes) -> dict[str, Any]:
    """By the widths of hosts that its flags tell; as IPv4 where there is no room for those."""
    fixed = FLAT_HEADERS[False, False].unpack(data)
    wide = is_v6(fixed["sys_flag"])
    if wide == (False, False) or len(data) < FLAT_HEADERS[wide].size:
        return fixed
    return FLAT_HEADERS[wide].unpack(data)


def _rest(data: bytes, fixed: dict[str, Any], length: int) -> tuple[bytes | None, bytes | None, bool]:
    """Topic and properties as the length fields place them, and whether all lengths add up to `length`."""
    width_of = TOPIC_LENGTH.get(fixed["magic"])
    wide = 2 if fixed["magic"] == MESSAGE_MAGIC_CODE_V2 else 1
    at = FLAT_HEADERS[is_v6(fixed["sys_flag"])].size + max(fixed["body_length"], 0)
    if at + wide > length or at + wide > len(data):
        return None, None, False
    topic_length = int.from_bytes(data[at : at + wide], "big", signed=True)
    at += wide
    if topic_length < 0 or at + topic_length + 2 > length:
        return None, None, False
    topic = data[at : at + topic_length]
    at += topic_length
    stated = int.from_bytes(data[at : at + 2], "big", signed=True)
    at += 2
    rest = length - at
    whole = max(stated, 0) == rest
    properties = data[at : at + rest] if whole and rest <= MAX_PROPERTIES_LENGTH else None
    return topic, properties, whole and width_of is not None and fixed["total_size"] == length
