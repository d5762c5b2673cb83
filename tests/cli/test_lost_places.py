"""A key or an id of a message whose bytes are damaged: the answer says first where it was."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from fixtures.stores import HandmadeStore, Stored, healthy_store
from tests.helpers import Result, rmq

NDJSON = ("--format", "ndjson")


@pytest.fixture
def lost(tmp_path: Path) -> tuple[HandmadeStore, Stored]:
    store = healthy_store().write(tmp_path / "store")
    record = store.of("Orders")[20]
    store.patch(*store.segment(record.offset), bytes(64))
    return store, record


def offset_id(offset: int) -> str:
    return f"0A00000200002A9F{offset:016X}"


def first_line(result: Result) -> str:
    return result.stderr.splitlines()[0]


def damage(record: Stored) -> str:
    return f"offset {record.offset}, inside the damaged range {record.offset}–{record.placed.end}"


@pytest.mark.parametrize("more", [(), ("--source", "index")])
def test_the_index_knew_a_key(lost: tuple[HandmadeStore, Stored], more: tuple[str, ...]) -> None:
    store, record = lost
    result = rmq("query-key", store.root, "Orders", "k40", *more, *NDJSON)
    assert (result.exit_code, result.rows[-1]["incomplete_reason"]) == (3, "damage")
    assert first_line(result) == f"not found, but the index knew it: {damage(record)}"
    place = {"damaged_from": record.offset, "damaged_to": record.placed.end}
    (known,) = result.rows[-1]["index_knew"]
    assert known == {"physical_offset": record.offset, "state": "garbage", **place}


def test_others_with_the_key_are_listed(lost: tuple[HandmadeStore, Stored]) -> None:
    result = rmq("query-key", lost[0].root, "Orders", "even", *NDJSON)
    assert result.exit_code == 3
    assert len(result.of_type("message")) > 90
    assert first_line(result) == f"the index knows one more: {damage(lost[1])}"


@pytest.mark.share
@pytest.mark.parametrize("inside", [0, 5, 150])
def test_an_offset_id(lost: tuple[HandmadeStore, Stored], inside: int) -> None:
    store, record = lost
    result = rmq("query-id", store.root, offset_id(record.offset + inside), *NDJSON)
    summary = result.rows[-1]
    assert (result.exit_code, summary["kind"], summary["messages"]) == (3, "offset_msg_id", 0)
    assert summary["id_parts"] == {"host": "10.0.0.2:10911", "offset": record.offset + inside}
    assert [row["physical_offset"] for row in summary["not_covered"]] == [record.offset]
    where = damage(record).replace(f"offset {record.offset},", f"offset {record.offset + inside},")
    assert first_line(result) == f"not found: the id names host 10.0.0.2:10911, {where}"
    shown = rmq("show", store.root, offset_id(record.offset))
    assert shown.exit_code == 1
    assert "process" not in shown.stdout + result.stderr


def test_what_has_expired(lost: tuple[HandmadeStore, Stored]) -> None:
    store, record = lost
    for segment in sorted((store.root / "commitlog").iterdir())[:6]:
        segment.unlink()
    for command, *asked in (("query-key", "Orders", "k40"), ("query-id", offset_id(record.offset))):
        result = rmq(command, store.root, *asked, *NDJSON)
        assert result.exit_code == 1
        assert f"offset {record.offset}, which has expired" in first_line(result)


def test_hits_of_another_time_are_no_collisions(tmp_path: Path) -> None:
    """Items hold seconds: those just outside of the window are read, and judged by their own time."""
    store = healthy_store().write(tmp_path / "store")
    time = store.of("Orders")[20].time
    result = rmq("query-key", store.root, "Orders", "even", "--from", time + 1, "--to", time + 100, *NDJSON)
    summary: dict[str, Any] = result.rows[-1]
    assert [summary[name] for name in ("messages", "candidates", "rejected_collisions")] == [0, 0, 0]
    shutil.rmtree(store.root / "index")
    scanned = rmq("query-key", store.root, "Orders", "even", "--from", time + 1, "--to", time + 100, *NDJSON)
    assert scanned.rows[-1]["rejected_collisions"] == 0


@pytest.mark.parametrize(
    "command",
    [
        "query-offset STORE Orders 0 47",
        "query-time STORE Orders 0 TIME",
        "query-key STORE Orders k94",
        "query-key STORE Orders k94 --source scan",
        "query-id STORE ID",
        "tail STORE -n 5",
    ],
)
def test_a_listed_message_with_a_wrong_body_is_damage(tmp_path: Path, command: str) -> None:
    store = healthy_store().write(tmp_path / "store")
    record = store.of("Orders")[47]
    path, position = store.segment(record.offset)
    store.patch(path, position + 95, b"??")
    words = {"STORE": str(store.root), "TIME": str(record.time), "ID": offset_id(record.offset)}
    result = rmq(*(words.get(one, one) for one in command.split()), *NDJSON)
    assert result.exit_code == 3
    assert record.offset in [row["physical_offset"] for row in result.of_type("message")]
    (row,) = [row for row in result.rows[-1]["not_covered"] if row["reason"] == "damage"]
    assert (row["path"], row["position"], row["length"]) == (path, position, record.size)
    assert row["error"] == "1 body fails its CRC"


@pytest.mark.parametrize("behind", [1 << 20, 1 << 40, (1 << 63) - 1])
def test_an_offset_id_behind_the_log(lost: tuple[HandmadeStore, Stored], behind: int) -> None:
    """Read as a client id it would be of process 0, which makes none; the damage may hide a UNIQ_KEY."""
    store, _ = lost
    result = rmq("query-id", store.root, offset_id(behind), *NDJSON)
    assert (result.exit_code, result.rows[-1]["kind"]) == (3, "offset_msg_id")
    assert f"offset {behind}, where no file of the log lies" in result.stderr
    assert "process 0" not in result.stderr


@pytest.mark.parametrize("more", [(), ("--source", "index")])
def test_a_record_that_lost_its_key_alone(tmp_path: Path, more: tuple[str, ...]) -> None:
    """No CRC covers properties: the body is right, and nothing but the index knows which key was there."""
    store = healthy_store().write(tmp_path / "store")
    record = store.of("Orders")[20]
    path, position = store.segment(record.offset)
    at = store.read(path).index(b"k40", position)
    store.patch(path, at, b"kX0")
    result = rmq("query-key", store.root, "Orders", "k40", *more, *NDJSON)
    assert (result.exit_code, result.rows[-1]["incomplete_reason"]) == (3, "damage")
    words = f"not found, but the index knew it: offset {record.offset}, whose record does not have that key"
    assert first_line(result) == words
    assert rmq("query-key", store.root, "Orders", "k42", *NDJSON).exit_code == 0


def test_an_index_file_whose_header_claims_more_than_it_has(tmp_path: Path) -> None:
    """Law seed 42018: no record lies where it begins by that, and what the file before has was not read."""
    store = healthy_store().write(tmp_path / "store")
    before, file = sorted((store.root / "index").iterdir())[:2]
    begin = int.from_bytes(file.read_bytes()[16:24], "big")
    hidden = next(one for one in store.of("Orders") if one.offset < begin)
    for path, position, value in ((before, 0, -1), (file, 16, 1)):
        data = bytearray(path.read_bytes())
        data[position : position + 8] = value.to_bytes(8, "big", signed=True)
        path.write_bytes(data)
    key = hidden.placed.data.split(b"KEYS\x01")[1].split(b"\x02")[0].decode().split()[0]
    result = rmq("query-key", store.root, "Orders", key, *NDJSON)
    assert hidden.offset in [row["physical_offset"] for row in result.of_type("message")]


@pytest.mark.parametrize("offset_too", [False, True])
def test_an_item_with_a_wrong_hash_in_the_same_slot(tmp_path: Path, offset_too: bool) -> None:
    """Law seed 48220: no chain is broken, and the key it stood for looked like one that is not there."""
    store = healthy_store().write(tmp_path / "store")
    record = [one for one in store.of("Orders") if one.items[1][0].endswith("1")][3]
    path, number = record.items[1]
    at = store.spoil_hash(path, number)
    if offset_too:
        store.patch(path, at + 4, (record.offset + 3).to_bytes(8, "big"))
    key = record.placed.data.split(b"KEYS\x01")[1].split(b"\x02")[0].decode().split()[0]
    result = rmq("query-key", store.root, "Orders", key, *NDJSON)
    assert result.exit_code == 0
    assert [row["physical_offset"] for row in result.of_type("message")] == [record.offset]
    assert rmq("query-key", store.root, "Orders", key, "--source", "index", *NDJSON).exit_code == 3
