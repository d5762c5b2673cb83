"""Files shorter than one entry and names one byte apart tell no size, and every command ends."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from fixtures.stores import healthy_store
from rmqtool.store.kinds import FileKind
from rmqtool.store.layout import Store
from tests.helpers import rmq

COMMANDS = ("info", "verify", "doctor", "stats", "rebuild", "recover", "query-offset", "query-time")


def run_all(root: Path, topic: str) -> None:
    for command in COMMANDS:
        rest = {"query-offset": (topic, 0, 0, "-n", 99), "query-time": (topic, 0, 0)}.get(command, ())
        result = rmq(command, root, *rest)
        assert result.exit_code in (0, 1, 2, 3), (command, result.stderr)


@pytest.mark.parametrize("size", [10, 30])
def test_a_queue_file_that_is_no_queue_file(tmp_path: Path, size: int) -> None:
    root = tmp_path / "store"
    healthy_store().write(root)
    shutil.rmtree(root / "consumequeue")
    place = root / "consumequeue/Orders/0"
    place.mkdir(parents=True)
    (place / "00000000000000000000").write_bytes(bytes(size))
    assert Store.open(root).sizes[FileKind.CONSUMEQUEUE].value == 6_000_000
    run_all(root, "Orders")


@pytest.mark.share
@pytest.mark.parametrize(
    ("kind", "directory", "topic"),
    [
        (FileKind.BATCHCONSUMEQUEUE, "batchconsumequeue/Batches/0", "Batches"),
        (FileKind.CONSUMEQUEUE_EXT, "consumequeue_ext/Filtered/0", "Filtered"),
        (FileKind.COMMITLOG, "commitlog", "Orders"),
    ],
)
def test_what_is_left_of_a_single_file(tmp_path: Path, kind: FileKind, directory: str, topic: str) -> None:
    root = tmp_path / "store"
    healthy_store().write(root)
    first, *others = sorted((root / directory).iterdir())
    for one in others:
        one.unlink()
    os.truncate(first, 10)
    assert Store.open(root).sizes[kind].value > 1_000_000
    run_all(root, topic)


@pytest.mark.parametrize("directory", ["consumequeue/Orders/0", "commitlog"])
def test_names_one_byte_apart(tmp_path: Path, directory: str) -> None:
    root = tmp_path / "store"
    healthy_store().write(root)
    last = max((root / directory).iterdir())
    for step in range(1, 12):
        (last.parent / f"{int(last.name) + step:020d}").write_bytes(b"\1" * 7)
    run_all(root, "Orders")


def test_tables_too_large_to_be_tables_are_not_read(tmp_path: Path) -> None:
    root = tmp_path / "store"
    healthy_store().write(root)
    os.truncate(root / "config/topics.json", 200 << 30)
    for command in ("info", "doctor", "verify"):
        result = rmq(command, root, "--json")
        assert result.exit_code in (1, 3), (command, result.stderr)


def test_index_files_without_room_for_a_key(tmp_path: Path) -> None:
    """`IndexService#putKey` makes them without end; a file that could be one tells nothing."""
    root, conf = tmp_path / "store", tmp_path / "broker.conf"
    healthy_store().write(root)
    conf.write_text("maxIndexNum=1\n")
    for command in ("rebuild", "recover"):
        reported = rmq(command, root, "--store-config", conf)
        assert (reported.exit_code, reported.stderr.count("\n")) == (2, 1)
        assert "maxIndexNum is 1" in reported.stderr
    shutil.rmtree(root / "index")
    (root / "index").mkdir()
    (root / "index/20240101000000000").write_bytes(bytes(64))
    assert rmq("rebuild", root, "--what", "index").exit_code == 1
