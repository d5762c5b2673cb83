"""Which release wrote a store: ranges that agree with what lies on disk, and the evidence for them.

Nothing in a store names its release. What differs between releases in bytes, files and JSON does tell
(docs/format, "differences between releases"). Presence of something new is certain, absence only likely. A
store that was upgraded holds traces of both releases; the newest writer counts, contradictions are listed.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rmqtool.store.release_files import file_evidence
from rmqtool.store.release_records import record_evidence
from rmqtool.store.releases import ALL, RELEASES, Evidence, Weight, describe, version_key

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rmqtool.store.contents import StoreContents

__all__ = ["Evidence", "Release", "Weight", "infer_release"]

_BURST_NS = 60 * 1_000_000_000
"""Modification times this close together do not tell an order of writers (a copied or very young store)."""


@dataclass(frozen=True, slots=True)
class Release:
    """What `infer_release` says.

    releases: every release that is not excluded. guess: the same as text, "unknown" without evidence.

    mixed: some evidence contradicts, as after an upgrade. evidence: all of it, most telling first.
    """

    releases: frozenset[str]
    guess: str
    mixed: bool
    evidence: tuple[Evidence, ...]

    @property
    def first(self) -> str:
        """Lowest release that is possible."""
        return min(self.releases, key=version_key)

    @property
    def last(self) -> str:
        """Highest release that is possible, the one whose behaviour is assumed when one has to be chosen."""
        return max(self.releases, key=version_key)

    @property
    def known(self) -> bool:
        """Whether anything was excluded."""
        return self.releases != ALL


def infer_release(store: StoreContents) -> Release:
    """Infers the releases that may have written `store` last.

    Reads the checkpoint, markers, configuration files, the header of the newest index file and some records
    from the beginning and the end of the log; unreadable files are passed over.
    """
    return combine([*file_evidence(store), *record_evidence(store)])


def combine(evidence: Iterable[Evidence]) -> Release:
    """Puts evidence together: certain before likely, newest before oldest; the rest contradicts."""
    found = list(evidence)
    times = [one.mtime_ns for one in found if one.mtime_ns]
    by_time = bool(times) and max(times) - min(times) > _BURST_NS
    newest_release = {one: max(map(RELEASES.index, one.releases)) for one in found}
    oldest_release = {one: min(map(RELEASES.index, one.releases)) for one in found}

    def rank(one: Evidence) -> tuple[bool, int, int, int, int]:
        time = one.mtime_ns if by_time else 0
        return one.older, -one.weight, -time, -oldest_release[one], -newest_release[one]

    releases = ALL
    judged: list[Evidence] = []
    mixed = False
    for one in sorted(found, key=rank):
        agrees = bool(releases & one.releases)
        if agrees and one.weight > Weight.HINT and not one.older:
            releases &= one.releases
        mixed |= not agrees and one.weight > Weight.WEAK
        judged.append(one if agrees else replace(one, agrees=False))
    return Release(releases, describe(releases), mixed, tuple(judged))
