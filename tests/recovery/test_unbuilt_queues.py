"""Queues that records list, under brokers without `enableMultiDispatch`: they build none of the entries."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.goldens import broker_conf
from rmqtool.recovery.lookback import LookBack
from rmqtool.recovery.outcome import Verdict
from rmqtool.recovery.simulation import simulate
from rmqtool.store.config import load_broker_conf
from rmqtool.store.layout import Store
from tests.helpers import rmq
from tests.recovery.showing import of, shows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fixtures import Golden
    from rmqtool.recovery.outcome import Outcome

    Open = Callable[[str], Golden]

GOLDENS = {
    "v498-lmq": {("%LMQ%alpha", 0): 60, ("%LMQ%beta", 0): 45, ("plainq", 1): 15},
    "v533-lmq": {("%LMQ%alpha", 0): 60, ("%LMQ%beta", 0): 30},
}
"""entries of the queues that records list; no start of 4.9.8 or 5.3.3 built one without the setting"""
OFF, ON = ({"enableMultiDispatch": value, "enableLmq": value} for value in (False, True))
SIZES = {"mappedFileSizeCommitLog": 32768, "mappedFileSizeConsumeQueue": 1000}


def conf(directory: Path, settings: dict[str, Any]) -> Path:
    path = directory / "broker.conf"
    path.write_text(broker_conf({**SIZES, "maxHashSlotNum": 100, "maxIndexNum": 400, **settings}))
    return path


def without(golden: Golden, pattern: str) -> Path:
    for path in golden.path.glob(pattern):
        shutil.rmtree(path)
    return golden.path


def started(root: Path, release: str, directory: Path, settings: dict[str, Any]) -> Outcome:
    store = Store.open(root, config=load_broker_conf(conf(directory, settings)))
    return simulate(store, release, look_back=LookBack())


def unbuilt(outcome: Outcome, code: str) -> dict[tuple[str, int], int]:
    found = [one.facts for one in of(outcome, code)]
    return {(one["topic"], one["queue_id"]): one["count"] for one in found}


@shows("DR-LMQ-UNBUILT")
@pytest.mark.parametrize("settings", [OFF, {}, {**OFF, "enableLmq": True}])
@pytest.mark.parametrize("name", GOLDENS)
def test_a_start_without_queues_leaves_them_out_for_good(
    fresh_golden: Open, tmp_path: Path, name: str, settings: dict[str, Any]
) -> None:
    """A start with the settings after it began behind these records, and gave new messages offsets from 0."""
    golden = fresh_golden(name)
    outcome = started(without(golden, "consumequeue"), golden.release, tmp_path, settings)
    assert outcome.verdict is Verdict.UNSAFE
    assert unbuilt(outcome, "DR-LMQ-UNBUILT") == GOLDENS[name]
    assert not unbuilt(started(golden.path, golden.release, tmp_path, ON), "DR-LMQ-UNBUILT")


@shows("DR-LMQ-MISSING")
@pytest.mark.parametrize("settings", [OFF, {}])
@pytest.mark.parametrize("name", GOLDENS)
def test_light_queues_that_are_missing_already(
    fresh_golden: Open, tmp_path: Path, name: str, settings: dict[str, Any]
) -> None:
    golden = fresh_golden(name)
    root = without(golden, "consumequeue/%LMQ%*")
    outcome = started(root, golden.release, tmp_path, settings)
    light = {key: count for key, count in GOLDENS[name].items() if key[0].startswith("%LMQ%")}
    assert outcome.verdict is Verdict.DAMAGED
    assert unbuilt(outcome, "DR-LMQ-MISSING") == light
    # with the settings their next messages get queue offsets that the log has already
    outcome = started(root, golden.release, tmp_path, ON)
    assert outcome.verdict is Verdict.UNSAFE
    assert unbuilt(outcome, "DR-NOT-REBUILT") == light
    assert unbuilt(outcome, "DR-OFFSETS-TWICE") == light


@pytest.mark.parametrize("name", GOLDENS)
def test_queues_that_are_there_miss_nothing(golden: Open, tmp_path: Path, name: str) -> None:
    """Brokers of both releases serve them without the settings."""
    outcome = started(golden(name).path, golden(name).release, tmp_path, OFF)
    assert not [one.code for one in outcome.consequences if one.code.startswith("DR-LMQ")]
    assert rmq("recover", golden(name).path, "--store-config", conf(tmp_path, OFF)).exit_code == 0


@pytest.mark.parametrize("pattern", ["consumequeue", "consumequeue/%LMQ%*"])
@pytest.mark.parametrize("name", GOLDENS)
def test_verify_and_recover_agree(fresh_golden: Open, tmp_path: Path, name: str, pattern: str) -> None:
    golden, settings = fresh_golden(name), conf(tmp_path, OFF)
    shutil.copytree(golden.path, tmp_path / "whole")
    root = without(golden, pattern)
    found = rmq("verify", root, "--format", "ndjson", "--store-config", settings)
    rows = [json.loads(line) for line in found.stdout.splitlines()]
    ghosts = {(row["topic"], row["queue_id"]): row["found"] for row in rows if row.get("code") == "X-GHOST"}
    assert found.exit_code == 1
    assert ghosts == {key: count for key, count in GOLDENS[name].items() if key[0].startswith("%LMQ%")}
    done = rmq("recover", root, "--store-config", settings, "--output", tmp_path / "made", "--apply")
    assert done.exit_code in (0, 1), done.stderr
    queues = sorted((tmp_path / "whole/consumequeue").rglob("0*0"))
    assert queues
    for path in queues:
        made = tmp_path / "made" / path.relative_to(tmp_path / "whole")
        assert path.is_dir() or made.read_bytes() == path.read_bytes(), path
