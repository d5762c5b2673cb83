"""The message store in the hands of the real stores and back: both go on with what the other wrote."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest

from rmqtool import MessageStore
from tests.helpers import rmq
from tests.interop.test_engine_interop import QUEUES, java_settings, put_by_java, served_by_java
from tests.messagestore.helpers import bodies, traffic

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.interop.javastore import JavaStore

    OpenStore = Callable[..., JavaStore]

pytestmark = pytest.mark.interop

SIZES = {
    "mappedFileSizeCommitLog": 4096,
    "mappedFileSizeConsumeQueue": 400,
    "maxHashSlotNum": 13,
    "maxIndexNum": 40,
}


def served_here(store: MessageStore) -> dict[tuple[str, int], list[str]]:
    return {key: [hashlib.sha256(body).hexdigest() for body in bodies(store, *key)] for key in QUEUES}


@pytest.mark.parametrize("settings", [{}, {"flushDiskType": "SYNC_FLUSH"}], ids=["async", "sync"])
def test_both_go_on_with_what_the_other_wrote(
    java_store: OpenStore, release: str, tmp_path: Path, settings: dict[str, Any]
) -> None:
    root, sent = tmp_path / "store", 0
    expected: dict[tuple[str, int], list[str]] = {key: [] for key in QUEUES}
    for _ in range(3):
        opened = MessageStore.open(root, create=True, release=release, config=SIZES | settings)
        with opened as store:
            assert served_here(store) == expected
            store.put_many(traffic(sent, 40))
            for one in traffic(sent + 40, 10):
                store.put(one)
            sent += 50
            expected = served_here(store)
        with java_store(root, **java_settings({})) as java:
            assert served_by_java(java) == expected
            put_by_java(java, sent, 40)
            sent += 40
            expected = served_by_java(java)
    assert sum(map(len, expected.values())) == sent


def test_java_reads_what_the_shell_put(java_store: OpenStore, release: str, tmp_path: Path) -> None:
    conf, root, messages = tmp_path / "broker.conf", tmp_path / "store", traffic(0, 150)
    conf.write_text("".join(f"{name}={value}\n" for name, value in SIZES.items()))
    lines = [
        {"topic": one.topic, "queue_id": one.queue_id, "tags": one.tags, "keys": one.keys}
        | {"uniq_key": one.uniq_key, "body_hex": one.body.hex()}
        for one in messages
    ]
    assert rmq("store", "init", root, "--store-config", conf).exit_code == 0
    more = ("--store-config", conf, "--as-version", release, "--flush", "sync", "--format", "ndjson")
    result = rmq("store", "put", root, "-", *more, stdin="\n".join(map(json.dumps, lines)))
    assert (result.exit_code, result.rows[-1]["messages"]) == (0, 150)
    with java_store(root, **java_settings({})) as java:
        found = served_by_java(java)
        put_by_java(java, 150, 10)
    for key in QUEUES:
        sent = [hashlib.sha256(one.body).hexdigest() for one in messages if (one.topic, one.queue_id) == key]
        assert found[key] == sent
    assert rmq("verify", root, "--store-config", conf).exit_code == 0


def files_of(root: Path) -> list[str]:
    kinds = ("commitlog", "consumequeue", "index")
    return sorted(one.relative_to(root).as_posix() for kind in kinds for one in (root / kind).rglob("*"))


def test_what_java_deletes_goes_here_too(java_store: OpenStore, release: str, tmp_path: Path) -> None:
    """Segments of four days, by hand; queues and index follow, and their first offsets are the same."""
    root, copy = tmp_path / "store", tmp_path / "copy"
    settings = {"deleteCommitLogFilesInterval": 1, "deleteConsumeQueueFilesInterval": 1}
    with MessageStore.open(root, create=True, release=release, config=SIZES) as store:
        store.put_many(traffic(0, 400))
    old = time.time() - 4 * 86_400
    for name in sorted(os.listdir(root / "commitlog"))[:9]:
        os.utime(root / "commitlog" / name, (old, old))
    shutil.copytree(root, copy)
    with java_store(root, **java_settings(settings)) as java:
        java.call("clean")
        expected = {(one["topic"], one["queue"]): one["min"] for one in java.call("queues")}
    with MessageStore.open(copy, release=release, config=SIZES | settings) as store:
        assert store.expire().segments == 9
        assert {key: store.offsets(*key)[0] for key in store.queues()} == expected
    assert files_of(copy) == files_of(root)
    assert len(os.listdir(copy / "index")) > 1
