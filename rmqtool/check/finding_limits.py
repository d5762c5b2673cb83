"""A bound on findings of one code in one file: those beyond it are counted in a closing finding."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rmqtool.check.findings import Severity, finding

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rmqtool.check.findings import Finding

MOST = 4096
"""findings of one code in one file that are listed"""


_RANKS = (Severity.NOTE, Severity.WARNING, Severity.ERROR)


class FindingLimit:
    """Lets the first `MOST` of each path and code pass; `closing` tells of the others by `more_code`."""

    def __init__(self, more_code: str) -> None:
        self._more_code = more_code
        self._seen: Counter[tuple[str | None, str]] = Counter()
        self._worst: dict[tuple[str | None, str], Severity] = {}

    def passes(self, one: Finding) -> bool:
        """Is this one listed? Counts it either way."""
        key = one.path, one.code
        self._seen[key] += 1
        if self._seen[key] <= MOST:
            return True
        self._worst[key] = max(self._worst.get(key, one.severity), one.severity, key=_RANKS.index)
        return False

    def closing(self) -> Iterator[Finding]:
        """One finding for each path and code that had more."""
        for (path, code), count in sorted(
            self._seen.items(), key=lambda entry: (entry[0][0] or "", entry[0][1])
        ):
            if count > MOST:
                yield finding(
                    self._more_code,
                    path=path,
                    part=code,
                    found=count - MOST,
                    severity=self._worst[path, code],
                )


def limited(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The same findings about the log and its queues, those beyond the bound counted at the end.

    A segment in the place of another, or a queue directory under another name, is wrong in every record and
    unit; so may be notes about properties, in a store that is right. (The index has bounds of its own.)
    """
    queues = FindingLimit("CQ-MORE")
    limits = {"CL": FindingLimit("CL-MORE"), "CQ": queues, "BCQ": queues}
    for one in findings:
        own = limits.get(one.code.partition("-")[0])
        if own is None or own.passes(one):
            yield one
    yield from limits["CL"].closing()
    yield from queues.closing()
