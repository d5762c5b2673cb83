"""What the values of a line say when they are read right: each function gives remarks about one line."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from formats.java import java_parse_int

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_MAGIC = {
    0xDAA320A7: "V1 record",
    0xDAA320AB: "V2 record (topic longer than 127 bytes)",
    0xCBD43194: "filler",
}
_FLAGS = (
    (1, "not readable"),
    (2, "not writable"),
    (4, "a consume queue could not be written"),
    (8, "the index could not be written"),
    (16, "disk full"),
    (32, "fenced by the controller"),
    (64, "disk of the consume queues full"),
)


def magic(values: Mapping[str, str]) -> list[str]:
    """What four bytes that are not a magic code look like (`CommitLog#checkMessageAndReturnSize`)."""
    number = int(values["magic"], 16) & 0xFFFFFFFF
    raw = number.to_bytes(4, "big")
    if number in _MAGIC:
        return [f"0x{number:08x} is the magic code of a {_MAGIC[number]}, unknown to this release there"]
    near = [name for code, name in _MAGIC.items() if (code ^ number).bit_count() <= 2]
    if near:
        return [f"one or two bits away from the magic code of a {near[0]}: flipped, not a foreign place"]
    if number == 0xFFFFFFFF:
        return ["all bits set: the block was erased or never written by the broker"]
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = _inside_utf8(raw)
    if text and text.isprintable():
        return [f"as text these bytes are '{text}': the reader is inside a message, not at a record"]
    return [f"bytes {raw.hex(' ')}: no text, no known magic code"]


def _inside_utf8(raw: bytes) -> str:
    """The whole characters in four bytes cut out of a UTF-8 text, "" when they are none."""
    text = raw.decode("utf-8", "ignore")
    cut = len(raw) - len(text.encode())
    return text if text and not text.isascii() and cut <= 2 else ""


def slots(values: Mapping[str, str]) -> list[str]:
    """How many slots of a queue the difference is (`ConsumeQueue#putMessagePositionInfo`)."""
    from formats.consumequeue import Unit
    from formats.primitives import sizeof

    diff = _long(values["diff"])
    if diff is None:
        return []
    count = abs(diff) // sizeof(Unit)
    if diff > 0:
        return [f"{diff} bytes are {count} slots: so many messages of the queue have no consume queue entry"]
    return [f"{diff} bytes are {count} slots: the queue on disk holds so many more than the message knows"]


def crc(values: Mapping[str, str]) -> list[str]:
    """The labels of the two numbers are exchanged in the broker's source."""
    reported = f"stored in the record {values['second_crc']}, computed from its body {values['first_crc']}"
    return [f"the broker's labels are exchanged: {reported}"]


def flags(values: Mapping[str, str]) -> list[str]:
    """The bits of `RunningFlags`."""
    number = _long(values["flags"])
    if number is None:
        return []
    names = [name for bit, name in _FLAGS if number & bit]
    return [f"flags {number}: {', '.join(names) or 'none set'}"]


def undispatched(values: Mapping[str, str]) -> list[str]:
    """Bytes between the dispatch position and the end of the log."""
    end, start = _long(values["max_offset"]), _long(values["from_offset"])
    if end is None or start is None:
        return []
    return [f"{end - start} bytes of the log had no consume queue and index entries yet"]


def _long(text: str) -> int | None:
    """A number of a line; a broker writes none that is not a long."""
    return java_parse_int(text, 64)


@dataclass(frozen=True)
class Derived:
    """A function and the values that it needs."""

    needs: tuple[str, ...]
    read: Callable[[Mapping[str, str]], list[str]]


DERIVED: Mapping[str, Derived] = {
    "magic": Derived(("magic",), magic),
    "slots": Derived(("diff",), slots),
    "crc": Derived(("first_crc", "second_crc"), crc),
    "flags": Derived(("flags",), flags),
    "undispatched": Derived(("max_offset", "from_offset"), undispatched),
}
"""what `Entry.derive` may name"""
