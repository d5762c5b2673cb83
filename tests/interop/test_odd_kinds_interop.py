"""Something else in the place of any path: where doctor says "safe", the real store goes on.

Each file and directory of a small store, and each name that a broker will want next, is nothing, empty, one
byte, zeros, a directory or a link that leads nowhere.
"""

from __future__ import annotations

import shutil
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from rmqtool.recovery.outcome import Verdict
from rmqtool.recovery.simulation import simulate
from rmqtool.store.config import StoreConfig
from rmqtool.store.layout import Store
from tests.interop.javastore import JavaError, JavaStore
from tests.tiers import sampled

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interop.javastore import JavaProcess

pytestmark = pytest.mark.interop

SEGMENT, QUEUE_FILE = 8192, 200
SETTINGS = {
    "mappedFileSizeCommitLog": SEGMENT,
    "mappedFileSizeConsumeQueue": QUEUE_FILE,
    "maxHashSlotNum": 50,
    "maxIndexNum": 100,
}
QUEUES = (("T0", 0), ("T1", 1))
LATER = 12
"""messages for each queue, which need new files of the log, of both queues and of the index"""
NEXT = (
    *(f"commitlog/{number * SEGMENT:020}" for number in range(5)),
    *(f"consumequeue/{topic}/{queue}/{at:020}" for topic, queue in QUEUES for at in range(0, 1000, 200)),
    *(
        "commitlog",
        "commitlog/x",
        "consumequeue",
        "consumequeue/T0",
        "consumequeue/T0/0",
        "consumequeue/T0/7",
    ),
    *("consumequeue/T0/x", "consumequeue/x", "index", "index/x", "index/20260101000000000"),
    *(
        "batchconsumequeue",
        "batchconsumequeue/T0",
        "consumequeue_ext",
        "compaction",
        "timerlog",
        "timerwheel",
    ),
    *("abort", "abort.bak", "checkpoint", "lock", "config", "config/topics.json"),
)
KINDS = ("gone", "empty", "byte", "zeros", "directory", "dead-link")
CASES = [f"{path}={kind}={start}" for path in NEXT for kind in KINDS for start in ("clean", "abort")]
_bases: dict[str, Path] = {}


def replace(place: Path, kind: str, size: int) -> None:
    """size: of what there are zeros."""
    if place.is_dir():
        shutil.rmtree(place)
    else:
        place.unlink(missing_ok=True)
    place.parent.mkdir(parents=True, exist_ok=True)
    if kind == "directory":
        place.mkdir()
    elif kind == "dead-link":
        place.symlink_to(place.parent / "not-mounted" / "x")
    elif kind != "gone":
        place.write_bytes({"empty": b"", "byte": b"x", "zeros": bytes(size)}[kind])


def base(release: str, place: Path, idle: list[JavaProcess]) -> Path:
    """A store whose queues end with full files."""
    if release not in _bases:
        place.mkdir()
        with JavaStore(release, place, idle=idle, **SETTINGS) as java:
            for number in range(60):
                topic, queue = QUEUES[number % 2]
                java.put(topic, b"x" * 150, queue_id=queue, keys=f"k{number}")
            java.call("drain")
        _bases[release] = place
    return _bases[release]


@pytest.mark.share
@pytest.mark.parametrize("case", sampled(CASES, kind=lambda case: case.partition("=")[2]))
def test_what_is_safe_goes_on(
    case: str,
    release: str,
    tmp_path: Path,
    tmp_path_factory: pytest.TempPathFactory,
    idle: dict[str, list[JavaProcess]],
) -> None:
    path, kind, start = case.split("=")
    root = tmp_path / "store"
    shutil.copytree(base(release, tmp_path_factory.mktemp("base") / "store", idle[release]), root)
    if start == "abort":
        (root / "abort").touch()
    replace(root / path, kind, QUEUE_FILE if path.startswith("consumequeue/") else SEGMENT)
    outcome = simulate(Store.open(root, config=StoreConfig.model_validate(SETTINGS)), release)
    if outcome.verdict is not Verdict.SAFE:
        return
    ends = {(one.topic, one.queue_id): one.max_offset for one in outcome.queues}
    java = JavaStore(release, root, idle=idle[release], **SETTINGS)
    try:
        assert java.loaded
        for topic, queue in QUEUES:
            for _ in range(LATER):
                java.put(topic, b"new" * 60, queue_id=queue, keys="new")
        wanted = {key: ends.get(key, 0) + LATER for key in QUEUES}
        until = time.monotonic() + 10
        while time.monotonic() < until:
            found = {(one["topic"], one["queue"]): one["max"] for one in java.call("queues")}
            if all(found.get(key) == end for key, end in wanted.items()):
                break
            time.sleep(0.05)
        assert {key: found.get(key) for key in QUEUES} == wanted
    except BaseException:
        with suppress(JavaError):
            java.kill()
        raise
    java.close()
