"""Extension files of consume queues (`ConsumeQueueExt`): units of varying size, reached by address."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING

from formats.consumequeue import (
    EXT_END_MARKER,
    EXT_MAX_SIZE,
    EXT_MIN_SIZE,
    ExtUnit,
    ext_address,
    is_ext_address,
)
from formats.errors import FormatError
from rmqtool.scan.events import Gap, Tail, TailContent
from rmqtool.scan.fields import Stop
from rmqtool.store.holes import is_zero

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rmqtool.store.bytes import ByteSource

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class ExtensionUnit:
    """One unit, where it begins in its file, and the address that queue units call it by."""

    position: int
    address: int
    size: int
    tags_code: int
    msg_store_time: int
    bit_map: bytes


@dataclass(frozen=True, slots=True)
class EndMarker:
    """The file had no room for the next unit; readers go on in the next file."""

    position: int


def read_extension(source: ByteSource, base: int) -> Iterator[ExtensionUnit | EndMarker | Gap | Tail]:
    """All units of a file whose first byte has offset `base`, then the rest of the file."""
    at = 0
    chunk, start = b"", 0
    while at < source.size:
        if at + EXT_MAX_SIZE > start + len(chunk) and start + len(chunk) < source.size:
            chunk, start = source.window(at, _CHUNK).tobytes(), at
        raw = chunk[at - start : at - start + EXT_MAX_SIZE]
        if raw.startswith(EXT_END_MARKER):
            yield EndMarker(at)
            at += len(EXT_END_MARKER)
            break
        size = int.from_bytes(raw[:2], "big", signed=True)
        if size < EXT_MIN_SIZE or size > len(raw):
            break
        try:
            unit = ExtUnit.parse(raw[:size])
        except FormatError:
            break
        address = ext_address(base + at)
        yield ExtensionUnit(at, address, size, unit.tags_code, unit.msg_store_time, bytes(unit.bit_map))
        at += size
    yield from _rest(source, at)


def _rest(source: ByteSource, at: int) -> Iterator[Gap | Tail]:
    left = source.size - at
    if left == 0:
        return
    if not is_zero(source, at):
        found = int.from_bytes(source.window(at, 2).tobytes(), "big", signed=True)
        yield Gap(at, left, Stop.BAD_SIZE, EXT_MIN_SIZE, found)
    else:
        yield Tail(at, left, TailContent.ZERO, 0, Stop.ZERO, EXT_MIN_SIZE, 0)


class ExtensionLookup:
    """Addresses of one queue → tags codes. `files`: (base, source) of all its extension files."""

    def __init__(self, files: Sequence[tuple[int, ByteSource]]) -> None:
        self._files = sorted(files, key=lambda file: file[0])
        self._bases = [base for base, _ in self._files]

    def tags_code(self, address: int) -> int | None:
        """The tags code that an address resolves to; None when it is not an address or nothing lies there."""
        if not is_ext_address(address):
            return None
        offset = address - ext_address(0)
        index = bisect_right(self._bases, offset) - 1
        if index < 0:
            return None
        base, source = self._files[index]
        raw = source.window(offset - base, EXT_MAX_SIZE).tobytes() if offset - base < source.size else b""
        try:
            return int(ExtUnit.parse(raw).tags_code)
        except FormatError:
            return None
