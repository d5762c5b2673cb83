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


def doubtful(records: int, cause: Doubt) -> Row:
    """What the row of records in doubt has beside their place: how many they are, and what is wrong."""
    return {"records": records, "cause": cause.value, "error": _why(records, cause)}


def _why(records: int, cause: Doubt) -> str:
    many = f"{records} record{'s' * (records > 1)}"
    if cause is Doubt.TORN:
        return f"{many} torn: a zero byte in topic or properties, or a topic that is not UTF-8"
    if cause is Doubt.MISPLACED:
        what = "states another physical offset" if records == 1 else "state other physical offsets"
        return f"{many} {what}: what was stored here is overwritten"
    return "1 body fails its CRC" if records == 1 else f"{records} bodies fail their CRC"


class DoubtJoiner:
    """Takes rows in order; of one file and cause it keeps one row, from its first record to behind its last.

    Readers make one for each run, and where runs end depends on how the log was cut. rows: those kept.
    """

    def __init__(self, rows: list[Row]) -> None:
        self.rows = rows
        self._places = {_key(row): at for at, row in enumerate(rows) if "cause" in row}

    def add(self, row: Row, *, most: int | None = None) -> bool:
        """Whether the row is kept, or part of one that is; with `most` rows no more are kept."""
        key = _key(row) if "cause" in row else None
        if key is not None and key in self._places:
            at = self._places[key]
            self.rows[at] = _both(self.rows[at], row)
            return True
        if most is not None and len(self.rows) >= most:
            return False
        if key is not None:
            self._places[key] = len(self.rows)
        self.rows.append(row)
        return True


def joined(rows: Iterable[Row]) -> list[Row]:
    """The rows, of one file and cause one; see `DoubtJoiner`."""
    joiner = DoubtJoiner([])
    for row in rows:
        joiner.add(row)
    return joiner.rows


def _key(row: Row) -> tuple[str | None, str, str]:
    return row.get("store"), row["path"], row["cause"]


def _both(row: Row, other: Row) -> Row:
    first = min(row, other, key=lambda one: int(one["position"]))
    end = max(one["position"] + one["length"] for one in (row, other))
    records = row["records"] + other["records"]
    return first | {"length": end - first["position"]} | doubtful(records, Doubt(row["cause"]))
