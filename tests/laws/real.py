"""Grounds that a real store has just written: killed at a random moment, and opened by the other release."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import dataclass
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
FURTHER: tuple[dict[str, object], ...] = (
    {},
    {"enableMultiDispatch": True, "enableLmq": True},
    {"enableConsumeQueueExt": True, "mappedFileSizeConsumeQueueExt": 1024},
)
"""of a store of whose queues all are plain, that has light ones, that has extension files"""
MOST = 400
"""messages that one life of a store writes"""


@dataclass(frozen=True)
class Life:
    """From one start of a store to its end: in order, or killed `moment` seconds after `count` messages."""

    release: str
    count: int
    killed: bool
    moment: float
    expires: bool


def lives(random: Random) -> list[Life]:
    """One to three lives, each by either release."""
    return [
        Life(
            random.choice(RELEASES),
            random.randrange(20, MOST),
            random.randrange(3) > 0,
            random.uniform(0, 0.05),
            random.randrange(4) == 0,
        )
        for _ in range(random.randrange(1, 4))
    ]


def written(root: Path, random: Random) -> Ground:
    """A store as its lives leave it."""
    settings = SETTINGS | random.choice(FURTHER)
    planned = lives(random)
    done = [_live(root, life, f"{number}", settings, random) for number, life in enumerate(planned)]
    records, _ = strict.walk(root)
    begin = min(records, default=0)
    release = planned[-1].release
    return Ground(f"real:{release}", root, release, settings, random, records, begin=begin, done=done)


def _live(root: Path, life: Life, name: str, settings: dict[str, object], random: Random) -> str:
    root.mkdir(exist_ok=True)
    java = JavaProcess(life.release, root.parent, f"life-{name}")
    timer = threading.Timer(life.moment, java.kill)
    count = 0
    try:
        if not java.call("open", root=str(root), start=True, settings=settings)["loaded"]:
            return f"{life.release} did not load"
        with suppress(JavaError, ValueError):  # a call that meets the end of the process
            for count in range(life.count + 1000 * life.killed):
                if life.killed and count == life.count:
                    timer.start()
                if life.expires and count == life.count // 2:
                    java.call("expire")
                _put(java, random, f"{name}-{count}", light="enableLmq" in settings)
        if not life.killed and java.alive:
            java.call("drain")
            java.call("close")
    finally:
        timer.cancel()
        java.kill()
    how = "killed" if life.killed else "stopped"
    return f"{life.release} wrote {count} messages and was {how}{', head expired' * life.expires}"


def _put(java: JavaProcess, random: Random, name: str, *, light: bool) -> None:
    topic = random.choice(["TopicA", "TopicA", "TopicB"])
    body = random.randbytes(random.randrange(0, 600))
    properties = {"UNIQ_KEY": f"{name:0>32}"}
    if light and random.randrange(2):
        properties["INNER_MULTI_DISPATCH"] = random.choice(["%LMQ%a", "%LMQ%a,%LMQ%b"])
    kind = {} if random.randrange(12) else {"sys_flag": random.choice([4, 8, 12])}
    tags = random.choice([None, "TagA", "TagB"])
    queue_id = random.randrange(3)
    fields = {"queue_id": queue_id, "tags": tags, "keys": f"k{name}", "properties": properties}
    java.call("put", topic=topic, body=body.hex(), **fields, **kind)
