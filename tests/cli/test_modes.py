"""What is written is never more readable than what it was made from."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from rmqtool.store.layout import Store
from rmqtool.store.modes import common_readers, readers_of
from tests.helpers import rmq
from tests.repair.carrying import apply
from tests.repair.smallstore import make_store


@pytest.fixture
def golden(fresh_golden):
    made = fresh_golden("v533-basic")
    before = os.umask(0o022)
    yield made
    os.umask(before)


def close(root: Path, mode: int) -> None:
    for place in root.rglob("*"):
        if place.is_file():
            place.chmod(mode)


def open_bits(place: Path) -> dict[str, int]:
    """What group and others may do, of everything at and below a path."""
    every = [place, *place.rglob("*")] if place.is_dir() else [place]
    return {str(one): stat.S_IMODE(one.lstat().st_mode) & 0o077 for one in every}


def made_by(golden, tmp_path: Path) -> list[Path]:
    root, conf = golden.path, ("--store-config", golden.config_path)
    at = ("--as-version", "5.3.3")
    saved, out = tmp_path / "plan.json", tmp_path / "out"
    parquet, lines, lake = tmp_path / "m.parquet", tmp_path / "m.ndjson", tmp_path / "lake"
    built, salvaged, backup = tmp_path / "built", tmp_path / "salvaged", tmp_path / "backup"
    assert rmq("rebuild", root, *conf, *at, "--output", built, "--apply").exit_code in {0, 1}
    for target in (parquet, lines):
        assert rmq("export", root, *conf, "--to", target).exit_code == 0
    assert (
        rmq("export", root, *conf, "--to", lake, "--format", "parquet", "--partition", "topic").exit_code == 0
    )
    assert rmq("salvage", root / "commitlog", *at, "--output", salvaged).exit_code in {0, 1}
    checkpoint = ("checkpoint", "set", root, *conf, *at)
    assert rmq(*checkpoint, "--save-plan", saved).exit_code == 1
    assert rmq(*checkpoint, "--output", out, "--apply").exit_code == 0
    assert rmq(*checkpoint, "--in-place", "--backup", backup, "--apply").exit_code == 0
    return [saved, parquet, lines, lake, built, salvaged, backup, out]


def test_a_store_for_its_owner_alone_gives_files_for_their_owner_alone(golden, tmp_path):
    close(golden.path, 0o600)
    golden.path.chmod(0o700)
    for place in made_by(golden, tmp_path):
        found = open_bits(place)
        assert found[str(place)] == 0
        assert {path for path, bits in found.items() if bits and not Path(path).is_dir()} == set()
    assert os.umask(0o022) == 0o022


def test_one_file_that_others_may_not_read_is_enough(golden, tmp_path):
    (golden.path / "checkpoint").chmod(0o640)
    lines = tmp_path / "m.ndjson"
    assert rmq("export", golden.path, "--to", lines).exit_code == 0
    assert stat.S_IMODE(lines.stat().st_mode) == 0o640


def test_readers_are_those_that_every_path_lets_read(golden, tmp_path):
    assert readers_of(Store.open(golden.path)) == 0o777
    assert common_readers([str(tmp_path / "gone")]) == 0o777
    (tmp_path / "a").touch(0o644)
    (tmp_path / "b").touch(0o640)
    assert common_readers([str(tmp_path / "a"), str(tmp_path / "b")]) == 0o770


def test_a_new_file_in_a_store_is_no_more_readable_than_the_others(tmp_path):
    root = make_store(tmp_path / "store")
    apply(root, tmp_path / "backup")
    assert stat.S_IMODE((root / "consumequeue/U/0/00000000000000000000").stat().st_mode) == 0o640


def test_a_message_store_for_its_owner_alone_stays_so(tmp_path):
    before = os.umask(0o022)
    try:
        root, settings = tmp_path / "store", tmp_path / "broker.conf"
        settings.write_text("mappedFileSizeCommitLog=4096\nmaxHashSlotNum=10\nmaxIndexNum=20\n")
        put = ("store", "put", root, "--store-config", settings, "T", "--keys", "k", "--body", "x" * 3000)
        assert rmq("store", "init", root, "--store-config", settings).exit_code == 0
        close(root, 0o600)
        for _ in range(2):
            assert rmq(*put).exit_code == 0
        found = open_bits(root)
        assert len([path for path in found if "commitlog/0" in path]) == 2
        assert {path for path, bits in found.items() if bits and not Path(path).is_dir()} == set()
    finally:
        os.umask(before)
