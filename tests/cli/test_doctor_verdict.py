"""The verdict of `doctor`: damage that is there already, every kind of loss, unknown releases."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest

from fixtures import broker_conf, damage_case
from fixtures.stores import HandmadeStore
from rmqtool import Message, MessageStore
from tests.helpers import rmq
from tests.messagestore.helpers import SMALL

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HEALTHY = "v533-none-healthy-clean"


def reported(root: Path, *options: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, the document, and the headline as one line."""
    conf = root.parent / "broker.conf"
    if not conf.exists():
        conf.write_text(broker_conf(damage_case(HEALTHY).settings))
    words = ("doctor", root, "--store-config", conf, *options)
    done = rmq(*words, "--json")
    page = rmq(*words).stdout
    return done.exit_code, json.loads(done.stdout), " ".join(page.split("\n\n")[0].split())


@pytest.mark.parametrize(
    ("case_id", "messages", "size"),
    [
        ("v533-record-body-middle-mid-clean", 1, range(1, 1000)),
        ("v533-layout-missing-middle-clean", None, range(65536, 65537)),
        ("v533-record-magic-flip-middle-mid-clean", None, range(1, 1000)),
    ],
)
def test_damage_that_no_start_makes_worse(
    damaged: Callable[[str], Path], case_id: str, messages: int | None, size: range
) -> None:
    exit_code, document, headline = reported(damaged(case_id), "--as-version", "5.3.3")
    assert (exit_code, document["verdict"], document["safe_to_start"]) == (1, "damaged", True)
    found = document["already_damaged"]
    assert found["bytes"] in size
    assert messages is None or found["messages"] == messages
    assert found["paths"]
    assert headline.startswith("DAMAGED: ")
    assert document["advice"][0]["command"].startswith("rmqtool recover ")


def test_a_segment_of_zeros(damaged: Callable[[str], Path]) -> None:
    root = damaged(HEALTHY)
    (root / "commitlog/00000000000000131072").write_bytes(bytes(65536))
    exit_code, document, headline = reported(root, "--as-version", "5.3.3")
    assert (exit_code, document["verdict"]) == (1, "damaged")
    assert document["already_damaged"]["bytes"] == 65536
    assert "64.0 KiB of the log" in headline


def test_a_sound_store(damaged: Callable[[str], Path]) -> None:
    exit_code, document, headline = reported(damaged(HEALTHY), "--as-version", "5.3.3")
    assert (exit_code, document["verdict"], document["version_known"]) == (0, "safe", True)
    assert document["already_damaged"] == {"messages": 0, "bytes": 0, "paths": [], "config": []}
    assert headline == "Safe to start: nothing is lost, and no queue offset will be reused."


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("consumerOffset.json", "consumer offsets (config/consumerOffset.json)"),
        ("delayOffset.json", "delay offsets (config/delayOffset.json)"),
        ("consumerFilter.json", "the config table (config/consumerFilter.json)"),
    ],
)
def test_an_empty_table_without_a_backup_is_a_loss(
    damaged: Callable[[str], Path], name: str, words: str
) -> None:
    root = damaged(HEALTHY)
    (root / "config").mkdir(exist_ok=True)
    (root / "config" / name).write_bytes(b"")
    (root / "config" / f"{name}.bak").unlink(missing_ok=True)
    exit_code, document, headline = reported(root, "--as-version", "5.3.3")
    assert (exit_code, document["verdict"], document["safe_to_start"]) == (1, "unsafe", False)
    assert document["already_damaged"]["config"] == [f"config/{name}"]
    assert headline == f"DO NOT START: {words} would load as an empty table."


