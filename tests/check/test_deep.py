"""`verify --deep`: what is wrong inside of records whose frame and CRC are right."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import pytest

import fixtures
from formats.batch import CLIENT_MESSAGE_OVERHEAD, encode_batch
from formats.commitlog import SysFlag, encode_message
from rmqtool.check.levels import Level
from rmqtool.check.verify import Verification
from rmqtool.scan.options import ReadOptions
from rmqtool.store.layout import Store
from tests.tiers import of_each_kind

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NOW = 1_700_000_000_000
FIRST = encode_message("T", b"in front", b"UNIQ_KEY\x01A\x02", physical_offset=0, store_timestamp=NOW)
INNER = int(SysFlag.INNER_BATCH)
BATCH = encode_batch([(b"one", b"", 0), (b"two", b"K\x01v\x02", 0)])


def inside(tmp_path: Path, body: bytes, properties: bytes, sys_flag: int) -> list[dict[str, Any]]:
    """Findings of the level about a record behind a right one; the default level has none."""
    record = encode_message(
        "T", body, properties, sys_flag=sys_flag, physical_offset=len(FIRST), store_timestamp=NOW
    )
    log = tmp_path / "store" / "commitlog"
    log.mkdir(parents=True)
    data = FIRST + record
    (log / f"{0:020d}").write_bytes(data + bytes(65536 - len(data)))
    store = Store.open(tmp_path / "store")
    ours = []
    for level in (Level.DEFAULT, Level.DEEP):
        run = Verification(store, ReadOptions.of(store), level)
        rows = [one.row() for one in run.findings()]
        codes = [str(row["code"]) for row in rows]
        own = [code.startswith("CL-") and code != "CL-SYSFLAG" for code in codes]
        ours.append([row for row, is_own in zip(rows, own, strict=True) if is_own])
    assert ours[0] == []
    for row in ours[1]:
        place = row["path"], row["position"], row["physical_offset"], row["length"]
        assert place == (f"commitlog/{0:020d}", len(FIRST), len(FIRST), len(record))
    return ours[1]


def codes(rows: list[dict[str, Any]]) -> list[str]:
    return [row["code"] for row in rows]


def test_right_contents_are_silent(tmp_path: Path) -> None:
    properties = f"INNER_NUM\x01{2}\x02INNER_BASE\x010\x02".encode()
    assert inside(tmp_path, zlib.compress(BATCH), properties, INNER | SysFlag.COMPRESSED) == []


@pytest.mark.parametrize(
    ("body", "flag"),
    [
        (b"no stream", SysFlag.COMPRESSED),
        (zlib.compress(b"x" * 999)[:-5], SysFlag.COMPRESSED),
        (b"no stream", SysFlag.COMPRESSED | 0x100),
        (b"no stream", SysFlag.COMPRESSED | 0x200),
        (b"no stream", SysFlag.COMPRESSED | 0x700),
    ],
)
def test_a_body_that_cannot_be_decompressed(tmp_path: Path, body: bytes, flag: int) -> None:
    rows = inside(tmp_path, body, b"", int(flag))
    assert [(row["code"], row["field"], row["severity"]) for row in rows] == [("CL-BODY", "body", "error")]


def test_a_bomb_is_a_finding(tmp_path: Path) -> None:
    layer = zlib.compressobj(9)
    bomb = b"".join(layer.compress(bytes(1 << 20)) for _ in range(65)) + layer.flush()
    if len(bomb) > 60_000:
        pytest.skip("this zlib does not compress zeros well enough")
    rows = inside(tmp_path, bomb, b"", int(SysFlag.COMPRESSED))
    assert codes(rows) == ["CL-BODY"]
    assert "grows beyond" in rows[0]["found"]


def test_a_batch_that_breaks_off(tmp_path: Path) -> None:
    rows = inside(tmp_path, BATCH[:-3], b"INNER_NUM\x012\x02", INNER)
    assert [(row["code"], row["field"]) for row in rows] == [("CL-INNER", "messages.1")]


def test_a_batch_with_another_count(tmp_path: Path) -> None:
    rows = inside(tmp_path, BATCH, b"INNER_NUM\x013\x02", INNER)
    assert [(row["code"], row["expected"], row["found"]) for row in rows] == [("CL-INNER-COUNT", "3", 2)]


def test_a_message_that_says_another_size_or_crc(tmp_path: Path) -> None:
    size = CLIENT_MESSAGE_OVERHEAD + len(b"one")
    wrong = (size + 1).to_bytes(4, "big") + BATCH[4:]
    row = inside(tmp_path, wrong, b"INNER_NUM\x012\x02", INNER)[0]
    assert (row["code"], row["field"]) == ("CL-INNER-FIELD", "messages.0.total_size")
    assert (row["expected"], row["found"]) == (size, size + 1)


def test_a_message_with_another_crc(tmp_path: Path) -> None:
    wrong = BATCH[:8] + (77).to_bytes(4, "big") + BATCH[12:]
    row = inside(tmp_path, wrong, b"INNER_NUM\x012\x02", INNER)[0]
    assert (row["code"], row["field"], row["found"]) == ("CL-INNER-FIELD", "messages.0.body_crc", 77)
    assert row["expected"] == zlib.crc32(b"one") & 0x7FFFFFFF


@pytest.mark.parametrize(
    ("properties", "code"),
    [(b"A\x011\x02B\x012\x02A\x013\x02", "CL-PROPERTY-TWICE"), (b"A\x011\x012\x02", "CL-PROPERTY-SPLIT")],
)
def test_properties_that_are_read_in_two_ways(tmp_path: Path, properties: bytes, code: str) -> None:
    rows = inside(tmp_path, b"body", properties, 0)
    assert [(row["code"], row["severity"]) for row in rows] == [(code, "note")]


_DLEDGER, _ROCKSDB, _TIMER = {"DLedger index"}, {"RocksDB"}, {"timer log"}
UNDECODED: dict[str, set[str]] = {
    "b497-dledger": _DLEDGER,
    "b533-dledger": _DLEDGER,
    "b533-controller": {"epoch file", "broker identity"},
    "b533-full": {"timer wheel"},
    "b533-pop": _TIMER,
    "b533-pop-kv": {"timer wheel", "RocksDB"},
    "b533-rocksdb": _ROCKSDB,
    "b533-rocksdb-double": _ROCKSDB,
    "b533-rocksdb-v2": _ROCKSDB,
    "b533-timer": _TIMER,
    "v533-rocksdb": _ROCKSDB,
    "v533-rocksdb-unclean": _ROCKSDB,
}
"""what a golden has that no check reads"""


@pytest.mark.share
@pytest.mark.parametrize("name", of_each_kind(fixtures.golden_names()))
def test_golden_stores_hold_what_they_say(golden: Callable[[str], fixtures.Golden], name: str) -> None:
    for path in golden(name).stores.values():
        opened = Store.open(path)
        run = Verification(opened, ReadOptions.of(opened), Level.DEEP)
        found = [one for one in run.findings() if one.severity.value != "note" and one.code.startswith("CL-")]
        assert found == []
        assert set(run.summary().get("not_looked_at", ())) == UNDECODED.get(name, set())
