"""Every damaged store: what is simulated is what the real store did.

The expected values were observed with RocketMQ 4.9.8 and 5.3.3; start segment, stop offset and reason follow
from the rules of recovery, which reproduce everything observed.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from fixtures import damage_case, damage_cases
from rmqtool.scan import kernels_python
from rmqtool.scan.engine import choose_kernels
from tests.helpers import snapshot
from tests.recovery.corpus import damaged_store, derived, differences, observed, simulated
from tests.recovery.laws import contradictions

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

CLASSES = sorted({(case.release, case.cls) for case in damage_cases()})

ONE_OF_EACH = sorted({(case.release, case.cls, case.mode): case.id for case in damage_cases()}.values())


def of_each_kind() -> Iterator[str]:
    """Ids of the first case of every damage, and of all that a release did with damages of a class."""
    seen: set[object] = set()
    for case in damage_cases():
        did = case.mode, case.result["load"], case.facts["derived"].get("stopReason")
        kinds = {(case.cls, case.variant), (case.release, case.cls, *did)}
        if kinds - seen:
            yield case.id
        seen |= kinds


USUAL = frozenset(of_each_kind())
"""those of the usual run"""


@cache
def quick() -> ModuleType:
    """The compiled kernels where they can be had: their start-up is paid once for all cases."""
    return choose_kernels()


def test_the_corpus_is_whole() -> None:
    assert sum(1 for _ in damage_cases()) == 1107


@pytest.mark.share
@pytest.mark.parametrize("usual", [True, pytest.param(False, marks=pytest.mark.full)])
@pytest.mark.parametrize(("release", "cls"), CLASSES)
def test_simulates_what_the_real_store_did(release: str, cls: str, *, usual: bool) -> None:
    wrong = {}
    for case in damage_cases(release=release, cls=cls):
        if (case.id in USUAL) is not usual:
            continue
        with damaged_store(case) as store:
            outcome = simulated(store, case, quick())
        found = differences(outcome, observed(case) | derived(case))
        said = contradictions(outcome, case)
        if found or said:
            wrong[case.id] = found, said
    assert wrong == {}


@pytest.mark.share
@pytest.mark.parametrize("case_id", ONE_OF_EACH)
def test_plain_python_simulates_the_same_and_nothing_is_touched(case_id: str) -> None:
    case = damage_case(case_id)
    with damaged_store(case) as store:
        before = snapshot(store.root)
        outcome = simulated(store, case, kernels_python)
        assert snapshot(store.root) == before
    assert differences(outcome, observed(case) | derived(case)) == {}
