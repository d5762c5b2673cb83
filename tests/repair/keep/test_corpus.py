"""The damage corpus repaired: one case a class and release here, all of them with `-m full`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fixtures import apply_case, damage_cases
from rmqtool.errors import UnfitStoreError, UsageError
from tests.repair.keep.laws import kept, problems, repair, wanted
from tests.tiers import sampled

if TYPE_CHECKING:
    from collections.abc import Hashable
    from pathlib import Path

    from fixtures import DamageCase

NOT_OURS = {"config", "delayoffset"}
"""settings that do not fit the store, and `delayOffset.json`: no work of recover"""

ONCE_WRONG = {
    "v498-tail-stale-right-offset-abort",
    "v498-cq-empty-last-file-missing-first-abort",
    "v498-record-topic-letter-last-last-clean",
    "v533-blank-size-garbage-penultimate-clean",
    "v533-cq-zero-length-only-abort",
}
"""cases with something that the others of their class have not"""

CASES = [case for case in damage_cases() if case.cls not in NOT_OURS and not case.facts.get("lockHeld")]


def chosen() -> list[DamageCase]:
    """The first and the last variant of every class and release."""
    groups: dict[tuple[str, str], list[DamageCase]] = {}
    for case in CASES:
        groups.setdefault((case.cls, case.release), []).append(case)
    picked = [one for group in groups.values() for one in (group[0], group[len(group) // 2])]
    picked += [case for case in CASES if case.id in ONCE_WRONG]
    return list({case.id: case for case in picked}.values())


def group_of(case: DamageCase) -> Hashable:
    """Class and release; cases that were wrong once stand for themselves."""
    return case.id if case.id in ONCE_WRONG else (case.cls, case.release)


def check(case: DamageCase, place: Path) -> None:
    """Repaired once, the store is as it should be; repaired again, nothing changes."""
    root = apply_case(case, place / "store")
    must = wanted(case, root, place / "base")
    settings = dict(case.settings)
    try:
        repair(root, case.release, place / "repaired", settings)
    except (UsageError, UnfitStoreError):
        assert not must
        return
    assert problems(place / "repaired", must, case.release, settings) == []
    assert kept(place / "repaired", case.release, settings).changes == ()


@pytest.mark.share
@pytest.mark.parametrize("case", sampled(chosen(), kind=group_of), ids=lambda case: case.id)
def test_a_damaged_store_is_repaired(case: DamageCase, tmp_path: Path) -> None:
    check(case, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_every_damaged_store_is_repaired(case: DamageCase, tmp_path: Path) -> None:
    check(case, tmp_path)
