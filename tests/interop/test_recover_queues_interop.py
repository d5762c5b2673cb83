"""Real stores start on repaired ones with light queues and extension files: every slot leads where it led."""

from __future__ import annotations

import shutil
from itertools import product
from typing import TYPE_CHECKING

import pytest

from fixtures import strict
from tests.interop.test_recover_interop import crashed
from tests.repair.keep.laws import repair
from tests.tiers import sampled

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fixtures import Golden
    from tests.interop.javastore import JavaStore

pytestmark = pytest.mark.interop

SETTINGS = {
    "lmq": {"mappedFileSizeConsumeQueue": 1000, "enableLmq": True, "enableMultiDispatch": True},
    "cqext": {
        "mappedFileSizeConsumeQueue": 1000,
        "enableConsumeQueueExt": True,
        "mappedFileSizeConsumeQueueExt": 1024,
    },
}
COMMON = {"mappedFileSizeCommitLog": 32768, "maxHashSlotNum": 100, "maxIndexNum": 400}


def damaged(root: Path, kind: str) -> set[int]:
    """Loses three records, and a file of extension units; where intact records begin."""
    log, _ = strict.walk(root)
    places = sorted(log)
    for at in places[40:43]:
        with (root / f"commitlog/{at // 32768 * 32768:020d}").open("r+b") as file:
            file.seek(at % 32768)
            file.write(bytes(log[at].size))
    if kind == "cqext":
        (root / "consumequeue_ext/TopicExt/0/00000000000000001024").unlink()
    return set(places) - set(places[40:43])


@pytest.mark.parametrize(
    ("crash", "kind"), sampled(product((False, True), ("lmq", "cqext")), kind=lambda one: one[1], unpack=True)
)
def test_slots_stay(
    kind: str,
    crash: bool,
    release: str,
    golden: Callable[[str], Golden],
    tmp_path: Path,
    java_store: Callable[..., JavaStore],
) -> None:
    name = f"v{release.replace('.', '')}-{kind}"
    settings = {**COMMON, **SETTINGS[kind]}
    for place in ("whole", "store"):
        shutil.copytree(golden(name).path, tmp_path / place)
    intact = damaged(tmp_path / "store", kind)
    repair(tmp_path / "store", release, tmp_path / "repaired", settings)
    if crash:
        crashed(tmp_path / "repaired")
    slots = {}
    for place in ("whole", "repaired"):
        with java_store(tmp_path / place, **settings) as java:
            assert java.loaded
            java.call("drain")
            slots[place] = {
                (one["topic"], one["queue"], got["queueOffset"], got["physicalOffset"])
                for one in java.call("queues")
                for got in java.call("get", topic=one["topic"], queue_id=one["queue"])
            }
    assert {one for one in slots["whole"] if one[3] in intact} <= slots["repaired"]
    assert len(slots["whole"]) == len(slots["repaired"])


@pytest.mark.parametrize("gone", ["consumequeue", "consumequeue/%LMQ%alpha"])
def test_a_start_without_the_settings_builds_no_light_queue(
    gone: str,
    release: str,
    golden: Callable[[str], Golden],
    tmp_path: Path,
    java_store: Callable[..., JavaStore],
) -> None:
    """Nor does one with them after it. `recover` builds them under any settings, and both serve them."""
    name = f"v{release.replace('.', '')}-lmq"
    shutil.copytree(golden(name).path, tmp_path / "store")
    shutil.rmtree(tmp_path / "store" / gone)
    off = SETTINGS["lmq"] | {"enableLmq": False, "enableMultiDispatch": False}
    repair(tmp_path / "store", release, tmp_path / "repaired", {**COMMON, **off})
    for place, count in (("store", 0), ("repaired", 60)):
        for settings in (off, SETTINGS["lmq"]):
            with java_store(tmp_path / place, **COMMON, **settings) as java:
                java.call("drain")
                queues = {(one["topic"], one["queue"]): one["max"] for one in java.call("queues")}
            assert queues.get(("%LMQ%alpha", 0), 0) == count
            assert queues["TopicLmq", 0] == 60
