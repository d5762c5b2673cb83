"""A bound on findings of one code in one file: those beyond it are counted in a closing finding."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rmqtool.check.findings import finding

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.check.findings import Finding

MOST = 4096
"""findings of one code in one file that are listed"""


class Caps:
    """Lets the first `MOST` of each path and code pass; `closing` tells of the others by `more_code`."""

    def __init__(self, more_code: str) -> None:
        self._more_code = more_code
        self._seen: Counter[tuple[str | None, str]] = Counter()

    def passes(self, one: Finding) -> bool:
        """Is this one listed? Counts it either way."""
        self._seen[one.path, one.code] += 1
        return self._seen[one.path, one.code] <= MOST

    def closing(self) -> Iterator[Finding]:
        """One finding for each path and code that had more."""
        for (path, code), count in sorted(
            self._seen.items(), key=lambda entry: (entry[0][0] or "", entry[0][1])
        ):
            if count > MOST:
                yield finding(self._more_code, path=path, part=code, found=count - MOST)
