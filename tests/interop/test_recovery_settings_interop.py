"""Settings that change a recovery: the same remains opened by the real store and by ours."""

from __future__ import annotations

import shutil
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from fixtures import strict
from rmqtool import Message, MessageStore
from tests.interop.test_settings_interop import SIZES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.interop.javastore import JavaStore

    Damage = Callable[[Path], None]

pytestmark = pytest.mark.interop

COUNT = 40


def bad_body(root: Path) -> None:
    """Of a record in the last segment, with others behind it."""
    offset = sorted(strict.carve(root))[-4]
    segment = root / f"commitlog/{offset // SEGMENT * SEGMENT:020d}"
    data = bytearray(segment.read_bytes())
    data[data.index(b"body", offset % SEGMENT)] ^= 1
    segment.write_bytes(data)


def torn_end(root: Path) -> None:
    """The last record lost its second half."""
    offset = max(strict.carve(root))
    segment = root / f"commitlog/{offset // SEGMENT * SEGMENT:020d}"
    segment.write_bytes(segment.read_bytes()[: offset % SEGMENT + 40].ljust(SEGMENT, b"\0"))


def without_queues(root: Path) -> None:
    shutil.rmtree(root / "consumequeue")


def as_it_is(root: Path) -> None:
    del root


SEGMENT = SIZES["mappedFileSizeCommitLog"]
DAMAGES: dict[str, Damage] = {one.__name__: one for one in (bad_body, torn_end, without_queues, as_it_is)}
SETTINGS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "checkCRCOnRecover": {"checkCRCOnRecover": False},
    "messageIndexSafe": {"messageIndexSafe": True},
    "flushDiskType": {"flushDiskType": "SYNC_FLUSH"},
    "recheckReputOffsetFromCq": {"recheckReputOffsetFromCq": True},
}
ONLY_5 = {"recheckReputOffsetFromCq"}


OFTEN = {
    ("checkCRCOnRecover", "bad_body", True),
    ("defaults", "bad_body", True),
    ("defaults", "torn_end", False),
}
CASES = [
    pytest.param(*case, marks=() if case in OFTEN else pytest.mark.full)
    for case in product(SETTINGS, DAMAGES, (False, True))
]


@pytest.mark.parametrize(("setting", "damage", "unclean"), CASES)
def test_a_recovery_leaves_what_java_leaves(
    java_store: Callable[..., JavaStore],
    release: str,
    tmp_path: Path,
    setting: str,
    damage: str,
    unclean: bool,
) -> None:
    config = SIZES | ({} if release.startswith("4") and setting in ONLY_5 else SETTINGS[setting])
    ours, javas = tmp_path / "ours", tmp_path / "java"
    with MessageStore.open(ours, create=True, release=release, config=SIZES) as store:
        for number in range(COUNT):
            store.put(Message(f"T{number % 2}", b"body" * (number % 30 + 1), queue_id=0, keys=[f"k{number}"]))
    DAMAGES[damage](ours)
    if unclean:
        (ours / "abort").write_bytes(b"")
    shutil.copytree(ours, javas)
    with java_store(javas, **config) as java:
        assert java.loaded
        java.call("drain")
        bounds = java.call("bounds")
        queues = [tuple(one.values()) for one in java.call("queues")]
    with MessageStore.open(ours, release=release, config=config, recovery="broker") as store:
        store.queues()  # for which all is dispatched
        assert store.end == bounds["max"]
        assert [(*one, *store.offsets(*one)) for one in sorted(store.queues())] == queues
    kept = {offset: one for offset, one in strict.carve(javas).items() if offset < bounds["max"]}
    assert strict.carve(ours) == kept  # what lies behind is cleared here
