"""Grounds that a real store has just written: killed at a random moment, and opened by the other release."""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING

from fixtures import strict
from fixtures.compound.ground import Ground
from tests.interop.javastore import RELEASES, JavaError, JavaProcess

if TYPE_CHECKING:
    from pathlib import Path
    from random import Random

SETTINGS: dict[str, object] = {
    "mappedFileSizeCommitLog": 16384,
    "mappedFileSizeConsumeQueue": 1000,
    "maxHashSlotNum": 100,
    "maxIndexNum": 400,
}
MOST = 400
"""messages that one life of a store writes"""


def written(root: Path, random: Random) -> Ground:
    """A store with one to three lives, each by either release, which ends in order or by SIGKILL."""
    release, done = "", []
    for life in range(random.randrange(1, 4)):
        release = random.choice(RELEASES)
        done.append(_live(root, release, random, life))
    records, _ = strict.walk(root)
    begin = min(records, default=0)
    name = f"real:{release}"
    return Ground(name, root, release, dict(SETTINGS), random, records, begin=begin, done=done)


def _live(root: Path, release: str, random: Random, life: int) -> str:
    root.mkdir(exist_ok=True)
    java = JavaProcess(release, root.parent, f"life-{life}")
    killed = random.randrange(3) > 0
    timer = threading.Timer(random.uniform(0, 0.05), java.kill)
    most, count = random.randrange(20, MOST), 0
    try:
        if not java.call("open", root=str(root), start=True, settings=SETTINGS)["loaded"]:
            return f"{release} did not load"
        with suppress(JavaError, ValueError):  # a call that meets the end of the process
            for count in range(most + 1000 * killed):
                if killed and count == most:
                    timer.start()
                _put(java, random, f"{life}-{count}")
        if not killed and java.alive:
            java.call("drain")
            java.call("close")
    finally:
        timer.cancel()
        java.kill()
    return f"{release} wrote {count} messages and was {'killed' if killed else 'stopped'}"


def _put(java: JavaProcess, random: Random, name: str) -> None:
    topic = random.choice(["TopicA", "TopicA", "TopicB"])
    body = random.randbytes(random.randrange(0, 600))
    properties = {"UNIQ_KEY": f"{name:0>32}"}
    queue_id = random.randrange(3)
    java.call("put", topic=topic, body=body.hex(), queue_id=queue_id, keys=f"k{name}", properties=properties)
