"""A store that the real Java store writes and rolls while it is read: nothing wrong is found in it.

And what is wrong with it is found although it is being written.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.cli.test_interrupt import DRIVER
from tests.helpers import ROOT, rmq_process
from tests.interop.traffic import varied

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.interop.javastore import JavaStore

pytestmark = pytest.mark.interop

SEGMENT = 65536
SETTINGS = {
    "mappedFileSizeCommitLog": SEGMENT,
    "mappedFileSizeConsumeQueue": 2000,
    "maxHashSlotNum": 50,
    "maxIndexNum": 200,
}
SECONDS = 3
LEAST_ROUNDS = 2


@contextmanager
def being_written(store: JavaStore) -> Iterator[None]:
    """Traffic of all kinds for as long as the block lasts."""
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            varied(store, count=33)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        stop.set()
        writer.join()


def serious(rows: list[dict[str, object]]) -> list[dict[str, object]]:
    return [row for row in rows if row.get("severity") in {"warning", "error"}]


def test_verify_and_dump_find_nothing_wrong_while_java_writes(
    java_store: Callable[..., JavaStore], tmp_path: Path
) -> None:
    root = tmp_path / "store"
    store = java_store(root, **SETTINGS)
    varied(store, count=66)
    seen: list[int] = []
    with being_written(store):
        end = time.monotonic() + SECONDS
        while time.monotonic() < end or (
            (len(seen) < LEAST_ROUNDS or seen[-1] - seen[0] <= 2 * SEGMENT)  # on a busy machine Java is slow
            and time.monotonic() < end + 10 * SECONDS
        ):
            for options in ((), ("--jobs", "1")):
                found = rmq_process("verify", root, "--format", "ndjson", *options)
                assert (found.exit_code, serious(found.rows)) == (0, []), found.stderr
                seen.append(found.rows[-1]["live"]["compared_until"])
            dumped = rmq_process("dump", root, "--format", "ndjson", "--body", "none")
            assert (dumped.exit_code, dumped.of_type("gap")) == (0, [])
            assert {row["content"] for row in dumped.of_type("tail")} <= {"zero"}
            units = rmq_process("dump", root / "consumequeue", "--format", "ndjson")
            assert units.exit_code == 0
    assert seen == sorted(seen)
    assert seen[-1] - seen[0] > 2 * SEGMENT, "Java has not rolled while it was read"
    store.close()
    whole = rmq_process("verify", root, "--format", "ndjson")
    assert (whole.exit_code, serious(whole.rows)) == (0, [])


def test_damage_in_a_live_store_is_found(java_store: Callable[..., JavaStore], tmp_path: Path) -> None:
    root = tmp_path / "store"
    store = java_store(root, **SETTINGS)
    varied(store, count=330)
    store.call("drain")
    record = next(one for one in store.records() if one["topic"] == "TopicB" and one["bodyLength"] > 3)
    offset = record["physicalOffset"]
    segment = root / "commitlog" / f"{offset // SEGMENT * SEGMENT:020d}"
    unit = root / "consumequeue" / "TopicA" / "0" / f"{0:020d}"
    with segment.open("r+b") as log, unit.open("r+b") as queue:
        place = offset % SEGMENT + 88
        (old,) = os.pread(log.fileno(), 1, place)
        os.pwrite(log.fileno(), bytes([old ^ 0x40]), place)
        os.pwrite(queue.fileno(), bytes(20), 40)
    with being_written(store):
        found = rmq_process("verify", root, "--format", "ndjson")
    assert found.exit_code == 1
    reported = {(row["code"], row["physical_offset"], row["position"]) for row in serious(found.rows)}
    assert ("CL-CRC", offset, offset % SEGMENT) in reported
    assert {row["code"] for row in serious(found.rows)} == {"CL-CRC", "CQ-HOLE", "X-GHOST"}
    assert {row["queue_offset"] for row in serious(found.rows) if row["code"] != "CL-CRC"} == {2}


@pytest.mark.full
def test_tail_follows_what_java_writes_across_segments(
    java_store: Callable[..., JavaStore], tmp_path: Path
) -> None:
    """Every record once, in order, whole; so with a filter."""
    root = tmp_path / "store"
    store = java_store(root, **SETTINGS)
    varied(store, count=66)
    outputs = [tmp_path / "all.ndjson", tmp_path / "some.ndjson"]
    processes = [
        _follower(root, outputs[0], "-n", "5"),
        _follower(root, outputs[1], "-n", "0", "--topic", "TopicB", "--tag", "TagB"),
    ]
    before = [one["physicalOffset"] for one in store.records()]
    try:
        for output in outputs[:1]:
            _wait_for(output, 5)
        with being_written(store):
            time.sleep(SECONDS)
        records = sorted(store.records(), key=lambda one: one["physicalOffset"])
        _wait_for(outputs[0], len(records) - len(before) + 5)
    finally:
        for process in processes:
            process.send_signal(signal.SIGINT)
        codes = [process.wait(60) for process in processes]
    assert codes == [130, 130]
    rows = [[json.loads(line) for line in output.read_text().splitlines()] for output in outputs]
    seen = [row["physical_offset"] for row in rows[0][:-1]]
    assert seen == [one["physicalOffset"] for one in records][len(before) - 5 :]
    assert {row["crc"] for row in rows[0][:-1]} <= {"ok", "absent"}
    assert seen[-1] - seen[0] > 2 * SEGMENT, "Java has not rolled while it was read"
    assert [row["incomplete_reason"] for row in (rows[0][-1], rows[1][-1])] == ["interrupted"] * 2
    keyed = [one for one in records if (one["topic"], one["tags"]) == ("TopicB", "TagB")]
    listed = [row["physical_offset"] for row in rows[1][:-1]]
    assert listed == [one["physicalOffset"] for one in keyed][-len(listed) :]
    assert len(listed) > 5


def _follower(root: Path, output: Path, *options: str) -> subprocess.Popen[bytes]:
    with output.open("wb") as out:
        command = [sys.executable, "-c", DRIVER, "tail", str(root), "-f", "--format", "ndjson", *options]
        return subprocess.Popen(command, stdout=out, env={**os.environ, "PYTHONPATH": str(ROOT)})


def _wait_for(output: Path, lines: int) -> None:
    until = time.monotonic() + 60
    while output.read_bytes().count(b"\n") < lines:
        assert time.monotonic() < until, output.read_bytes()[-500:]
        time.sleep(0.05)
