"""Index files: header, hash slots, items, and the hash of a key.

docs/format/index.md; `IndexFile`, `IndexHeader`.
"""

from __future__ import annotations

import construct as cs

from formats.errors import FormatError
from formats.java import java_abs, java_hash
from formats.primitives import Schema, sizeof

Header = Schema(
    cs.Struct(
        "begin_timestamp" / cs.Int64sb,
        "end_timestamp" / cs.Int64sb,
        "begin_physical_offset" / cs.Int64sb,
        "end_physical_offset" / cs.Int64sb,
        "hash_slot_count" / cs.Int32sb,
        "index_count" / cs.Int32sb,
    )
)
"""The two counts are about use, not about geometry. `index_count` is the number of the next item."""

Slot = Schema(cs.Int32sb)
"""The number of the newest item of a chain; 0 when there is none."""

Item = Schema(
    cs.Struct(
        "key_hash" / cs.Int32sb,
        "physical_offset" / cs.Int64sb,
        "time_diff" / cs.Int32sb,
        "prev" / cs.Int32sb,
    )
)
"""One key of one record. `time_diff` counts seconds from `begin_timestamp`, `prev` is the next older item of
the chain, 0 at its end."""

DEFAULT_SLOTS = 5_000_000
DEFAULT_ITEMS = 20_000_000
FIRST_ITEM = 1
"""Item 0 is never used: a slot or `prev` of 0 means "none"."""


def index_file(slots: int, items: int) -> Schema:
    """The schema of a whole file of this geometry; meant for small ones, as every item becomes an object."""
    return Schema(
        cs.Struct("header" / Header, "slots" / cs.Array(slots, Slot), "items" / cs.Array(items, Item))
    )


def key_of(topic: str, key: str) -> str:
    """What is hashed for a key of a message."""
    return f"{topic}#{key}"


def key_hash(topic: str, key: str) -> int:
    """The stored hash of a key, 0 ... 2147483647 (`IndexFile#indexKeyHashMethod`)."""
    return max(java_abs(java_hash(key_of(topic, key))), 0)


def slot_of(key_hash_value: int, slots: int) -> int:
    """The slot of a key hash in a file with this many slots."""
    if key_hash_value < 0 or slots <= 0:
        raise FormatError(f"hash {key_hash_value} has no place in {slots} slots", "key_hash")
    return key_hash_value % slots


def file_size(slots: int, items: int) -> int:
    """Length of a file in bytes; 420,000,040 with the default geometry."""
    return sizeof(Header) + slots * sizeof(Slot) + items * sizeof(Item)


def slot_position(slot: int) -> int:
    """Byte of a slot in its file."""
    return sizeof(Header) + slot * sizeof(Slot)


def item_position(number: int, slots: int) -> int:
    """Byte of an item in a file with this many slots."""
    return slot_position(slots) + number * sizeof(Item)
