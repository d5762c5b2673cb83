"""The real store opens what a salvage made: it deletes nothing, serves every message, takes new ones."""

from __future__ import annotations

import shutil
from collections import defaultdict
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from fixtures import open_golden
from formats.checkpoint import CHECKPOINT_HEAD_SIZE
from rmqtool.store.config import config_of
from tests.repair.salvage.laws import is_placeholder, log_of, salvaged
from tests.tiers import sampled

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.interop.javastore import JavaStore

pytestmark = pytest.mark.interop

SETTINGS = {"mappedFileSizeConsumeQueue": 1000, "maxHashSlotNum": 100, "maxIndexNum": 400}
CASES = ("whole", "torn", "shuffled", "dledger", "mixed")


def sources(case: str, place: Path) -> tuple[list[Path], int]:
    """Files to salvage, and the size of their segments."""
    if case == "dledger":
        return [open_golden("b533-dledger", place).path], 32768
    store = open_golden("v533-basic", place).path
    log = sorted((store / "commitlog").iterdir())
    if case == "mixed":
        return [store, open_golden("v498-basic", place).path], 32768
    if case == "torn":
        for number, file in enumerate(log[:3]):
            data = bytearray(file.read_bytes())
            data[5000 + number * 900 : 14000] = bytes(9000 - number * 900)
            file.write_bytes(data)
        log[1].unlink()
    if case == "shuffled":
        image = place / "image.bin"
        pieces = [file.read_bytes() for file in reversed(log)]
        image.write_bytes(
            b"noise".join([pieces[0], pieces[2], pieces[1][3000:], pieces[3], pieces[2][:9000]])
        )
        return [image], 32768
    return [store / "commitlog"], 32768


def unclean(root: Path) -> None:
    """As after a crash, with queues and index gone."""
    (root / "abort").touch()
    checkpoint = root / "checkpoint"
    checkpoint.write_bytes(bytes(CHECKPOINT_HEAD_SIZE) + checkpoint.read_bytes()[CHECKPOINT_HEAD_SIZE:])
    for name in ("consumequeue", "index"):
        shutil.rmtree(root / name)


def expected(root: Path) -> dict[tuple[str, int], list[Any]]:
    queues: dict[tuple[str, int], list[Any]] = defaultdict(list)
    for record in log_of(root):
        if record.sys_flag & 0xC != 0xC:
            queues[record.topic.decode(), record.queue_id].append(record)
    return queues


@pytest.mark.share
@pytest.mark.parametrize(
    ("case", "crashed"), sampled(product(CASES, (False, True)), kind=lambda one: one[1], unpack=True)
)
def test_real_store_serves_everything(
    case: str, crashed: bool, release: str, java_store: Callable[..., JavaStore], tmp_path: Path
) -> None:
    paths, size = sources(case, tmp_path)
    root = tmp_path / "out"
    reported = salvaged(paths, root, segment_size=size, config=config_of(SETTINGS))
    messages = sum(one.written.messages for one in reported.outcomes)
    assert messages == reported.records - reported.by_source("duplicates").sum()
    queues = expected(root)
    segments = sorted(path.name for path in (root / "commitlog").iterdir())
    if crashed:
        unclean(root)
    with java_store(root, mappedFileSizeCommitLog=size, **SETTINGS) as java:
        assert java.loaded
        java.call("drain")
        assert sorted(path.name for path in (root / "commitlog").iterdir())[: len(segments)] == segments
        assert java.call("bounds")["max"] == reported.outcomes[0].written.end
        served = {(one["topic"], one["queue"]): one for one in java.call("queues")}
        for (topic, queue_id), records in queues.items():
            assert (served[topic, queue_id]["min"], served[topic, queue_id]["max"]) == (
                records[0].queue_offset,
                records[-1].queue_offset + 1,
            )
            got = java.call("get", topic=topic, queue_id=queue_id)
            assert [one["queueOffset"] for one in got] == [one.queue_offset for one in records]
            assert [one["physicalOffset"] for one in got] == [one.physical_offset for one in records]
        assert any(not is_placeholder(one) for records in queues.values() for one in records)
        topic, queue_id = next(key for key in queues if key[0].startswith("Topic"))
        put = java.put(topic, b"new", queue_id=queue_id)
        assert put["queue_offset"] == queues[topic, queue_id][-1].queue_offset + 1
