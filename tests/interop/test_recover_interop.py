"""Real stores start on what recover made of damaged ones, delete nothing and deliver all that was intact.

One case a class of damage and release that wrote it; every one of them with `-m full`. Each is started twice:
as after a clean stop, and with `abort` and a zeroed checkpoint.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

from fixtures import apply_case
from rmqtool.errors import UnfitStoreError, UsageError
from tests.repair.keep.laws import repair, wanted
from tests.repair.keep.test_corpus import CASES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fixtures import DamageCase
    from fixtures.strict import Record
    from tests.interop.javastore import JavaStore

pytestmark = pytest.mark.interop


def samples() -> dict[str, list[DamageCase]]:
    """One case a class, by the release that wrote it."""
    found: dict[tuple[str, str], DamageCase] = {}
    for case in CASES:
        plain = all(isinstance(value, (int, bool)) for value in case.settings.values())
        if plain and case.mode != "x":
            found.setdefault((case.release, case.cls), case)
    grouped: dict[str, list[DamageCase]] = defaultdict(list)
    for (release, _), case in found.items():
        grouped[release].append(case)
    return grouped


def crashed(root: Path) -> None:
    """As after a power cut, with a checkpoint that says nothing."""
    (root / "abort").touch()
    checkpoint = root / "checkpoint"
    data = checkpoint.read_bytes() if checkpoint.exists() else b""
    checkpoint.write_bytes(bytes(24) + data[24:])


def held_against(
    root: Path, must: dict[int, Record], case: DamageCase, java_store: Callable[..., JavaStore]
) -> None:
    """The start, every intact message in its slot, and the next queue offset of each queue."""
    before = {
        path.relative_to(root).as_posix()
        for path in (root / "commitlog").iterdir()
        if path.is_file() and any(path.read_bytes())
    }
    by_queue: dict[tuple[str, int], dict[int, int]] = defaultdict(dict)
    for at, one in must.items():
        by_queue[one.topic, one.queue_id][one.queue_offset] = at
    with java_store(root, **case.settings) as java:
        assert java.loaded
        left = {path.relative_to(root).as_posix() for path in (root / "commitlog").iterdir()}
        assert before <= left
        java.call("drain")
        ends = {(one["topic"], one["queue"]): one["max"] for one in java.call("queues")}
        for (topic, queue), slots in by_queue.items():
            got = {
                one["queueOffset"]: one["physicalOffset"]
                for one in java.call("get", topic=topic, queue_id=queue)
            }
            assert slots.items() <= got.items()
            put = java.put(topic, b"behind the repair", queue_id=queue)
            assert put["queue_offset"] == ends[topic, queue] == max(got) + 1


def check(case: DamageCase, place: Path, java_store: Callable[..., JavaStore]) -> None:
    """Repaired, started normally and as after a crash."""
    root = apply_case(case, place / "store")
    must = wanted(case, root, place / "base")
    try:
        repair(root, case.release, place / "normal", dict(case.settings))
    except (UsageError, UnfitStoreError):
        assert not must
        return
    shutil.copytree(place / "normal", place / "crashed")
    crashed(place / "crashed")
    for name in ("normal", "crashed"):
        held_against(place / name, must, case, java_store)


@pytest.mark.parametrize(
    "cls", ["record", *(pytest.param(one, marks=pytest.mark.full) for one in ("layout", "cq"))]
)
def test_a_repaired_store_starts(
    cls: str, release: str, tmp_path: Path, java_store: Callable[..., JavaStore]
) -> None:
    case = next(one for one in samples()[release] if one.cls == cls)
    check(case, tmp_path, java_store)


@pytest.mark.full
@pytest.mark.parametrize("number", range(60))
def test_every_repaired_store_starts(
    number: int, release: str, tmp_path: Path, java_store: Callable[..., JavaStore]
) -> None:
    for case in [one for one in CASES if one.release == release and one.mode != "x"][number::60]:
        place = tmp_path / case.id
        place.mkdir()
        check(case, place, java_store)
        shutil.rmtree(place)
