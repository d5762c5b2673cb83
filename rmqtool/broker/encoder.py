"""Messages in columns to the records that a broker stores, many in one call: `MessageExtEncoder`.

One record is the case of one row. `formats.commitlog.encode_message` says the same for single records, and is
what tests hold this against.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from formats.commitlog import (
    BLANK_MAGIC_CODE,
    FLAT_HEADERS,
    MAX_PROPERTIES_LENGTH,
    MAX_TOPIC_LENGTH_V1,
    MESSAGE_MAGIC_CODE,
    MESSAGE_MAGIC_CODE_V2,
    Blank,
    SysFlag,
    is_v6,
    record_size,
)
from formats.crc_trailer import TRAILER_SIZE
from formats.errors import FormatError
from formats.primitives import HostV4, HostV6, sizeof
from rmqtool.scan.fields import ROW_WIDTH, Field

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from rmqtool.scan.kernel_types import Kernels

    Bytes = npt.NDArray[np.uint8]
    Ints = npt.NDArray[np.int64]

_V6 = int(SysFlag.BORNHOST_V6), int(SysFlag.STOREHOST_V6)
_HEADER_OF = {flags: FLAT_HEADERS[is_v6(flags)].pack_ordered for flags in (0, *_V6, _V6[0] | _V6[1])}
_LONGEST_V2 = (1 << 15) - 1
_SIZES = {
    (magic, flags): record_size(magic, flags, 0, 0, 0)
    for magic in (MESSAGE_MAGIC_CODE, MESSAGE_MAGIC_CODE_V2)
    for flags in (0, _V6[0], _V6[1], _V6[0] | _V6[1])
}
"""bytes of a record beside body, topic and properties"""


@dataclass(frozen=True)
class MessageColumns:
    """Messages to encode, one a row.

    rows: INT64, `scan.fields.Field`: the fields of each record as they are stored, and where in the
    sources its body, topic and properties lie; `POSITION` and `STORE_SIZE` are filled in. hosts: INT64
    (n, 2), where in `addresses` the born and the store host begin: 4 or 16 bytes by `SYS_FLAG`, and the port
    in 4. bodies, topics, properties, addresses: UINT8, shared by all rows as they like.
    """

    rows: Ints
    hosts: Ints
    bodies: Bytes
    topics: Bytes
    properties: Bytes
    addresses: Bytes

    def __len__(self) -> int:
        return len(self.rows)

    def part(self, numbers: Ints) -> MessageColumns:
        """Some of them, by the numbers of their rows; the rows are copies."""
        return replace(self, rows=self.rows[numbers], hosts=self.hosts[numbers])

    def sizes(self) -> Ints:
        """Bytes of each record (`MessageExtEncoder#calMsgLength`), also put into `rows`.

        Raises `FormatError` for what no record can hold, and for positions outside of their sources.
        """
        rows = self.rows
        if rows.ndim != 2 or rows.shape[1] != ROW_WIDTH or self.hosts.shape != (len(rows), 2):
            raise FormatError(f"rows of {rows.shape[1:]} and hosts of {self.hosts.shape[1:]} columns")
        magic, flags = rows[:, Field.MAGIC], rows[:, Field.SYS_FLAG]
        long = magic == MESSAGE_MAGIC_CODE_V2
        _refuse(~long & (magic != MESSAGE_MAGIC_CODE), "magic", "no magic of a record")
        most = np.where(long, _LONGEST_V2, MAX_TOPIC_LENGTH_V1)
        _refuse(rows[:, Field.TOPIC_LENGTH] > most, "topic", "longer than its length field can say")
        over = rows[:, Field.PROPERTIES_LENGTH] > MAX_PROPERTIES_LENGTH
        _refuse(over, "properties", "longer than their length field can say")
        for name, source, (position, length) in (
            ("body", self.bodies, (Field.BODY_POSITION, Field.BODY_LENGTH)),
            ("topic", self.topics, (Field.TOPIC_POSITION, Field.TOPIC_LENGTH)),
            ("properties", self.properties, (Field.PROPERTIES_POSITION, Field.PROPERTIES_LENGTH)),
        ):
            _within(name, source, rows[:, position], rows[:, length])
        sizes = np.zeros(len(rows), np.int64)
        for (one, wide), fixed in _SIZES.items():
            sizes[(magic == one) & ((flags & (_V6[0] | _V6[1])) == wide)] = fixed
        for place, flag in enumerate(_V6):
            widths = np.where(flags & flag, sizeof(HostV6), sizeof(HostV4))
            _within("host", self.addresses, self.hosts[:, place], widths)
        for field in (Field.BODY_LENGTH, Field.TOPIC_LENGTH, Field.PROPERTIES_LENGTH):
            sizes += rows[:, field]
        _refuse(sizes >= 1 << 31, "total_size", "longer than its size can say")
        rows[:, Field.STORE_SIZE] = sizes
        return sizes

    def write(
        self,
        places: Ints,
        out: Bytes,
        kernels: Kernels,
        *,
        crc_trailer: bool = False,
    ) -> None:
        """Writes the records to their places (bytes) of `out`, which must have room for them.

        crc_trailer: the properties end with the bytes that `formats.crc_trailer.reserve` keeps free. Raises
        `FormatError` as `sizes` does, and where a record does not lie in `out` or lies in another.
        """
        sizes = self.sizes()
        _within("record", out, places, sizes)
        ends = places + sizes
        if (places[1:] < ends[:-1]).any():  # not one behind the other
            order = np.argsort(places, kind="stable")
            _refuse(ends[order][:-1] > places[order][1:], "record", "two of them at one place")
        if crc_trailer:
            short = self.rows[:, Field.PROPERTIES_LENGTH] < TRAILER_SIZE
            _refuse(short, "properties", "without room for the CRC")
        self.encode(slice(None), places, out, kernels, crc_trailer=crc_trailer)

    def encode(
        self, part: slice | Ints, places: Ints, out: Bytes, kernels: Kernels, *, crc_trailer: bool
    ) -> None:
        """As `write`, of some rows whose sizes are filled in, and which are known to lie in `out`."""
        sources = self.bodies, self.topics, self.properties, self.addresses
        kernels.encoding.encode(self.rows[part], self.hosts[part], sources, int(crc_trailer), places, out)


def _within(name: str, source: Bytes, positions: Ints, lengths: Ints) -> None:
    wrong = (positions < 0) | (lengths < 0) | (positions > len(source) - lengths)
    _refuse(wrong, name, f"outside of the {len(source)} bytes given")


def _refuse(wrong: Any, field: str, why: str) -> None:
    if wrong.any():
        raise FormatError(f"message {int(np.argmax(wrong))}: {why}", field)


def header_packer(sys_flag: int) -> Callable[..., bytes]:
    """Packs the fields of a record in front of its body, in the order of `formats.commitlog.FLAT_HEADERS`.

    Raises `struct.error` for what has no room in its field.
    """
    return _HEADER_OF[sys_flag & (_V6[0] | _V6[1])]


def encode_record(
    fields: tuple[int, ...],
    queue_id: int,
    queue_offset: int,
    physical_offset: int,
    born: tuple[int, bytes, int],
    stored: tuple[int, bytes, int],
    body: bytes,
    tail: bytes,
) -> bytes:
    """One record, for a writer that has one at a time: no columns are made.

    fields: total size, magic, body CRC, sys_flag, flag, reconsume times, prepared transaction offset. born,
    stored: time (ms), address and port; the addresses are as wide as sys_flag says. tail: length and bytes of
    the topic, length and bytes of the properties. Raises `FormatError` for what has no room in its field.
    """
    size, magic, crc, flags, flag, reconsume_times, prepared = fields
    pack = header_packer(flags)
    try:
        header = pack(
            size,
            magic,
            crc,
            queue_id,
            flag,
            queue_offset,
            physical_offset,
            flags,
            born[0],
            born[1],
            born[2],
            stored[0],
            stored[1],
            stored[2],
            reconsume_times,
            prepared,
            len(body),
        )
    except struct.error as error:
        raise FormatError(f"a field has no room: {error}") from error
    return b"".join((header, body, tail))


def blank(free: int) -> bytes:
    """The head of the record that closes a file with `free` bytes left; what lies behind it is undefined."""
    return Blank.build({"total_size": free, "magic": BLANK_MAGIC_CODE})
