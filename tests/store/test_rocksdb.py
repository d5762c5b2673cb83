"""Who reads consume queues that are in RocksDB: settings first, then what lies on the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rmqtool.broker.settings import settings_of
from rmqtool.query.served_queue import find_queue
from rmqtool.repair.keep.rocksdb import has_rocksdb_queues
from rmqtool.store.config import config_of
from rmqtool.store.layout import Store
from rmqtool.store.rocksdb import reads_rocksdb_queues, rocksdb_queue_files

if TYPE_CHECKING:
    from pathlib import Path

ROCKSDB = {"storeType": "defaultRocksDB"}
FILES = {"storeType": "default"}
BOTH = {"rocksdbCQDoubleWriteEnable": "true"}


def _make(root: Path, *names: str) -> Path:
    (root / "commitlog").mkdir(parents=True)
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"")
    return root


@pytest.mark.parametrize(
    ("settings", "names", "read", "moved_out"),
    [
        ({}, (), False, False),
        ({}, ("CURRENT",), True, True),
        ({}, ("IDENTITY",), False, True),
        (FILES, ("CURRENT", "IDENTITY"), False, False),
        (BOTH, ("CURRENT", "IDENTITY"), False, False),
        (ROCKSDB, (), True, True),
        (ROCKSDB | BOTH, ("CURRENT",), True, True),
    ],
)
def test_settings_come_before_files(
    tmp_path: Path, settings: dict[str, str], names: tuple[str, ...], read: bool, moved_out: bool
) -> None:
    config = config_of(settings)
    store = Store.open(_make(tmp_path / "store", *(f"consumequeue/{name}" for name in names)), config=config)
    assert reads_rocksdb_queues(store) is read
    assert has_rocksdb_queues(store) is moved_out
    assert settings_of(store).rocksdb_queues is read
    assert ("storeType" in settings_of(store).assumed) is (read and not settings)


def test_configuration_in_rocksdb_says_nothing_of_queues(tmp_path: Path) -> None:
    store = Store.open(_make(tmp_path / "store", "config/topics/CURRENT", "consumequeue/T/0/" + "0" * 20))
    assert not rocksdb_queue_files(store)
    assert find_queue(store, "T", 7).files == (), "a broker makes it when it is asked"