@pytest.mark.share
@pytest.mark.parametrize("text", ["{}", '{"offsetTable":{}}', '{"offsetTable":null}'])
def test_a_table_that_was_emptied_beside_its_backup_is_named(
    damaged: Callable[[str], Path], text: str
) -> None:
    """A broker loads it and never asks for the `.bak`; `verify` and the advice know it, too.

    The second form is what one writes that started without the table, before its next write takes the `.bak`.
    """
    root = damaged(HEALTHY)
    (root / "config").mkdir(exist_ok=True)
    (root / "config/consumerOffset.json").write_text(text)
    (root / "config/consumerOffset.json.bak").write_text('{"offsetTable":{"Orders@readers":{0:7}}}')
    exit_code, document, headline = reported(root, "--as-version", "5.3.3")
    assert (exit_code, document["verdict"]) == (1, "damaged")
    assert headline.startswith("DAMAGED: consumer offsets (config/consumerOffset.json) are damaged")
    assert any(one["command"].startswith("rmqtool recover") for one in document["advice"])
    assert "CFG-NOTHING" in rmq("verify", root).stdout
    assert '"entries_lost":1' in rmq("config", "check", root, "--json").stdout
    planned = rmq("recover", root).stdout
    assert "a broker reads no entry from config/consumerOffset.json" in planned
    assert "parsed" not in planned


def test_a_table_that_says_that_its_entries_were_removed_is_one(damaged: Callable[[str], Path]) -> None:
    """Its version is later than that of the `.bak`."""
    root = damaged(HEALTHY)
    (root / "config").mkdir(exist_ok=True)
    name, text = (
        "config/topicQueueMapping.json",
        '{{"dataVersion":{{"counter":{}}},"topicQueueMappingInfoMap":{}}}',
    )
    (root / name).write_text(text.format(4, "{}"))
    (root / f"{name}.bak").write_text(text.format(3, '{"Orders":{"epoch":1}}'))
    assert reported(root, "--as-version", "5.3.3")[1]["verdict"] == "safe"
    assert "CFG-NOTHING" not in rmq("verify", root).stdout
    (root / name).write_text(text.format(1, "{}"))
    assert reported(root, "--as-version", "5.3.3")[1]["verdict"] == "damaged"


def test_tables_that_a_broker_writes_empty_are_no_loss(damaged: Callable[[str], Path]) -> None:
    root = damaged(HEALTHY)
    (root / "config").mkdir(exist_ok=True)
    (root / "config/consumerFilter.json").write_text("{}")
    (root / "config/consumerFilter.json.bak").write_bytes(b"")
    assert reported(root, "--as-version", "5.3.3")[1]["verdict"] == "safe"


@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
def test_every_kind_of_loss_is_in_the_headline(damaged: Callable[[str], Path], release: str) -> None:
    root = damaged("v533-record-body-middle-first-abort0")
    (root / "config").mkdir(exist_ok=True)
    (root / "config/consumerOffset.json").write_bytes(b"")
    headline = reported(root, "--as-version", release)[2]
    for words in ("intact messages", "queue offsets", "consumer offsets"):
        assert words in headline


@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
def test_an_empty_commitlog_asks_for_the_disk(damaged: Callable[[str], Path], release: str) -> None:
    root = damaged(HEALTHY)
    for segment in (root / "commitlog").iterdir():
        segment.unlink()
    exit_code, document, headline = reported(root, "--as-version", release)
    files = sum(path.is_file() for path in (root / "consumequeue").rglob("*"))
    assert (exit_code, document["verdict"]) == (1, "unsafe")
    assert headline == (
        "DO NOT START: commitlog/ holds no file: is the disk mounted? "
        f"A start would delete all {files} consume queue files."
    )
    shutil.rmtree(root / "commitlog")
    assert reported(root, "--as-version", release)[2] == headline


@pytest.mark.parametrize("release", ["9.9.9", "5.3.4"])
def test_a_release_that_is_newer_than_all_known(damaged: Callable[[str], Path], release: str) -> None:
    exit_code, document, headline = reported(damaged(HEALTHY), "--as-version", release)
    assert (exit_code, document["verdict"], document["safe_to_start"]) == (3, "uncertain", None)
    assert document["version_known"] is False
    assert headline.startswith(f"Not certain: release {release} is not known here")


