"""Laws for stores with several damages at once, each store made by one seed.

A share of them here; `-m full` takes `SEEDS` (or RMQTOOL_LAW_SEEDS=A:B) with the real stores as judges;
`--done FILE` goes on where it stopped. One seed by hand: `python -m tests.laws SEED 1`.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from tests.interop.conftest import require
from tests.laws.java import Judge
from tests.laws.judging import RELEASES, judged

if TYPE_CHECKING:
    from collections.abc import Iterator

FAST = (9, 11, 12, 17, 132, 202, 10_007, 10_033, 10_811)
WITH_JAVA = (2,)
FURTHER = (1, 3, 4, 6, 8, 14, 32, 74, 11_083)
"""seeds that found something once; what they found has tests of its own"""
SEEDS = os.environ.get("RMQTOOL_LAW_SEEDS", "10000:12000")


def every_seed() -> range:
    """The seeds of a full run."""
    first, _, behind = SEEDS.partition(":")
    return range(int(first), int(behind))


@pytest.fixture(scope="module")
def judges(
    pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Judge]]:
    """The real stores, one JVM a release."""
    place = tmp_path_factory.mktemp("judges")
    with ExitStack() as stack:
        yield {
            release: stack.enter_context(Judge(require(pytestconfig, release), place)) for release in RELEASES
        }


@pytest.mark.parametrize("seed", FAST)
def test_the_laws_hold(seed: int) -> None:
    reported, broken = judged(seed)
    assert broken == [], reported


@pytest.mark.interop
@pytest.mark.parametrize(
    "seed", [*WITH_JAVA, *(pytest.param(one, marks=pytest.mark.full) for one in (*FURTHER, *every_seed()))]
)
def test_the_real_stores_agree(seed: int, judges: dict[str, Judge]) -> None:
    reported, broken = judged(seed, judges)
    assert broken == [], reported
