"""Findings by their cause: what follows from one damage is one group, however many findings it makes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rmqtool.output.finding_rows import hint_for

if TYPE_CHECKING:
    from rmqtool.check.findings import Finding

    Row = dict[str, Any]

MOST = 20
"""findings of a group that are listed"""
_RANKS = ("error", "warning", "note")


@dataclass
class _Group:
    cause: str
    by_code: Counter[str] = field(default_factory=Counter)
    by_severity: Counter[str] = field(default_factory=Counter)
    first: list[Row] = field(default_factory=list)

    @property
    def severity(self) -> str:
        return next(one for one in _RANKS if self.by_severity[one])


class FindingGroups:
    """Takes findings one by one; memory goes with the number of causes and of files that are damaged.

    store: as it was named, for commands to copy.
    """

    def __init__(self, store: str) -> None:
        self._store = store
        self._groups: dict[str, _Group] = {}
        self.by_path: Counter[str] = Counter()
        """findings from warning up"""

    def take(self, one: Finding) -> None:
        """One finding."""
        cause = one.caused_by or one.code
        group = self._groups.setdefault(cause, _Group(cause))
        group.by_code[one.code] += 1
        group.by_severity[one.severity.value] += 1
        if len(group.first) < MOST:
            group.first.append(one.row())
        if one.path is not None and one.severity.value != "note":
            self.by_path[one.path] += 1

    def rows(self) -> list[Row]:
        """A row a cause, the gravest first, then the one with the most findings."""
        found = sorted(
            self._groups.values(),
            key=lambda one: (_RANKS.index(one.severity), -one.by_code.total(), one.cause),
        )
        return [
            {
                "cause": one.cause,
                "severity": one.severity,
                "findings": one.by_code.total(),
                "by_code": dict(sorted(one.by_code.items())),
                "hint": self._hint(one),
                "first": one.first,
            }
            for one in found
        ]

    def _hint(self, group: _Group) -> str:
        """What helps against the cause; where only what follows from it is listed, against that."""
        own = [row for row in group.first if row["code"] == group.cause]
        return hint_for((own or group.first)[0], self._store)
