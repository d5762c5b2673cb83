"""Healthy stores: nothing is to be repaired, not one byte."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from fixtures import golden_names
from fixtures.timers import timers_moved
from rmqtool.store.layout import Store
from tests.repair.keep.laws import kept, repair

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fixtures import Golden

HEALTHY = [
    name
    for name in golden_names()
    if not any(word in name for word in ("unclean", "dledger", "-ha", "crash"))
]


@pytest.mark.share
@pytest.mark.parametrize("name", HEALTHY)
def test_a_healthy_store_stays_as_it_is(
    name: str, fresh_golden: Callable[[str], Golden], golden: Callable[[str], Golden]
) -> None:
    timed = name in {"b533-pop", "b533-timer"}  # what waited was due long ago
    root = (fresh_golden if timed else golden)(name).path
    if timed:
        timers_moved(root)
    changes = kept(root, Store.open(root).release.last).changes
    # without a topic table no broker of 5.x opens batch queues
    assert {one.path for one in changes} == (
        {"config", "config/topics.json"} if name == "v533-batchcq" else set()
    )


@pytest.mark.share
@pytest.mark.parametrize("name", ["v498-unclean", "v533-unclean", "b533-unclean", "v470-unclean"])
def test_an_unclean_store_is_repaired_once(
    name: str, golden: Callable[[str], Golden], tmp_path: Path
) -> None:
    root = golden(name).path
    release = Store.open(root).release.last
    plan = repair(root, release, tmp_path / "repaired")
    assert "abort" in {one.path for one in plan.changes}
    assert kept(tmp_path / "repaired", release).changes == ()
