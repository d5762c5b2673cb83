"""Seed → bytes for the kernels: records, entries, units and index files, then bent."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from formats.commitlog import MESSAGE_MAGIC_CODES, Blank, encode_message
from formats.replay import entry

if TYPE_CHECKING:
    from collections.abc import Callable
    from random import Random

MOST = 6000
NUMBERS = (0, 1, -1, 7, 8, 20, 127, 128, 255, 256, 32767, 32768, 65535, 1 << 22, (1 << 31) - 1, -(1 << 31),
           1 << 31, (1 << 32) - 1, 1 << 62, (1 << 63) - 1, -(1 << 63))  # fmt: skip
"""lengths, counts and offsets at which programs go wrong"""


def buffer(random: Random) -> bytes:
    """Up to a few thousand bytes that look like a file of a store, or nearly."""
    made = random.choice(MAKERS)(random)[:MOST]
    return bent(random, made, random.choice((0, 1, 1, 2, 4, 16)))


def bent(random: Random, data: bytes, times: int) -> bytes:
    """The bytes with that many changes: numbers, flipped bits, lost, doubled and moved ranges."""
    changed = bytearray(data)
    for _ in range(times):
        at, to = sorted((random.randrange(len(changed) + 1), random.randrange(len(changed) + 1)))
        kind = random.randrange(7)
        if kind == 0:
            put(changed, at, number(random))
        elif kind == 1 and changed:
            changed[at % len(changed)] ^= 1 << random.randrange(8)
        elif kind == 2:
            del changed[at : min(to, at + random.choice((1, 4, 20, 4096)))]
        elif kind == 3:
            changed[at:at] = changed[at : min(to, at + 200)]
        elif kind == 4:
            put(changed, at, random.randbytes(random.randrange(1, 40)))
        elif kind == 5:
            put(changed, at, bytes(min(to - at, 400)))
        else:
            del changed[to:]
    return bytes(changed)


def put(data: bytearray, at: int, new: bytes) -> None:
    """Writes over what is there; the length stays."""
    new = new[: max(len(data) - at, 0)]
    data[at : at + len(new)] = new


def number(random: Random) -> bytes:
    """One of `NUMBERS`, near it or anything, in 1, 2, 4 or 8 bytes."""
    value = random.choice(NUMBERS) + random.choice((0, 0, 0, 1, -1, random.randrange(-100, 100)))
    width = random.choice((1, 2, 4, 4, 4, 8, 8))
    return (value % (1 << 8 * width)).to_bytes(width, "big")


PROPERTIES = (
    b"KEYS\x01a b", b"UNIQ_KEY\x01" + b"0A" * 16, b"TAGS\x01t", b"\x01", b"\x02", b"x" * 300, b"DELAY\x013",
    b"INNER_MULTI_DISPATCH\x01%LMQ%a,%LMQ%b", b"INNER_MULTI_QUEUE_OFFSET\x011,2", b"\xff\xfe", b"KEYS\x01 ",
)  # fmt: skip


def _properties(random: Random) -> bytes:
    return b"\x02".join(random.choices(PROPERTIES, k=random.randrange(6)))


def _record(random: Random, at: int) -> bytes:
    topic = random.choice(("T", "T" * 127, "SCHEDULE_TOPIC_XXXX", "ü", "a/b"))
    return encode_message(
        topic, random.randbytes(random.choice((0, 1, 9, 300))), _properties(random), physical_offset=at
    )


def _records(random: Random) -> bytes:
    log = b""
    for _ in range(random.randrange(1, 5)):
        log += _record(random, len(log))
    if random.random() < 0.3:
        log += bytes(Blank.build({"total_size": random.choice((8, 9, 50, 300))}))
    return log + bytes(random.choice((0, 0, 1, 7, 8, 100)))


def _entries(random: Random) -> bytes:
    return b"".join(entry(_record(random, 0)) for _ in range(random.randrange(1, 4)))


def _units(random: Random) -> bytes:
    offsets = [random.choice((number_of(random), place * 100)) for place in range(random.randrange(1, 60))]
    return b"".join(
        struct.pack(">qiq", one, random.choice((91, 100, 0, -1)), random.choice((0, 5))) for one in offsets
    )


def _index(random: Random) -> bytes:
    slots, items = random.choice((1, 7, 100)), random.randrange(1, 60)
    head = struct.pack(">qqqqii", 1, 2, 0, 99, slots, items)
    heads = b"".join(struct.pack(">i", random.randrange(-1, items + 2)) for _ in range(slots))
    chained = [random.randrange(-1, items + 2) for _ in range(items)]
    made = (struct.pack(">iqii", random.randrange(1 << 31), random.randrange(999), 1, one) for one in chained)
    return random.choice((b"", head)) + heads + b"".join(made)


def _magics(random: Random) -> bytes:
    codes = [one.to_bytes(4, "big", signed=True) for one in MESSAGE_MAGIC_CODES]
    return b"".join(
        random.choices([*codes, b"\0", b"\xda", bytes(4), number(random)], k=random.randrange(400))
    )


def number_of(random: Random) -> int:
    """One of `NUMBERS` that fits in 64 bits with sign."""
    return random.choice([one for one in NUMBERS if -(1 << 63) <= one < 1 << 63])


MAKERS: tuple[Callable[[Random], bytes], ...] = (
    _records, _records, _records, _entries, _units, _index, _magics,
    lambda random: random.randbytes(random.randrange(MOST)),
)  # fmt: skip
