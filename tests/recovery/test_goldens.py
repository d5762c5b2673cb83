"""Stores that real brokers left in good order: a start changes no bound of any queue, and is safe.

The expected bounds are those that the same release reported after it had opened a copy.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from fixtures import golden_names
from fixtures.timers import timers_moved
from rmqtool.recovery.lookback import LookBack
from rmqtool.recovery.outcome import Verdict
from rmqtool.recovery.simulation import simulate
from rmqtool.store.config import load_broker_conf
from rmqtool.store.layout import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from fixtures import Golden
    from rmqtool.recovery.outcome import Outcome

NOT_MODELLED = ("dledger", "controller", "rocksdb", "rocksdb-unclean")
ALL = golden_names()
MODELLED = [name for name in ALL if not name.endswith(NOT_MODELLED)]
REBUILT = [
    name
    for name in golden_names("api")
    if name in MODELLED and not name.endswith(("expired-all", "expired-head", "preblank"))
]


def of(golden: Golden) -> Outcome:
    """The outcome of a start with the release that wrote the store."""
    store = Store.open(golden.path, config=load_broker_conf(golden.config_path))
    return simulate(store, golden.release)


def bounds(golden: Golden) -> dict[tuple[str, int], tuple[int, int]]:
    """What the release said about each queue that has or had messages."""
    reported: Any = golden.expected["queues"]
    found: dict[tuple[str, int], tuple[int, int]]
    if isinstance(reported, dict):
        found = {
            (topic, int(queue)): (value["min"], value["max"])
            for topic, queues in reported.items()
            for queue, value in queues.items()
        }
    else:
        found = {(one["topic"], one["queue"]): (one["min"], one["max"]) for one in reported}
    return {key: value for key, value in found.items() if value[1]}


def simulated(outcome: Outcome) -> dict[tuple[str, int], tuple[int, int]]:
    return {
        (one.topic, one.queue_id): (one.min_offset, one.max_offset)
        for one in outcome.queues
        if one.max_offset
    }


TIMED = ("b533-pop", "b533-timer")
"""their timers were due long ago"""


@pytest.mark.parametrize("name", MODELLED)
def test_bounds_stay_and_a_start_is_safe(
    fresh_golden: Callable[[str], Golden], golden: Callable[[str], Golden], name: str
) -> None:
    opened = (fresh_golden if name in TIMED else golden)(name)
    if name in TIMED:
        timers_moved(opened.path)
    outcome = of(opened)
    assert outcome.starts
    # batch queues, and no topic table: the real store does not load it without one
    # tables in RocksDB are not looked at, nor what was popped
    unread = ("b533-rocksdb-v2", "b533-pop-kv")
    assert outcome.safe_to_start is (None if name in unread else name != "v533-batchcq")
    wanted = bounds(opened)
    if opened.kind == "api":
        assert outcome.max_physical_offset == opened.expected["maxPhyOffset"]
        assert outcome.min_physical_offset == opened.expected["minPhyOffset"]
        assert simulated(outcome) == wanted
    else:
        # internal topics were not asked for, and where the broker went on writing, queues have grown since
        had = simulated(outcome)
        grown = name.endswith(("unclean", "timer"))
        wrong = {key for key in wanted if had[key] != wanted[key] and not (grown and had[key] > wanted[key])}
        assert wrong == set()


@pytest.mark.parametrize("name", sorted(set(ALL) - set(MODELLED)))
def test_what_is_not_modelled_makes_the_answer_uncertain(golden: Callable[[str], Golden], name: str) -> None:
    outcome = of(golden(name))
    assert outcome.not_looked_at
    assert outcome.safe_to_start is None


def test_topics_in_rocksdb_are_not_missing(golden: Callable[[str], Golden]) -> None:
    store = Store.open(golden("b533-rocksdb-v2").path)
    found = {release: simulate(store, release) for release in ("4.9.8", "5.3.3")}
    assert found["5.3.3"].not_looked_at == ("config/rdb (RocksDB)",)
    unknown = {
        release: "DR-TOPICS-UNKNOWN" in {one.code for one in outcome.consequences}
        for release, outcome in found.items()
    }
    assert unknown == {"4.9.8": True, "5.3.3": False}


def test_controller_mode_is_known_without_a_configuration(golden: Callable[[str], Golden]) -> None:
    outcome = simulate(Store.open(golden("b533-controller").path), "5.3.3")
    assert outcome.not_looked_at == ("controller",)
    assert outcome.safe_to_start is None


def test_light_queues_tell_of_their_settings(golden: Callable[[str], Golden]) -> None:
    """4.9.8 feeds queues of any name from a list; 5.3.3 wrote entries of one at other places than stated."""
    for name, verdict in (("v498-lmq", Verdict.SAFE), ("v533-lmq", Verdict.DAMAGED)):
        found = golden(name)
        given = Store.open(found.path, config=load_broker_conf(found.config_path))
        for store in (Store.open(found.path), given):
            assert simulate(store, found.release, look_back=LookBack()).verdict is verdict, name


def test_what_was_popped_may_lie_in_rocksdb(golden: Callable[[str], Golden]) -> None:
    """With its `CURRENT` spoiled a broker of 5.3.3 ends: PopConsumerStore init error."""
    store = Store.open(golden("b533-pop-kv").path)
    assert simulate(store, "5.3.3").not_looked_at == ("kvStore (RocksDB)",)
    assert simulate(store, "5.3.1").not_looked_at == ()


@pytest.mark.share
@pytest.mark.parametrize("name", REBUILT)
def test_queues_are_rebuilt_from_the_whole_log(fresh_golden: Callable[[str], Golden], name: str) -> None:
    opened = fresh_golden(name)
    for lost in ("consumequeue", "batchconsumequeue"):
        shutil.rmtree(opened.path / lost, ignore_errors=True)
    (opened.path / "checkpoint").unlink()
    (opened.path / "abort").touch()
    outcome = of(opened)
    assert outcome.mode == "abnormal"
    assert outcome.start_segment == opened.expected["minPhyOffset"]
    assert simulated(outcome) == bounds(opened)
