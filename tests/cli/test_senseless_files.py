"""Small files with content that no broker writes: exit 1, and the place is named."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path
from typing import Any

import pytest

from tests.cli.dumping import NDJSON
from tests.helpers import rmq

FIELDS = {
    "begin_timestamp": (0, ">q"), "end_timestamp": (8, ">q"), "begin_physical_offset": (16, ">q"),
    "end_physical_offset": (24, ">q"), "hash_slot_count": (32, ">i"), "index_count": (36, ">i"),
}  # fmt: skip


@pytest.fixture
def store(golden: Any, tmp_path: Path) -> Path:
    return Path(shutil.copytree(golden("b533-full").path, tmp_path / "store"))


@pytest.fixture
def index(store: Path) -> Path:
    return min((store / "index").iterdir())


def write(path: Path, at: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(data)


def test_the_index_of_a_broker_has_no_problem(golden: Any) -> None:
    result = rmq("dump", golden("b533-full").path / "index", *NDJSON)
    assert result.exit_code == 0
    assert not [row for row in result.rows if "problems" in row]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("index_count", -1), ("index_count", 1 << 30), ("hash_slot_count", -5), ("begin_timestamp", 0),
        ("begin_timestamp", 1 << 60), ("end_timestamp", -1), ("begin_physical_offset", -1),
        ("begin_physical_offset", 1 << 50), ("end_physical_offset", -7),
    ],
)  # fmt: skip
def test_a_header_that_no_broker_writes(index: Path, field: str, value: int) -> None:
    before = [row["number"] for row in rmq("dump", index, *NDJSON).of_type("index_item")]
    position, form = FIELDS[field]
    write(index, position, struct.pack(form, value))
    result = rmq("dump", index, *NDJSON)
    assert result.exit_code == 1
    (header,) = result.of_type("index_header")
    assert header[field] == value
    assert str(value) in header["problems"][0]
    assert [row["number"] for row in result.of_type("index_item")] == before


def test_items_behind_an_old_header_are_listed(index: Path) -> None:
    before = rmq("dump", index, *NDJSON).of_type("index_item")
    write(index, FIELDS["index_count"][0], struct.pack(">i", 1))
    result = rmq("dump", index, *NDJSON)
    assert (result.exit_code, result.of_type("index_item")) == (0, before)


def test_an_index_that_ends_early(index: Path) -> None:
    header = rmq("dump", index, *NDJSON).of_type("index_header")[0]
    conf = index.parent / "broker.conf"
    conf.write_text(f"maxHashSlotNum={header['slots']}\nmaxIndexNum={header['items']}\n")
    size = index.stat().st_size
    index.write_bytes(index.read_bytes()[: size - 30])
    result = rmq("dump", index, *NDJSON, "--store-config", conf)
    assert result.exit_code == 1
    (gap,) = result.of_type("gap")
    assert (gap["position"], gap["length"], gap["reason"]) == (size - 30, 30, "short")


@pytest.mark.parametrize(
    ("at", "data", "place", "reason"),
    [
        (100, b"x", (40, 4056), "not_zero"),
        (4095, b"\x01", (40, 4056), "not_zero"),
        (4096, b"\0", (4096, 1), "excess"),
    ],
)
def test_a_checkpoint_with_more_in_it(
    store: Path, at: int, data: bytes, place: tuple[int, int], reason: str
) -> None:
    path = store / "checkpoint"
    assert rmq("dump", path).exit_code == 0
    write(path, at, data)
    result = rmq("dump", path, *NDJSON)
    (gap,) = result.of_type("gap")
    assert ((gap["position"], gap["length"]), gap["reason"], result.exit_code) == (place, reason, 1)


def test_an_epoch_file_with_a_wrong_number_of_lines(tmp_path: Path) -> None:
    from formats.checkpoint import EpochEntry, EpochFile

    raw = EpochFile.of([EpochEntry(1, 0), EpochEntry(2, 100)]).build()
    path = tmp_path / "epochFileCheckpoint"
    path.write_bytes(b"3" + raw[1:])
    assert rmq("dump", path).exit_code == 1


def test_a_lock_file_of_other_content(store: Path) -> None:
    path = store / "lock"
    assert rmq("dump", path).exit_code == 0
    path.write_bytes(b"lock" + b"\xff" * 60)
    assert rmq("dump", path).exit_code == 1


def test_zeros_in_front_of_units_are_lost_ones(store: Path) -> None:
    path = next(one for one in sorted((store / "consumequeue").rglob("0*0")) if one.is_file())
    raw = path.read_bytes()
    unit = raw[:20]
    path.write_bytes(unit + bytes(20) + unit + raw[60:])
    result = rmq("dump", path, *NDJSON)
    assert [row["state"] for row in result.of_type("unit")][1] == "zero"
    assert result.exit_code == 1
