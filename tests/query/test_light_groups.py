"""Groups of light queues: a broker with `enableLmq` keeps all offsets in a file of its own."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from formats.consumequeue import Unit
from rmqtool.check.topics import QueueEnds, check_offsets
from rmqtool.query.groups import committed_offset, committed_offsets
from rmqtool.query.stats.retention import Needs
from rmqtool.store.config import config_of
from rmqtool.store.layout import Store
from tests.query.test_stats import statistics

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fixtures import Golden

ONE = "consumequeue/%LMQ%one/0"
TABLES = {
    "dataVersion": {"counter": 3, "stateVersion": 0, "timestamp": 1795253691639},
    "groupTopicMap": {},
    "lmqOffsetTable": {"%LMQ%one@%LMQ%client": 2, "%LMQ%two@%LMQ%client": 99, "%LMQ%new@%LMQ%client": 0},
    "offsetTable": {"TopicParent@plain": {"0": 1}},
}


@pytest.fixture
def root(fresh_golden: Callable[[str], Golden]) -> Path:
    """A broker's store, with offsets in its file and in one that it left long ago."""
    root = fresh_golden("b533-lmq").path
    assert not (root / "config" / "consumerOffset.json").exists()
    (root / "config" / "lmqConsumerOffset.json").write_text(json.dumps(TABLES))
    (root / "config" / "consumerOffset.json").write_text('{"offsetTable":{"TopicParent@plain":{0:77}}}')
    return root


def test_both_tables_of_the_one_file_count(root: Path) -> None:
    store = Store.open(root)
    assert [(one.group, one.topic, one.queue_id, one.offset) for one in committed_offsets(store)] == [
        ("%LMQ%client", "%LMQ%new", 0, 0),
        ("%LMQ%client", "%LMQ%one", 0, 2),
        ("%LMQ%client", "%LMQ%two", 0, 99),
        ("plain", "TopicParent", 0, 1),
    ]
    assert committed_offset(store, "%LMQ%client", "%LMQ%one", 0) == 2


@pytest.mark.parametrize(("switch", "offset"), [("true", 1), ("false", 77)])
def test_the_setting_says_which_file(root: Path, switch: str, offset: int) -> None:
    store = Store.open(root, config=config_of({"enableLmq": switch}))
    assert committed_offset(store, "plain", "TopicParent", 0) == offset


def test_messages_wait_in_light_queues(root: Path) -> None:
    """As many, and as long, as the units say that the broker wrote."""
    needs = Needs(Store.open(root))
    statistics(root, needs=needs)
    data = b"".join(one.read_bytes() for one in sorted((root / ONE).iterdir()))
    units = [Unit.parse(data[at : at + 20]) for at in range(0, len(data), 20)]
    waiting = [one for one in units[2:] if one["size"]]
    row = next(row for row in needs.rows() if row["group"] == "%LMQ%client")
    assert row == {
        "group": "%LMQ%client",
        "queues": 3,
        "topics": ["%LMQ%new", "%LMQ%one", "%LMQ%two"],
        "waiting_messages": len(waiting),
        "waiting_bytes": sum(one["size"] for one in waiting),
        "needs_physical_offset": waiting[0]["physical_offset"],
    }
    assert len(waiting) > 5


def test_they_are_checked_against_their_queues(root: Path) -> None:
    ends = {(f"%LMQ%{name}", 0): QueueEnds(0, 8) for name in ("one", "two")} | {
        ("TopicParent", 0): QueueEnds(0, 9)
    }
    found = [(one.code, one.path, one.part) for one in check_offsets(Store.open(root), ends, unclean=False)]
    assert [one for one in found if "Offset.json" in one[1] and "delay" not in one[1]] == [
        ("CFG-OFFSET-BEYOND", "config/lmqConsumerOffset.json", "%LMQ%two@%LMQ%client")
    ]
