"""Findings: what is wrong, where exactly, and how sure it is that something is wrong at all."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rmqtool.check.catalogue import CATALOGUE, Severity
from rmqtool.scan.fields import Field
from rmqtool.store.names import topic_keys

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import numpy.typing as npt

    from rmqtool.store.segments import Segment

    Rows = npt.NDArray[np.int64]

__all__ = ["Finding", "Severity", "Tally", "about", "finding"]


_RARE = ("caused_by", "first_timestamp", "last_timestamp")
"""fields that are there only where they say something"""


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding, with the fields of the contract.

    `position`, `physical_offset` and `length` cover the whole record, unit, item or lost range concerned;
    `part` (in JSON `field`) names the part of it. What disagrees with its record has the record's
    `physical_offset`; what merely points into damage carries `caused_by`, the code of that damage. Times are
    store times of the messages concerned, ms.
    """

    code: str
    message: str
    path: str | None = None
    position: int | None = None
    physical_offset: int | None = None
    length: int | None = None
    part: str | None = None
    expected: Any = None
    found: Any = None
    topic: str | None = None
    queue_id: int | None = None
    queue_offset: int | None = None
    caused_by: str | None = None
    first_timestamp: int | None = None
    last_timestamp: int | None = None
    severity: Severity = Severity.ERROR
    hint: str = ""

    def row(self) -> dict[str, Any]:
        """The finding in the words of the contract."""
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        values["field"] = values.pop("part")
        rare = {name: value for name in _RARE if (value := values.pop(name)) is not None}
        row = {"type": "finding", **values, **topic_keys(self.topic), "severity": self.severity.value}
        return row | rare


def finding(code: str, *, severity: Severity | None = None, **facts: Any) -> Finding:
    """A finding of the catalogue; the message is its sentence with the facts filled in.

    `severity` lowers or raises what the catalogue says, where the place decides (a lost tail under `abort`).
    """
    entry = CATALOGUE[code]
    shown = {name: _shown(name, value) for name, value in facts.items()}
    message = entry.filled(_Blank(shown))
    return Finding(code, message, severity=severity or entry.severity, hint=entry.hint, **facts)


def about(code: str, row: Rows, segment: Segment, **facts: Any) -> Finding:
    """A finding about a whole record, a row of the matrix."""
    position = int(row[Field.POSITION])
    return finding(
        code,
        path=segment.file.display_path,
        position=position,
        physical_offset=segment.base + position,
        length=int(row[Field.STORE_SIZE]),
        queue_id=int(row[Field.QUEUE_ID]),
        queue_offset=int(row[Field.QUEUE_OFFSET]),
        **facts,
    )


def _shown(name: str, value: Any) -> Any:
    if value is None:
        return "none" if name == "expected" else ""
    if not name.endswith("_timestamp"):
        return value
    try:
        return datetime.fromtimestamp(value / 1000, UTC).isoformat(timespec="milliseconds")
    except (OverflowError, ValueError, OSError):
        return value


class _Blank(dict[str, Any]):
    def __missing__(self, key: str) -> str:
        return "?"


@dataclass
class Tally:
    """Counts over findings, by code and by severity."""

    by_code: dict[str, int] = field(default_factory=dict)
    by_severity: dict[str, int] = field(default_factory=lambda: {one.value: 0 for one in Severity})

    def count(self, one: Finding) -> None:
        """Takes one finding."""
        self.by_code[one.code] = self.by_code.get(one.code, 0) + 1
        self.by_severity[one.severity.value] += 1

    def counted(self, findings: Iterator[Finding]) -> Iterator[Finding]:
        """The same findings, counted as they pass."""
        for one in findings:
            self.count(one)
            yield one
