"""Names that a store does not know are said, with those that were perhaps meant; completion knows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rmqtool.cli.completing import complete_groups, complete_scenarios, complete_schemas, complete_topics
from rmqtool.query.near import near
from tests.helpers import rmq

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import fixtures


@pytest.fixture
def store(golden: Callable[[str], fixtures.Golden]) -> Path:
    return golden("b533-full").path


@pytest.mark.share
@pytest.mark.parametrize("words", [["dump"], ["tail"], ["stats"], ["tail", "-n", "0"]])
def test_a_topic_that_nothing_matches_is_said(store: Path, words: list[str]) -> None:
    told = "no topic with a queue or an entry in topics.json matches 'TopicBasc'; did you mean TopicBasic?"
    result = rmq(words[0], store, *words[1:], "--topic", "TopicBasc", "--format", "ndjson")
    assert told.removesuffix("?") in result.stderr
    for glob in ("TopicBasic", "Topic*", "*", "%RETRY%CG_*"):
        assert "no topic" not in rmq(words[0], store, *words[1:], "--topic", glob).stderr


def test_a_topic_of_a_query(store: Path) -> None:
    assert "did you mean TopicBasic" in rmq("query-key", store, "topicbasic", "k").stderr
    assert "did you mean TopicOrder" in rmq("query-offset", store, "TopicOrdr", "0", "min").stderr
    assert "did you mean TopicOrder" in rmq("query-time", store, "Topicorder", "0", "now").stderr


def test_an_unknown_group_is_said(store: Path) -> None:
    unknown = rmq("query-offset", store, "TopicBasic", "0", "min", "--group", "CG_basc")
    assert (
        "group 'CG_basc' has neither settings nor offsets in this store; did you mean CG_basic"
        in unknown.stderr
    )
    refused = rmq("query-offset", store, "TopicBasic", "0", "--group", "cg_basic")
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
    assert "did you mean CG_basic" in refused.stderr
    known = rmq("query-offset", store, "TopicBasic", "0", "min", "--group", "CG_basic")
    assert "neither" not in known.stderr


def test_what_nothing_has_is_said(store: Path) -> None:
    assert "no message has the key or id 'nothing'" in rmq("trace", store, "nothing").stderr
    assert "did you mean TopicOrder" in rmq("store", "get", store, "TopicOrdr", "0").stderr
    assert "the end of the queue" not in rmq("query-offset", store, "TopicOrdr", "0", "0").stderr
    unmatched = "no stored offset matches --group"
    assert unmatched in str(rmq("offsets", "clamp", store, "--group", "CG_non").stdout)
    assert unmatched not in str(rmq("offsets", "clamp", store).stdout)
    table = rmq("sql", store, "select * from nothing").stderr
    assert "there is no table nothing" in table
    assert "messages, topics" in table


def test_a_choice_that_is_nearly_right(store: Path) -> None:
    assert "(did you mean topic?)" in rmq("stats", store, "--by", "topics").stderr


def test_reading_options_of_tail_and_query_time(store: Path) -> None:
    plain = rmq("tail", store, "--format", "ndjson").stdout
    assert rmq("tail", store, "--format", "ndjson", "--safe-io", "--max-read-rate", "1GiB").stdout == plain
    asked = ("query-time", store, "TopicBasic", "0", "2020-01-01", "--format", "ndjson")
    assert rmq(*asked, "--jobs", "1", "--safe-io").stdout == rmq(*asked).stdout


def test_near_is_bounded_and_knows_case() -> None:
    assert near("ordertopic", ["OrderTopic", "PayTopic"])[0] == "OrderTopic"
    assert near("Order", ["MyOrderTopic", "x"]) == ["MyOrderTopic"]
    assert near("", ["a", "b"]) == []
    assert len(near("T", [f"T{number}" for number in range(50_000)])) <= 3


class _Asked:
    def __init__(self, path: Path | None) -> None:
        self.params = {"path": path and str(path)}


def test_completion_knows_the_store(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert complete_topics(_Asked(store), "TopicB") == ["TopicBasic", "TopicBatch", "TopicBig"]
    assert "CG_basic" in complete_groups(_Asked(store), "CG_b")
    assert complete_topics(_Asked(tmp_path / "absent"), "T") == []
    assert complete_topics(_Asked(None), "T") == []
    monkeypatch.setenv("RMQTOOL_STORE", str(store))
    assert complete_topics(_Asked(None), "TopicTx") == ["TopicTx"]


def test_completion_of_scenarios() -> None:
    assert complete_scenarios("delete-") == ["delete-consumequeue", "delete-index"]
    assert complete_scenarios("remove-abort+zero") == ["remove-abort+zero-checkpoint"]


def test_a_setting_with_a_wrong_letter_is_said(store: Path, tmp_path: Path) -> None:
    conf = tmp_path / "broker.conf"
    conf.write_text(
        "mappedFileSizeCommitlog=4096\nmapedFileSizeConsumeQueue=1000\nmaxHashSlotNums=7\n"
        "brokerName=a\nlistenPort=10911\nnamesrvAddr=x:9876\nbrokerIP1=a\nbrokerIP2=b\nmaxIndexNum=9\n"
    )
    said = rmq("info", store, "--store-config", conf).stderr.splitlines()
    said = [line for line in said if "--store-config" in line]
    assert [line.rpartition("; did you mean ")[2] for line in said] == [
        "mappedFileSizeCommitLog?",
        "maxHashSlotNum?",
    ]


def test_completion_of_schemas() -> None:
    assert complete_schemas("dif") == ["diff"]
    assert complete_schemas("rmqtool.dif") == ["rmqtool.diff/1"]
    assert len(complete_schemas("")) > 40
    assert complete_schemas("x") == []
