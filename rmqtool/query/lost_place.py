"""What lies at an offset that an index item or a message id names and where no message is found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.errors import RmqtoolError
from rmqtool.query.locate import What, look_at
from rmqtool.scan.fields import Field
from rmqtool.scan.picked import Missing
from rmqtool.store.coverage import Incomplete, rest_of_log

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rmqtool.query.locate import Place
    from rmqtool.store.segments import SegmentSet

    Row = dict[str, Any]

DAMAGE = frozenset({What.DAMAGED, What.GARBAGE, What.STALE})
LOOKED_AT = 10
"""places to which items of an index lead and where no record lies that are looked at"""


def damaged_range(place: Place) -> tuple[int, int] | None:
    """Physical offsets [from, to) of the damage that a place lies in, None where there is no damage."""
    if place.segment is None or place.what not in DAMAGE:
        return None
    start = place.segment.base + place.start
    return start, start + place.length


def without_key(physical_offset: int) -> Missing:
    """A whole record to which an item leads that has no key of the item's hash."""
    return Missing(physical_offset, "other_key", f"the index knew a message: {_other_key(physical_offset)}")


def _other_key(physical_offset: int) -> str:
    return f"offset {physical_offset}, whose record does not have that key"


def in_words(place: Place) -> str:
    """The offset and what lies there, which is not what was looked for."""
    stated = None if place.row is None else place.row[Field.STORED_PHYSICAL_OFFSET]
    if place.what is What.RECORD and stated == place.physical_offset:
        return _other_key(place.physical_offset)
    offset = f"offset {place.physical_offset}"
    damaged = damaged_range(place)
    if damaged is not None:
        return f"{offset}, inside the damaged range {damaged[0]}–{damaged[1]}"
    if place.what is What.NO_FILE:
        return f"{offset}, where no file of the log lies"
    if place.what is What.INSIDE and place.segment is not None:
        return f"{offset}, inside the record at {place.segment.base + place.start}"
    if place.what is What.BLANK:
        return f"{offset}, in the filler at the end of a segment"
    if place.what is What.ZERO:
        return f"{offset}, behind the end of the log"
    return f"{offset}, where a record states another place"


def known_place(segments: SegmentSet, physical_offset: int) -> tuple[str, Row]:
    """Words and a row of the summary about an offset that the index knew."""
    if physical_offset < segments.first_offset:
        words = f"offset {physical_offset}, which has expired"
        return words, {"physical_offset": physical_offset, "state": "expired"}
    try:
        place = look_at(segments, physical_offset)
    except RmqtoolError as error:
        words = f"offset {physical_offset}, which cannot be read: {error}"
        return words, {"physical_offset": physical_offset, "state": "unreadable"}
    row: Row = {"physical_offset": physical_offset, "state": str(place.what)}
    damaged = damaged_range(place)
    if damaged is not None:
        row |= {"damaged_from": damaged[0], "damaged_to": damaged[1]}
    return in_words(place), row


def where_items_lead(segments: SegmentSet, offsets: Iterable[int]) -> list[Row]:
    """Rows of `not_covered` for physical offsets at which the index knew a message and no such one lies.

    None for what has expired, and for a byte inside of a record: there the item is wrong.
    """
    misdirected = sorted(one for one in set(offsets) if one >= segments.first_offset)
    rows: list[Row] = []
    for offset in misdirected[:LOOKED_AT]:
        words, known = known_place(segments, offset)
        if known["state"] != What.INSIDE:
            place = {"path": "commitlog", "physical_offset": offset, "reason": Incomplete.DAMAGE.value}
            rows.append(place | {"error": f"the index knew a message: {words}"})
    if len(misdirected) > LOOKED_AT:
        words = "the index knew messages at further places without a record"
        rows.append({"path": "commitlog", "reason": Incomplete.DAMAGE.value, "error": words})
    return rows


def damage_rows(place: Place) -> list[Row]:
    """Rows of `not_covered` for the damage around a place."""
    damaged = damaged_range(place)
    if place.what is What.BLANK and place.position == place.start and place.segment is not None:
        # an id names the first byte of a message, so one was where the filler begins
        damaged = place.physical_offset, place.physical_offset + place.length
    if damaged is None or place.segment is None:
        return []
    return rest_of_log([place.segment], damaged[0], Incomplete.DAMAGE, end=damaged[1])
