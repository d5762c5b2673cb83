"""Records that are listed though they are not what was written there, as rows of `not_covered`."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

Row = dict[str, Any]


class Doubt(StrEnum):
    """Why records are not what was written there."""

    MISPLACED = "misplaced"
    """they state another physical offset: other bytes lie where theirs were, and they where others were"""
    BODY = "body"
    """their bodies fail the CRC"""
    TORN = "torn"
    """`scan.fields.TORN`"""


def why_doubtful(records: int, cause: Doubt) -> str:
    """What is wrong with records that are listed though."""
    many = f"{records} record{'s' * (records > 1)}"
    if cause is Doubt.TORN:
        return f"{many} torn: a zero byte in topic or properties, or a topic that is not UTF-8"
    if cause is Doubt.MISPLACED:
        what = "states another physical offset" if records == 1 else "state other physical offsets"
        return f"{many} {what}: what was stored here is overwritten"
    return "1 body fails its CRC" if records == 1 else f"{records} bodies fail their CRC"


def joined(rows: Iterable[Row]) -> list[Row]:
    """Of one file and cause one row, from the first of its records to behind the last.

    Readers make one for each run, and where runs end depends on how the log was cut.
    """
    found: list[Row] = []
    places: dict[tuple[str | None, str, Doubt], int] = {}
    for row in rows:
        doubt = _doubt_of(row)
        if doubt is None:
            found.append(row)
            continue
        records, cause = doubt
        key = row.get("store"), row["path"], cause
        if key not in places:
            places[key] = len(found)
            found.append(row)
            continue
        before = found[places[key]]
        more = records + int(before["error"].split()[0])
        found[places[key]] = _around(before, row) | {"error": why_doubtful(more, cause)}
    return found


def _doubt_of(row: Row) -> tuple[int, Doubt] | None:
    text = row.get("error", "")
    number = text.partition(" ")[0]
    if "position" not in row or "length" not in row or not number.isdecimal():
        return None
    return next(((int(number), one) for one in Doubt if why_doubtful(int(number), one) == text), None)


def _around(row: Row, other: Row) -> Row:
    first = min(row, other, key=lambda one: int(one["position"]))
    end = max(one["position"] + one["length"] for one in (row, other))
    return first | {"length": end - first["position"]}
