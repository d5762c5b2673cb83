"""Releases that agree in all that a start asks for share one: outcomes are those of starts of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from fixtures import damage_case
from fixtures.damage import copy_base
from rmqtool.broker.settings import settings_of
from rmqtool.broker.traits import ObservedTraits, behaviours
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


@pytest.mark.share
@pytest.mark.parametrize(
    "case",
    [pytest.param(one, marks=pytest.mark.full if at % 10 else ()) for at, one in enumerate(ONE_OF_EACH)],
)
def test_every_release_has_the_outcome_of_a_start_of_its_own(case: str) -> None:
    with damaged_store(damage_case(case)) as store:
        shared = conditions(store)
        for text in SCENARIOS:
            scenario = parse_scenario(text, store) if text else None
            for release in reversed(behaviours(store.release.releases)):
                own = conditions(store).start(release, scenario)
                assert shared.start(release, scenario) == own, (text, release)


IN_ANY_ORDER = (
    "v498-marker-lock-held-extra-zero-abort",
    "v498-blank-all-zero-mid-abort0",
    "v533-rebuild-queueid-clean",
)
CURES = (
    *("", "delete-consumequeue", "delete-index", "remove-abort", "remove-checkpoint", "zero-checkpoint"),
    *("start-twice", "delete-consumequeue+remove-abort", "delete-consumequeue+start-twice"),
)


@pytest.mark.share
@pytest.mark.parametrize("case", IN_ANY_ORDER)
def test_no_outcome_depends_on_the_starts_before_it(case: str) -> None:
    """Files in front were held against the queues of the start that read them first."""
    with damaged_store(damage_case(case)) as store:
        cures = {text: parse_scenario(text, store) if text else None for text in CURES}
        releases = list(behaviours(store.release.releases))
        wanted = [(release, text) for text in cures for release in (releases[0], releases[-1])]
        alone = {(release, text): conditions(store).start(release, cures[text]) for release, text in wanted}
        for order in (wanted, wanted[::-1]):
            together = conditions(store)
            for release, text in order:
                assert together.start(release, cures[text]) == alone[release, text], (text, release)


def test_files_in_front_are_held_against_the_queues_of_each_start() -> None:
    """The real 4.9.8 serves 538 first where OrderTopic/0 has none of these entries any more."""
    case = damage_case(IN_ANY_ORDER[0])
    with damaged_store(case) as store:
        how = conditions(store)
        how.start(case.release)
        after = how.start(case.release, parse_scenario("delete-consumequeue", store))
    hidden = {(one.topic, one.queue_id): one.hidden for one in after.queues}
    assert [hidden["OrderTopic", number] for number in range(3)] == [538, 57, 60]


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
    asked = ObservedTraits("5.3.3")
    assert asked.are_those_of("4.9.0")
    assert asked.long_topics
    assert asked.are_those_of("5.1.0")
    assert not asked.are_those_of("5.0.0")
