"""What the argument OFFSET|ID means."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from formats.message_id import OffsetMessageId
from formats.primitives import host_text
from rmqtool.query.by_id import Matches, find_uniq_key
from rmqtool.query.locate import Place, What, look_at
from rmqtool.query.meaning import unique_id_parts
from rmqtool.query.one_record import OneRecord, read_record

if TYPE_CHECKING:
    from rmqtool.query.reading import Reading
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


def by_id(store: Store, given: str, reading: Reading) -> Answer:
    """The one record to show for an id: by the offset in it, if that record was stored by the host in it.

    Otherwise a UNIQ_KEY of these digits counts for more than an offset that happens to be that of a record.
    """
    offset = _by_offset_id(store, given)
    if offset is not None and (offset.id_parts or {})["host_agrees"]:
        return offset
    unique = _by_uniq_key(store, given, reading, thorough=offset is None)
    if offset is None:
        return unique
    if not unique.matches:
        return replace(offset, unreadable=unique.unreadable)
    other = f"read as an offset message id it names the record at {offset.matches[0]}"
    return replace(unique, notes=[*unique.notes, other])


def readings_of(store: Store, given: str, reading: Reading) -> list[Answer]:
    """What an id stands for: the digits of both kinds of id have the same number, so both are tried.

    Those that find something, the offset first; when none does, the UNIQ_KEY that nobody has.
    """
    offset = _by_offset_id(store, given)
    unique = _by_uniq_key(store, given, reading, thorough=offset is None)
    if offset is None:
        return [unique]
    if unique.matches:
        return [offset, unique]
    return [replace(offset, unreadable=unique.unreadable)]


def _by_uniq_key(store: Store, given: str, reading: Reading, *, thorough: bool) -> Answer:
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


def _by_offset_id(store: Store, given: str) -> Answer | None:
    """None when the text can be no offset message id of this store."""
    if not is_id(given):
        return None
    one = OffsetMessageId.decode(given)
    if not 0 <= one.port <= _LARGEST_PORT or one.offset < 0:
        return None
    place = look_at(store.segments, one.offset)
    if place.what is not What.RECORD:
        return None
    host = read_record(place).values["store_host"]
    stored = host_text(host.ip, host.port)
    notes = [] if stored == one.host else [f"the id names host {one.host}, the record was stored by {stored}"]
    parts = {"host": one.host, "offset": one.offset, "host_agrees": not notes}
    return Answer(given, "offset_msg_id", place, (one.offset,), "offset", parts, notes)
