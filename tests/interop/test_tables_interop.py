"""Tables that were salvaged, clamped and merged, in the hands of a real broker."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from rmqtool import Message, MessageStore
from rmqtool.store.config_json import parse_config
from tests.helpers import rmq
from tests.interop.broker import BROKER_RELEASES, CONFIG, Broker
from tests.interop.conftest import require

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.interop

QUERY_OFFSET, COMMIT_OFFSET, ALL_TOPICS = 14, 15, 21
SIZES = {name: one for name, one in CONFIG.items() if "Size" in name or "Num" in name}


@pytest.fixture
def broker(request: pytest.FixtureRequest) -> str:
    return require(request.config, request.param, "broker")


@pytest.mark.full  # that brokers load tables of ours is held by the services' test, too
@pytest.mark.parametrize("broker", BROKER_RELEASES, indirect=True)
def test_a_broker_loads_every_table_that_was_written(broker: str, tmp_path: Path) -> None:
    root, directory = tmp_path / "store", tmp_path / "broker"
    directory.mkdir()
    with MessageStore.open(root, create=True, release=broker, config=SIZES) as store:
        for topic in ("Kept", "Cut", "Gone"):
            store.put_many([Message(topic, b"%d" % one, queue_id=one % 3) for one in range(30)])
            store.commit_offset("CG", topic, 0, 4)
        store.commit_offset("CG", "Kept", 1, 6)
        store.send_delayed(Message("Kept", b"later", queue_id=0), 18)
    config = root / "config"
    topics = (config / "topics.json").read_text()
    assert topics.index('"Kept"') < topics.index('"Gone"')
    (config / "topics.json").write_text(topics[: topics.index('"Gone"') + 30])  # cut, as a crash leaves it
    (config / "topics.json.bak").unlink(missing_ok=True)
    offsets = (config / "consumerOffset.json").read_text()
    (config / "consumerOffset.json").write_text(offsets.replace("{0:4,1:6", "{0:4000,1:6"))
    (config / "delayOffset.json").write_text('{"offsetTable":{18:77,"1":5}}')
    (config / "consumerOffset.slave.json").write_text('{"offsetTable":{"Cut@CG":{0:9,1:3},"Kept@CG2":{2:8}}}')
    shutil.rmtree(root / "consumequeue" / "Gone")
    slave = (config / "consumerOffset.slave.json").rename(tmp_path / "slave.json")
    version = ("--as-version", broker)
    for number, words in enumerate(
        (
            ["config", "salvage", root],
            ["rebuild", root, "--topic", "Gone", "--restore-topics"],
            ["offsets", "clamp", root],
            ["offsets", "merge", root, slave, "--policy", "max"],
        )
    ):
        done = rmq(*words, "--in-place", "--backup", tmp_path / f"backup{number}", "--apply", *version)
        assert done.exit_code == 0, done.stderr
    with Broker(broker, root, directory) as taken:

        def queried(group: str, topic: str, queue_id: int) -> int:
            fields = {"consumerGroup": group, "topic": topic, "queueId": queue_id}
            return int(taken.request(QUERY_OFFSET, fields)[0]["offset"])

        assert [queried("CG", "Kept", queue) for queue in (0, 1)] == [10, 6]
        assert [queried("CG", "Cut", queue) for queue in (0, 1)] == [9, 3]
        assert queried("CG2", "Kept", 2) == 8
        table = json.loads(taken.request(ALL_TOPICS, {})[1])["topicConfigTable"]
        written = json.loads(topics)["topicConfigTable"]["Kept"]
        known = set(written) - ({"attributes"} if broker == "4.9.7" else set())  # which 4.x has not
        assert {name: table["Kept"].get(name) for name in known} == {name: written[name] for name in known}
        assert (table["Gone"]["readQueueNums"], table["Gone"]["perm"]) == (3, 6)
        _, raw = taken.pull("Gone", 0)
        assert raw
        taken.stop()
    delays = parse_config((config / "delayOffset.json").read_bytes()).data
    assert delays["offsetTable"]["18"] == 1


GROUP = {"consumerGroup": "TOOLS_CONSUMER", "topic": "T", "queueId": 0}


def commit_two(broker: str, root: Path, directory: Path) -> None:
    """A life of a broker in which a group takes two of three messages."""
    with Broker(broker, root, directory) as one:
        for _ in range(3):
            one.send("T", b"x")
        one.request(COMMIT_OFFSET, {**GROUP, "commitOffset": 2})
        one.stop()


@pytest.mark.full  # a broker takes half a minute to stop
@pytest.mark.parametrize("broker", BROKER_RELEASES, indirect=True)
def test_a_directory_in_the_place_of_a_backup_keeps_offsets_from_being_saved(
    broker: str, tmp_path: Path
) -> None:
    root, directory = tmp_path / "store", tmp_path / "broker"
    root.mkdir()
    directory.mkdir()
    commit_two(broker, root, directory)
    backup = root / "config" / "consumerOffset.json.bak"
    backup.unlink(missing_ok=True)
    backup.mkdir()
    found = rmq("doctor", root, "--as-version", broker, "--json")
    assert found.exit_code == 1
    assert "DR-BLOCKED-FILE" in found.stdout
    with Broker(broker, root, directory) as one:
        one.request(COMMIT_OFFSET, {**GROUP, "commitOffset": 3})
        one.stop()
    with Broker(broker, root, directory) as one:
        assert one.request(QUERY_OFFSET, GROUP)[0]["offset"] == "2"


@pytest.mark.full
@pytest.mark.parametrize("path", ["config", "config/timercheck", "timerwheel"])
def test_a_broker_of_5_ends_where_a_timer_file_has_no_place(
    path: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    release = require(request.config, "5.3.3", "broker")
    root, directory = tmp_path / "store", tmp_path / "broker"
    directory.mkdir()
    (root / path).mkdir(parents=True)
    if path == "config":
        (root / path).rmdir()
        (root / path).write_bytes(b"-")
    with pytest.raises(RuntimeError, match="ended"):
        Broker(release, root, directory)


@pytest.mark.full  # a broker takes half a minute to stop
@pytest.mark.parametrize(
    ("broker", "settings"),
    [
        ("4.9.7", {"enableLmq": "true", "enableMultiDispatch": "true"}),
        ("5.3.3", {"enableLmq": "true", "enableMultiDispatch": "true"}),
        ("5.3.3", {"configManagerVersion": "v2"}),
    ],
    indirect=["broker"],
)
def test_offsets_that_a_setting_keeps_a_broker_from(
    broker: str, settings: dict[str, str], tmp_path: Path
) -> None:
    root, directory, conf = tmp_path / "store", tmp_path / "broker", tmp_path / "broker.conf"
    root.mkdir()
    directory.mkdir()
    conf.write_text("".join(f"{name}={value}\n" for name, value in {**SIZES, **settings}.items()))
    commit_two(broker, root, directory)
    found = rmq("doctor", root, "--as-version", broker, "--store-config", conf, "--json")
    assert found.exit_code == 1
    assert "DR-TABLE-UNREAD" in found.stdout
    with Broker(broker, root, directory, **settings) as one:
        assert one.request(QUERY_OFFSET, GROUP)[0]["offset"] == "0"
