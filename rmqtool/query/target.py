"""What the argument OFFSET|ID means."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from formats.message_id import OffsetMessageId
from formats.primitives import host_text
from rmqtool.query.by_id import Matches, find_uniq_key
from rmqtool.query.displaced import displaced_at
from rmqtool.query.locate import Place, What, look_at
from rmqtool.query.lost_end import lost_end
from rmqtool.query.lost_place import damage_rows, known_place
from rmqtool.query.meaning import unique_id_parts
from rmqtool.query.one_record import OneRecord, read_record
from rmqtool.store.coverage import holes_in

if TYPE_CHECKING:
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store

_ID = re.compile(r"(?:[0-9A-Fa-f]{32}|[0-9A-Fa-f]{56})")
_LARGEST_PORT = 65535


def is_id(text: str) -> bool:
    """Whether the argument has the form of a message id: no offset has so many digits."""
    return _ID.fullmatch(text) is not None


@dataclass(frozen=True)
class Answer:
    """What was found for an argument.

    kind: `offset`, `offset_msg_id` or `uniq_key`. place: None when nothing answers to a unique id. matches:
    all records with a unique id, source: how they were found. id_parts: what is in the id. notes: remarks for
    people. unreadable: what a search could not read or did not come to, as rows of `not_covered`.
    """

    given: str
    kind: str
    place: Place | None
    matches: tuple[int, ...] = ()
    source: str | None = None
    id_parts: dict[str, Any] | None = None
    notes: list[str] = field(default_factory=list)
    unreadable: tuple[dict[str, Any], ...] = ()

    def around(self, length: int = 64) -> bytes:
        """The bytes from the offset on, b"" where no file lies."""
        if self.place is None or self.place.segment is None:
            return b""
        with self.place.segment.open("pread") as source:
            return source.window(self.place.position, length).tobytes()

    def record(self) -> OneRecord | None:
        """The record, damaged record or filler that lies there; None when nothing of the kind does."""
        shown = {What.RECORD, What.INSIDE, What.DAMAGED, What.BLANK}
        return read_record(self.place) if self.place is not None and self.place.what in shown else None


def at_offset(store: Store, given: str, physical_offset: int) -> Answer:
    """What lies at an offset."""
    return Answer(given, "offset", look_at(store.segments, physical_offset))


def by_id(store: Store, given: str, reading: ReadOptions) -> Answer:
    """The one record to show for an id: by the offset in it, if that record was stored by the host in it.

    Otherwise a UNIQ_KEY of these digits counts for more than an offset that happens to be that of a record.
    """
    offset = _by_offset_id(store, given)
    if offset is not None and (offset.id_parts or {}).get("host_agrees"):
        return offset
    unique = _by_uniq_key(store, given, reading, thorough=offset is None or not offset.matches)
    if offset is None:
        return unique
    if not unique.matches:
        return _without_unique(offset, unique)
    if not offset.matches:
        return unique
    other = f"read as an offset message id it names the record at {offset.matches[0]}"
    return replace(unique, notes=[*unique.notes, other])


def readings_of(store: Store, given: str, reading: ReadOptions) -> list[Answer]:
    """What an id stands for: the digits of both kinds of id have the same number, so both are tried.

    Those that find something, the offset first; when none does, the UNIQ_KEY that nobody has.
    """
    offset = _by_offset_id(store, given)
    unique = _by_uniq_key(store, given, reading, thorough=offset is None or not offset.matches)
    if offset is None or (unique.matches and not offset.matches):
        return [unique]
    if unique.matches:
        return [offset, unique]
    return [_without_unique(offset, unique)]


def _without_unique(offset: Answer, unique: Answer) -> Answer:
    """The answer by offset, where the search for a UNIQ_KEY found none and may have met the same damage."""
    rows = {
        (row["path"], row.get("physical_offset")): row for row in (*offset.unreadable, *unique.unreadable)
    }
    return replace(offset, unreadable=tuple(rows.values()))


def _by_uniq_key(store: Store, given: str, reading: ReadOptions, *, thorough: bool) -> Answer:
    """Not every UNIQ_KEY has the form of a client id: brokers make others, as for POP checkpoints."""
    found: Matches = find_uniq_key(store, given, reading, thorough=thorough)
    place = look_at(store.segments, found.offsets[0]) if found.offsets else None
    notes = []
    if len(found.offsets) > 1:
        others = ", ".join(map(str, found.offsets[1:6]))
        more = ", …" if len(found.offsets) > 6 else ""
        notes.append(f"{len(found.offsets) - 1} more with this id, at {others}{more}")
    parts = unique_id_parts(given)
    return Answer(given, "uniq_key", place, found.offsets, found.source, parts, notes, found.unreadable)


def _lost_at(store: Store, place: Place) -> tuple[dict[str, Any], ...]:
    """Rows of `not_covered` where what was at a place may have been lost: damage, a hole, the lost end."""
    at = place.physical_offset
    behind = [
        row
        for row in lost_end(store)
        if row["physical_offset"] <= at < row["physical_offset"] + row["length"]
    ]
    holes = holes_in(store.segments, [(at, at + 1)])
    return (*damage_rows(place), *holes, *behind, *displaced_at(store, [at]))


def _by_offset_id(store: Store, given: str) -> Answer | None:
    """None when the text cannot be an offset message id of this store.

    A client id hardly ever has such a port: it would be that of a process 0. So a place without a record is
    reported, also one that the log has not come to, and not the process and time that the digits would mean.
    """
    if not is_id(given):
        return None
    one = OffsetMessageId.decode(given)
    if not 0 <= one.port <= _LARGEST_PORT or one.offset < 0:
        return None
    place = look_at(store.segments, one.offset)
    if place.what is not What.RECORD:
        if not one.port:
            return None
        lost = _lost_at(store, place)
        parts: dict[str, Any] = {"host": one.host, "offset": one.offset}
        words, _ = known_place(store.segments, one.offset)
        note = f"not found: the id names host {one.host}, {words}"
        return Answer(given, "offset_msg_id", place, (), "offset", parts, [note], lost)
    host = read_record(place).values["store_host"]
    stored = host_text(host.ip, host.port)
    notes = [] if stored == one.host else [f"the id names host {one.host}, the record was stored by {stored}"]
    parts = {"host": one.host, "offset": one.offset, "host_agrees": not notes}
    return Answer(given, "offset_msg_id", place, (one.offset,), "offset", parts, notes)
