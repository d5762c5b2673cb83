"""Releases of RocketMQ as sets, and pieces of evidence about which of them wrote something."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Final

RELEASES: Final = (
    *("4.0.0", "4.1.0", "4.2.0", "4.3.0", "4.3.1", "4.3.2", "4.4.0", "4.5.0", "4.5.1", "4.5.2"),
    *("4.6.0", "4.6.1", "4.7.0", "4.7.1", "4.8.0"),
    *("4.9.0", "4.9.1", "4.9.2", "4.9.3", "4.9.4", "4.9.5", "4.9.6", "4.9.7", "4.9.8"),
    *("5.0.0", "5.1.0", "5.1.1", "5.1.2", "5.1.3", "5.1.4", "5.2.0", "5.3.0", "5.3.1", "5.3.2", "5.3.3"),
)
"""Releases that rmqtool knows, in order. Pre-releases and development versions are left out."""

ALL: Final = frozenset(RELEASES)
LAST_4 = "4.9.8"
FIRST_5 = "5.0.0"


def version_key(version: str) -> tuple[int, ...]:
    """Sort key of a dotted version; raises ValueError for anything else."""
    return tuple(int(part) for part in version.split("."))


def since(version: str) -> frozenset[str]:
    """This release and all later ones."""
    return between(version, RELEASES[-1])


def until(version: str) -> frozenset[str]:
    """This release and all earlier ones."""
    return between(RELEASES[0], version)


def between(first: str, last: str) -> frozenset[str]:
    """Releases from `first` to `last`, both included."""
    low, high = version_key(first), version_key(last)
    return frozenset(version for version in RELEASES if low <= version_key(version) <= high)


def describe(releases: frozenset[str]) -> str:
    """Runs of neighbouring releases, as "4.7.1-4.9.0, 5.2.0-5.3.3"; "unknown" when nothing was excluded."""
    if releases == ALL:
        return "unknown"
    runs: list[list[str]] = []
    for position, version in enumerate(RELEASES):
        if version not in releases:
            continue
        if runs and position and RELEASES[position - 1] == runs[-1][-1]:
            runs[-1].append(version)
        else:
            runs.append([version])
    return ", ".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)


class Weight(IntEnum):
    """What evidence is worth: the strongest comes first, weaker pieces narrow what it leaves.

    CERTAIN: only these releases write it. LIKELY: these do by themselves, people and clients may too.
    WEAK: a few bytes that damage can make. HINT: only shown.
    """

    HINT = 0
    WEAK = 1
    LIKELY = 2
    CERTAIN = 3


@dataclass(frozen=True, slots=True)
class Evidence:
    """One observation.

    releases: those that would have left it. path: the file it was seen in, "" for an absence.

    mtime_ns: when that file was last written; among contradicting evidence the newest writer wins.
    older: True when it tells about the oldest records only, which a later release may have followed.
    agrees: whether the inferred releases fit it (set by `release.infer_release`).
    """

    fact: str
    path: str
    releases: frozenset[str]
    weight: Weight = Weight.LIKELY
    mtime_ns: int = 0
    older: bool = False
    agrees: bool = True

    def __str__(self) -> str:
        where = f"{self.path}: " if self.path else ""
        return f"{where}{self.fact} ({describe(self.releases)})"
