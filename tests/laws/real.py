"""Grounds that a real store has just written: killed at a random moment, and opened by the other release.

No seed writes the same store twice: clocks, threads and the moment of a kill are in it. What a seed then does
to the store depends on the seed alone, so the store of a finding is kept, and `recorded` lays it again.
"""

from __future__ import annotations

import json
import tarfile
import threading
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from random import Random
from typing import TYPE_CHECKING

from fixtures import strict
from fixtures.compound.ground import Ground
from tests.interop.javastore import RELEASES, JavaError, JavaProcess

if TYPE_CHECKING:
    from pathlib import Path

    from fixtures.compound import Compound, Write

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
_FACTS, _STORE, _REAL = "ground.json", "store", "real:"


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
    own = _of_its_own(random)
    settings = SETTINGS | own.choice(FURTHER)
    planned = lives(own)
    done = [_live(root, life, f"{number}", settings, own) for number, life in enumerate(planned)]
    return _ground(root, planned[-1].release, settings, random, done)


def record(made: Compound, path: Path) -> None:
    """The store that a case began with, its release and settings, as an archive for `recorded`."""
    lived = made.done[: len(made.done) - len(made.kinds)]
    release = made.ground.removeprefix(_REAL)
    facts = {"release": release, "settings": made.settings, "done": lived}
    with tarfile.open(path, "w:gz") as archive:
        head = tarfile.TarInfo(_FACTS)
        data = json.dumps(facts).encode()
        head.size = len(data)
        archive.addfile(head, BytesIO(data))
        archive.add(made.pristine, _STORE)


def recorded(path: Path) -> Write:
    """Lays the store of an archive of `record`."""
    return partial(_unpacked, path)


def _unpacked(path: Path, root: Path, random: Random) -> Ground:
    _of_its_own(random)
    with tarfile.open(path) as archive:
        facts = json.load(archive.extractfile(_FACTS) or BytesIO(b"{}"))
        for one in archive.getmembers():
            if one.name.startswith(_STORE):
                one.name = root.name + one.name[len(_STORE) :]
                archive.extract(one, root.parent, filter="tar")
    return _ground(root, facts["release"], facts["settings"], random, facts["done"])


def _of_its_own(random: Random) -> Random:
    """Numbers to write with; how many are taken does not change what follows in `random`."""
    return Random(random.getrandbits(64))


def _ground(root: Path, release: str, settings: dict[str, object], random: Random, done: list[str]) -> Ground:
    records, _ = strict.walk(root)
    begin = min(records, default=0)
    return Ground(f"{_REAL}{release}", root, release, settings, random, records, begin=begin, done=done)


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
