"""A healthy store of seven segments, to be damaged and repaired."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fixtures import strict
from tests.repair.keep.laws import kept, problems, repair

if TYPE_CHECKING:
    from pathlib import Path

BASE = "v533-a-clean"
RELEASE = "5.3.3"
SETTINGS: dict[str, object] = {
    "mappedFileSizeCommitLog": 65536,
    "mappedFileSizeConsumeQueue": 4000,
    "maxHashSlotNum": 100,
    "maxIndexNum": 400,
}
SEGMENT = 65536


def repaired(root: Path, tmp_path: Path) -> list[str]:
    """What is wrong after the repair; everything that can still be carved has to survive."""
    must = {at: one for at, one in strict.carve(root).items() if one.placed}
    repair(root, RELEASE, tmp_path / "repaired", SETTINGS)
    found = problems(tmp_path / "repaired", must, RELEASE, SETTINGS)
    if kept(tmp_path / "repaired", RELEASE, SETTINGS).changes:
        found.append("a second time changes something")
    return found
