"""The engine of `engine` by itself: what it wrote it serves, recovers and goes on with."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from formats.commitlog import Message
from rmqtool.broker.get_message import GetMessageStatus
from tests.broker.engine import Engine, message
from tests.helpers import rmq

SETTINGS = {
    "mappedFileSizeCommitLog": 4096,
    "mappedFileSizeConsumeQueue": 400,
    "maxHashSlotNum": 13,
    "maxIndexNum": 40,
}
EXTENDED = {"enableConsumeQueueExt": "true", "mappedFileSizeConsumeQueueExt": 500}
RELEASES = ("4.9.8", "5.3.3")


def traffic(first: int, count: int) -> list[dict[str, object]]:
    return [
        message(
            f"Topic{number % 2}",
            body=b"%d" % number * (number % 90),
            queue_id=number % 3,
            properties=f"KEYS\x01key-{number}\x02TAGS\x01Tag{number % 4}\x02".encode(),
        )
        for number in range(first, first + count)
    ]


def served(engine: Engine, topic: str, queue_id: int) -> list[bytes]:
    """Bodies of a queue, pull after pull."""
    found: list[bytes] = []
    offset = 0
    while True:
        answer, records = engine.get(topic, queue_id, offset)
        if answer.status is not GetMessageStatus.FOUND:
            return found
        found += [bytes(Message.parse(one).body) for one in records]
        offset = answer.next_begin_offset


def bodies(messages: list[dict[str, object]], topic: str, queue_id: int) -> list[object]:
    return [one["body"] for one in messages if (one["topic"], one["queue_id"]) == (topic, queue_id)]


@pytest.mark.share
@pytest.mark.parametrize("extra", [{}, EXTENDED], ids=["plain", "extension"])
@pytest.mark.parametrize("release", RELEASES)
def test_it_goes_on_with_what_it_wrote(tmp_path: Path, release: str, extra: dict[str, str]) -> None:
    sent: list[dict[str, object]] = []
    for life in range(3):
        with Engine(tmp_path / "store", release, **SETTINGS, **extra) as engine:
            for part in (1, 60):
                more = traffic(len(sent), part)
                engine.put(more, 1_700_000_000_000 + life)
                sent += more
            for topic in ("Topic0", "Topic1"):
                for queue_id in range(3):
                    assert served(engine, topic, queue_id) == bodies(sent, topic, queue_id)
    result = rmq("verify", tmp_path / "store")
    assert result.exit_code == 0, result.output


@pytest.mark.share
@pytest.mark.parametrize("lost", ["consumequeue", "index", "nothing", "tail"])
@pytest.mark.parametrize("release", RELEASES)
def test_it_recovers_after_a_crash(tmp_path: Path, release: str, lost: str) -> None:
    root, sent = tmp_path / "store", traffic(0, 80)
    with Engine(root, release, **SETTINGS) as engine:
        engine.put(sent)
        engine.crash()
    assert (root / "abort").exists()
    if lost == "tail":
        last = max((root / "commitlog").iterdir())
        raw = last.read_bytes()
        end = len(raw.rstrip(b"\0"))
        last.write_bytes(raw[: end - 30].ljust(len(raw), b"\0"))
    else:
        shutil.rmtree(root / lost, ignore_errors=True)
    with Engine(root, release, **SETTINGS) as engine:
        kept = sent[:-1] if lost == "tail" else sent
        more = traffic(80, 40)
        engine.put(more)
        for topic in ("Topic0", "Topic1"):
            for queue_id in range(3):
                assert served(engine, topic, queue_id) == bodies(kept + more, topic, queue_id)
    result = rmq("verify", root)
    assert result.exit_code == 0, result.output
