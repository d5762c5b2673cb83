"""Law: what is `safe` is served by the real store, all of it. Held against the damage corpus."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fixtures import base_facts, damage_cases
from rmqtool.recovery.outcome import Verdict
from rmqtool.scan import kernels_python
from tests.recovery.corpus import damaged_store, simulated

if TYPE_CHECKING:
    from fixtures import DamageCase
    from rmqtool.recovery.outcome import Outcome

CASES = [
    case
    for case in damage_cases()
    if not case.facts.get("lockHeld") and case.result.get("readable") != "hang"
]


def holds(case: DamageCase) -> bool:
    with damaged_store(case) as store:
        outcome = simulated(store, case, kernels_python)
    return outcome.verdict is not Verdict.SAFE or served(case, outcome)


def served(case: DamageCase, outcome: Outcome) -> bool:
    """Whether the real store started and served every message; without its first files it cannot."""
    result = case.result
    if result["load"] != "ok" or result.get("start", "ok") != "ok":
        return False
    readable = result.get("readable")
    fewer = isinstance(readable, int) and readable < base_facts(case.base)["messages"]
    foreign = any("does not fit" in str(odd) for odd in (result.get("readOddities") or {}).values())
    return not foreign and (not fewer or outcome.min_physical_offset > 0)


@pytest.mark.share
@pytest.mark.parametrize("case", CASES[::25], ids=lambda case: case.id)
def test_a_share(case: DamageCase) -> None:
    assert holds(case)


@pytest.mark.full
def test_every_case() -> None:
    assert [case.id for case in CASES if not holds(case)] == []