def test_what_was_not_read_is_in_the_headline(
    damaged: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rmqtool.recovery.diagnosis.ALLOWANCE", 70_000)
    root = damaged(HEALTHY)
    exit_code, document, headline = reported(root, "--as-version", "5.3.3")
    assert (exit_code, document["verdict"]) == (3, "uncertain")
    assert f"not read: {document['not_looked_at'][0]}" in headline
    last = max(one for one in (root / "commitlog").iterdir() if any(one.read_bytes()))
    with last.open("r+b") as segment:
        segment.write(bytes(100))
    exit_code, document, headline = reported(root, "--as-version", "5.3.3")
    assert (exit_code, document["verdict"]) == (1, "unsafe")
    assert f"; not read: {document['not_looked_at'][0]}" in headline


@pytest.mark.parametrize(
    ("case_id", "queue"),
    [
        ("v533-cq-wrong-queue-units-clean", "consumequeue/OrderTopic/2"),
        ("v533-cq-unknown-topic-clean", "consumequeue/Ghost/0"),
        ("v498-record-queueid-middle-first-abort0", "consumequeue/OrderTopic/0"),
    ],
)
def test_a_queue_that_leads_to_messages_of_another(
    damaged: Callable[[str], Path], case_id: str, queue: str
) -> None:
    release = {"v533": "5.3.3", "v498": "4.9.8"}[case_id[:4]]
    exit_code, document, _ = reported(damaged(case_id), "--as-version", release)
    assert (exit_code, document["verdict"]) == (1, "damaged")
    assert queue in document["already_damaged"]["paths"]
    assert document["already_damaged"]["messages"] > 0


def test_entries_are_held_against_older_segments_for_every_release(damaged: Callable[[str], Path]) -> None:
    root = damaged("v533-cq-wrong-queue-units-clean")
    releases = ["--what-if", "release 4.9.8", "--what-if", "delete-consumequeue"]
    document = reported(root, "--as-version", "5.3.3", *releases)[1]
    older, rebuilt = document["what_if"]
    assert older["already_damaged"] == document["already_damaged"]
    assert rebuilt["verdict"] == "safe"


@pytest.mark.parametrize("damage", ["place", "tags"])
def test_a_message_is_counted_once_as_a_record_and_as_what_its_entry_leads_to(
    tmp_path: Path, damage: str
) -> None:
    """It states another physical offset, or its tags are torn, so that its entry fits neither."""
    store = HandmadeStore()
    for number in range(60):
        store.put("Orders", b"body %d" % number, queue_id=number % 2, tags="TagA")
    store.write(tmp_path / "store")
    one = store.stored[7]
    path, position = store.segment(one.offset)
    if damage == "place":
        store.patch(path, position + 28, (one.offset + 5).to_bytes(8, "big"))
    else:
        store.patch(path, store.read(path).index(b"TagA", position), bytes(4))
    reported = json.loads(rmq("doctor", store.root, "--full", "--json", "--as-version", "5.3.3").stdout)
    assert reported["already_damaged"]["messages"] == 1


@pytest.mark.parametrize(
    ("name", "what"), [("consumerOffset.json", "consumer offsets"), ("delayOffset.json", "delay offsets")]
)
def test_the_headline_says_that_offsets_are_missing(fresh_golden, name, what):
    root = fresh_golden("b533-full").path
    assert "missing" not in rmq("doctor", root).stdout.split("\n\n")[0]
    for one in (name, f"{name}.bak"):
        (root / "config" / one).unlink()
    headline = " ".join(rmq("doctor", root).stdout.split("\n\n")[0].split())
    assert f"{what} (config/{name}) are missing already" in headline


def test_the_headline_says_that_topics_are_missing(fresh_golden):
    """Also behind a repair that put away what could not be parsed."""
    root = fresh_golden("b533-full").path
    for one in ("topics.json", "topics.json.bak"):
        (root / "config" / one).write_bytes(b"{\x00")
    backup = root.with_name("backup")
    assert rmq("recover", root, "--in-place", "--backup", backup, "--apply").exit_code == 0
    headline = " ".join(rmq("doctor", root).stdout.split("\n\n")[0].split())
    assert headline.startswith("Safe to start: ")
    assert "topics (config/topics.json) are missing already" in headline


@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
def test_offsets_of_a_new_store_are_not_missing_until_they_are_deleted(tmp_path, release):
    root, offsets = tmp_path / "store", tmp_path / "store" / "config" / "consumerOffset.json"

    def missing() -> bool:
        with MessageStore.open(root, create=True, release=release, config=SMALL) as store:
            store.put(Message("T", b"x"))
        return "DR-OFFSETS-UNKNOWN" in rmq("doctor", root, "--json", "--as-version", release).stdout

    assert not missing()
    offsets.unlink()
    assert missing()
    assert missing()  # an open in between makes none: nobody would be told any more
