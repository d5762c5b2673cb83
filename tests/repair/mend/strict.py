"""A reader of logs and queues of its own, strict and slow: what a store holds, whatever rmqtool says."""

from __future__ import annotations

import re
import struct
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAGICS = {0xDAA320A7: 1, 0xDAA320AB: 2}
BLANK = 0xCBD43194
_MAGIC = re.compile(rb"\xda\xa3\x20[\xa7\xab]")
_HEAD = struct.Struct(">iIIiiqqiq")
PRE_BLANK = (0, 0x7FFFFFFF)


@dataclass(frozen=True)
class Record:
    """One record that is right in every respect."""

    offset: int
    size: int
    topic: str
    queue_id: int
    queue_offset: int
    sys_flag: int
    store_timestamp: int
    body: bytes
    properties: dict[str, str]
    raw: bytes

    @property
    def slot(self) -> tuple[str, int, int]:
        """Topic, queue number, queue offset."""
        return self.topic, self.queue_id, self.queue_offset

    @property
    def placed(self) -> bool:
        """Whether it has a position in a queue."""
        return not self.sys_flag & 4


def parse(data: bytes, at: int, offset: int) -> Record | None:
    """The record at `at`, if it is right and belongs at `offset`."""
    if at < 0 or at + 91 > len(data):
        return None
    size, magic, crc, queue_id, _, queue_offset, stated, flags, _ = _HEAD.unpack_from(data, at)
    if magic not in MAGICS or stated != offset or not 91 <= size <= len(data) - at:
        return None
    place = at + 48 + (20 if flags & 0x10 else 8)
    stored = int.from_bytes(data[place : place + 8], "big", signed=True)
    place += 8 + (20 if flags & 0x20 else 8) + 12
    length = int.from_bytes(data[place : place + 4], "big", signed=True)
    place += 4
    wide = MAGICS[magic]
    if length < 0 or place + length + wide + 2 > at + size:
        return None
    body = data[place : place + length]
    place += length
    count = int.from_bytes(data[place : place + wide], "big", signed=True)
    place += wide
    if count < 0 or place + count + 2 > at + size or zlib.crc32(body) & 0x7FFFFFFF != crc:
        return None
    topic = data[place : place + count]
    place += count
    rest = int.from_bytes(data[place : place + 2], "big", signed=True)
    place += 2
    if rest < 0 or place + rest != at + size:
        return None
    pairs = (one.split(b"\x01", 1) for one in data[place : place + rest].split(b"\x02") if b"\x01" in one)
    try:
        name = topic.decode()
    except UnicodeDecodeError:
        return None
    found = {a.decode("utf-8", "replace"): b.decode("utf-8", "replace") for a, b in pairs if a and b}
    raw = bytes(data[at : at + size])
    return Record(offset, size, name, queue_id, queue_offset, flags, stored, bytes(body), found, raw)


def segments(root: Path) -> Iterator[tuple[int, bytes]]:
    """Base and bytes of every segment."""
    for path in sorted((root / "commitlog").iterdir() if (root / "commitlog").is_dir() else ()):
        if path.is_file() and path.name.isdecimal():
            yield int(path.name), path.read_bytes()


def carve(root: Path) -> dict[int, Record]:
    """Every intact record at its own place, also behind damage."""
    found: dict[int, Record] = {}
    for base, data in segments(root):
        end = 0
        for match in _MAGIC.finditer(data):
            at = match.start() - 4
            record = parse(data, at, base + at) if at >= end else None
            if record is not None:
                found[base + at] = record
                end = at + record.size
    return found


def walk(root: Path) -> tuple[dict[int, Record], int]:
    """Records as a broker meets them up to the first that is not right, and where that is."""
    found: dict[int, Record] = {}
    end = 0
    for base, data in segments(root):
        if found and base != end:
            break
        at = 0
        while (record := parse(data, at, base + at)) is not None:
            found[base + at] = record
            at += record.size
        blank = len(data) - at >= 8 and int.from_bytes(data[at + 4 : at + 8], "big") == BLANK
        end = base + (len(data) if blank else at)
        if not blank:
            break
    return found, end


def units(root: Path) -> dict[tuple[str, int, int], tuple[int, int]]:
    """Offset and size of every unit that is not zero, by topic, queue and slot."""
    found: dict[tuple[str, int, int], tuple[int, int]] = {}
    for path in (root / "consumequeue").glob("*/*/*"):
        topic, queue, base = path.parts[-3:]
        if not (queue.isdecimal() and base.isdecimal()):
            continue
        data = path.read_bytes()
        for at in range(0, len(data) // 20 * 20, 20):
            unit = data[at : at + 20]
            if any(unit):
                place = int.from_bytes(unit[:8], "big"), int.from_bytes(unit[8:12], "big")
                found[topic, int(queue), (int(base) + at) // 20] = place
    return found
