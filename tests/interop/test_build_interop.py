"""Derived files built here, against those that the real store builds now on a copy without any."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest

from formats.commitlog import Message, transaction_of
from rmqtool.broker.file_rules import rules_of
from rmqtool.scan.fields import OFF_QUEUE_OFFSET
from rmqtool.store.config import config_of
from rmqtool.store.layout import Store
from tests.build.building import build, files_of, kernel_modules, same
from tests.interop.traffic import varied

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.interop.javastore import JavaStore

    OpenStore = Callable[..., JavaStore]

pytestmark = pytest.mark.interop

SETTINGS: dict[str, Any] = {
    "mappedFileSizeCommitLog": 16384,
    "mappedFileSizeConsumeQueue": 600,
    "maxHashSlotNum": 13,
    "maxIndexNum": 90,
}
EXTENDED = {"enableConsumeQueueExt": True, "mappedFileSizeConsumeQueueExt": 500}
FURTHER = {"enableMultiDispatch": True, "enableLmq": True}


def built_by_both(
    java_store: OpenStore, release: str, root: Path, settings: dict[str, Any]
) -> tuple[dict[str, bytes], dict[str, bytes]]:
    """What the real store makes of the log when it starts, and what is built here.

    The real store names an index file by the millisecond in which it makes it; two of one millisecond are one
    file, whose content nobody foresees. Then it builds once more.
    """
    reported = {name: str(value).lower() for name, value in settings.items()}
    out = root.parent / "out"
    for _ in range(5):
        for name in ("consumequeue", "consumequeue_ext", "index", "checkpoint"):
            place = root / name
            shutil.rmtree(place) if place.is_dir() else place.unlink(missing_ok=True)
        with java_store(root, **settings) as store:
            store.call("drain")
        shutil.rmtree(out, ignore_errors=True)
        opened = Store.open(root, config=config_of(reported))
        build(opened, rules_of(opened, release), out, kernel_modules()[-1])
        theirs, ours = files_of(root), files_of(out)
        if len(theirs) >= len(ours):
            break
    return theirs, ours


def repeat_a_queue_offset(root: Path) -> None:
    """Gives a record a queue offset that is taken: no unit, but one in the extension file."""
    path = min((root / "commitlog").iterdir())
    raw, position, known = bytearray(path.read_bytes()), 0, dict[tuple[str, int], int]()
    while True:
        record = Message.parse(raw[position:])
        key = record.topic, record.queue_id
        if transaction_of(record.sys_flag) == "none" and key in known:
            break
        known[key] = record.queue_offset
        position += record.total_size
    raw[position + OFF_QUEUE_OFFSET : position + OFF_QUEUE_OFFSET + 8] = known[key].to_bytes(8, "big")
    path.write_bytes(raw)


@pytest.mark.share
@pytest.mark.parametrize("extra", [{}, EXTENDED], ids=["plain", "extension"])
def test_queues_and_index_are_the_brokers(
    java_store: OpenStore, release: str, tmp_path: Path, extra: dict[str, Any]
) -> None:
    root, settings = tmp_path / "store", SETTINGS | extra
    with java_store(root, **settings) as store:
        varied(store)
        store.call("drain")
    repeat_a_queue_offset(root)
    theirs, ours = built_by_both(java_store, release, root, settings)
    assert same(theirs, ours) == []
    assert len([name for name in ours if name.startswith("index/")]) > 2


def test_a_head_that_expired_leaves_blank_units(java_store: OpenStore, release: str, tmp_path: Path) -> None:
    root = tmp_path / "store"
    with java_store(root, **SETTINGS) as store:
        varied(store)
        store.call("drain")
    min((root / "commitlog").iterdir()).unlink()
    theirs, ours = built_by_both(java_store, release, root, SETTINGS)
    assert same(theirs, ours) == []


def test_further_queues_are_the_brokers(java_store: OpenStore, release: str, tmp_path: Path) -> None:
    root, settings = tmp_path / "store", SETTINGS | FURTHER | EXTENDED
    with java_store(root, **settings) as store:
        for number in range(60):
            names = ",".join(f"%LMQ%q{part}" for part in range(number % 3 + 1))
            properties = {"INNER_MULTI_DISPATCH": names, "UNIQ_KEY": f"{number:032X}"}
            store.put("TopicLmq", b"body", queue_id=number % 2, tags="TagA", properties=properties)
        store.call("drain")
    theirs, ours = built_by_both(java_store, release, root, settings)
    assert same(theirs, ours) == []
    assert any(name.startswith("consumequeue/%LMQ%q2/0/") for name in ours)
