"""Releases that agree in all that a start asks for share one: outcomes are those of starts of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from fixtures import damage_case
from fixtures.damage import copy_base
from rmqtool.broker.settings import settings_of
from rmqtool.broker.traits import AskedTraits, behaviours
from rmqtool.recovery.scenarios import parse_scenario
from rmqtool.recovery.simulation import reading_for
from rmqtool.recovery.what_if import Conditions
from rmqtool.store.layout import Store
from rmqtool.store.lock import LockState
from tests.recovery.corpus import damaged_store
from tests.recovery.test_corpus import ONE_OF_EACH, quick

if TYPE_CHECKING:
    from pathlib import Path

NOBODY = LockState(False, None, "free")
SCENARIOS = ("", "delete-consumequeue", "remove-abort", "start-twice", "set duplicationEnable=true")


def conditions(store: Store) -> Conditions:
    return Conditions(store, settings_of(store), reading_for(store, quick()), NOBODY)


@pytest.mark.parametrize(
    "case",
    [pytest.param(one, marks=pytest.mark.full if at % 10 else ()) for at, one in enumerate(ONE_OF_EACH)],
)
def test_every_release_has_the_outcome_of_a_start_of_its_own(case: str) -> None:
    with damaged_store(damage_case(case)) as store:
        shared, alone = conditions(store), conditions(store)
        for text in SCENARIOS:
            scenario = parse_scenario(text, store) if text else None
            for release in reversed(behaviours(store.release.releases)):
                own = replace(alone).start(release, scenario)
                assert shared.start(release, scenario) == own, (text, release)


def test_the_log_of_a_crash_is_read_once_for_all_releases(tmp_path: Path) -> None:
    store = Store.open(copy_base("v533-a-crash", tmp_path / "store"))
    read: list[int] = []
    how = conditions(store)
    how = replace(how, reading=replace(how.reading, advance=read.append))
    releases = list(behaviours(store.release.releases))
    assert len(releases) > 1
    how.start(releases[-1])
    once = sum(read)
    for release in releases[:-1]:
        assert how.start(release).version == release
    assert sum(read) == once > 0


def test_what_was_not_asked_is_no_difference() -> None:
    asked = AskedTraits("5.3.3")
    assert asked.are_those_of("4.9.0")
    assert asked.long_topics
    assert asked.are_those_of("5.1.0")
    assert not asked.are_those_of("5.0.0")
