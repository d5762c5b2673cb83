"""The two message ids: where a record lies (offset message id), and which client made it (unique client id).

Both are upper-case hexadecimal of the schemas below; see docs/format/message-ids.md. Sources:
`MessageDecoder#createMessageId`, `MessageClientIDSetter`.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, NamedTuple

import construct as cs

from formats.errors import FormatError
from formats.primitives import HostV4, HostV6, Schema, host_text, sizeof

if TYPE_CHECKING:
    from formats.primitives import Container

_EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001 - local times of a client, carried as plain numbers
_MILLISECOND = timedelta(milliseconds=1)


def _offset_id(host: Schema) -> Schema:
    return Schema(cs.Struct("host" / host, "offset" / cs.Int64sb))


def _unique_id(ip_length: int) -> Schema:
    return Schema(
        cs.Struct(
            "ip" / cs.Bytes(ip_length),
            "pid" / cs.Int16ub,
            "class_loader_hash" / cs.Int32sb,
            "time" / cs.Int32ub,
            "counter" / cs.Int16ub,
        )
    )


OffsetIdV4, OffsetIdV6 = _offset_id(HostV4), _offset_id(HostV6)
UniqueIdV4, UniqueIdV6 = _unique_id(4), _unique_id(16)


def _parse_hex(text: str, *schemas: Schema) -> Container:
    """The fields behind `text`, by the schema whose length fits."""
    for schema in schemas:
        if len(text) == 2 * sizeof(schema):
            try:
                raw = bytes.fromhex(text)
            except ValueError as error:
                raise FormatError(f"{text!r} is not hexadecimal") from error
            if len(raw) != sizeof(schema):
                raise FormatError(f"{text!r} is not hexadecimal")
            return schema.parse(raw)  # type: ignore[no-any-return]
    lengths = " or ".join(str(2 * sizeof(schema)) for schema in schemas)
    raise FormatError(f"{len(text)} characters, not {lengths}")


class OffsetMessageId(NamedTuple):
    """Store host and physical offset of a record."""

    ip: bytes
    port: int
    offset: int

    @classmethod
    def decode(cls, text: str) -> OffsetMessageId:
        """From 32 (IPv4) or 56 (IPv6) hexadecimal digits of either case; FormatError for anything else."""
        fields = _parse_hex(text, OffsetIdV4, OffsetIdV6)
        return cls(fields.host.ip, fields.host.port, fields.offset)

    def build(self) -> str:
        """The id as brokers print it."""
        schema = OffsetIdV4 if len(self.ip) == 4 else OffsetIdV6
        fields = {"host": {"ip": self.ip, "port": self.port}, "offset": self.offset}
        return schema.build(fields).hex().upper()

    @property
    def host(self) -> str:
        """`ip:port`, IPv6 in brackets."""
        return host_text(self.ip, self.port)


class UniqueClientId(NamedTuple):
    """The parts of a `UNIQ_KEY`. `time` counts ms from the start of a month, in the client's time zone.

    Clients cast it to an int, negative from day 25 on; `MessageClientIDSetter#getNearlyTimeFromID` reads it
    unsigned, and a whole month fits.
    """

    ip: bytes
    pid: int
    class_loader_hash: int
    time: int
    counter: int

    @classmethod
    def decode(cls, text: str) -> UniqueClientId:
        """From 32 (IPv4) or 56 (IPv6) hexadecimal digits of either case; FormatError for anything else.

        Not every `UNIQ_KEY` has this form: clients in other languages, and users, may set what they like.
        """
        fields = _parse_hex(text, UniqueIdV4, UniqueIdV6)
        return cls(fields.ip, fields.pid, fields.class_loader_hash, fields.time, fields.counter)

    def build(self) -> str:
        """The id as clients write it."""
        schema = UniqueIdV4 if len(self.ip) == 4 else UniqueIdV6
        return schema.build(self._asdict()).hex().upper()

    def created_near(self, reference_ms: int, utc_offset_minutes: int = 0) -> int:
        """When the id was made, in ms since the epoch, given a moment not far from it.

        The id itself does not know its month. Of the months around `reference_ms` (a born or store timestamp)
        the one is taken that brings the id closest to it, so that a message made at the end of a month and
        stored in the next one is dated right. `utc_offset_minutes` is the client's offset from UTC (480 for
        UTC+8); a change of daylight saving time within the month is not known here.
        """
        offset_ms = utc_offset_minutes * 60_000
        starts = _month_starts(reference_ms + offset_ms)
        candidates = [start + self.time - offset_ms for start in starts]
        return min(candidates, key=lambda moment: abs(moment - reference_ms))

    def nearly_time(self, now_ms: int, utc_offset_minutes: int = 0) -> int:
        """What `MessageClientIDSetter#getNearlyTimeFromID` answers at `now_ms`: right for young ids only."""
        offset_ms = utc_offset_minutes * 60_000
        previous, current, _ = _month_starts(now_ms + offset_ms)
        start = current if current + self.time - offset_ms < now_ms else previous
        return start + self.time - offset_ms


def _month_starts(local_ms: int) -> tuple[int, int, int]:
    """The starts of the previous, the same and the next month, all as local ms."""
    try:
        current = (_EPOCH + local_ms * _MILLISECOND).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
        previous = (current - timedelta(days=1)).replace(day=1)
        following = (current + timedelta(days=31)).replace(day=1)
    except OverflowError as error:
        raise FormatError(f"{local_ms} ms are beyond the calendar", "time") from error
    first, second, third = ((moment - _EPOCH) // _MILLISECOND for moment in (previous, current, following))
    return first, second, third
