"""Records that are checked in blocks have the units and keys that they have one by one, and the findings."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fixtures import logs
from fixtures.builder import FIRST_TIME, HandmadeLog
from fixtures.derived import write_derived
from formats.commitlog import SysFlag
from formats.index import Item, item_position
from formats.primitives import dtype_of
from formats.tags_code import SCHEDULE_TOPIC
from rmqtool.check.account import Accounting, RunSummary
from rmqtool.check.index_keys import Keys, Unindexed
from rmqtool.check.levels import Level
from rmqtool.check.log_reading import CheckedLog, accounted_log
from rmqtool.scan import sound
from rmqtool.scan.events import Unreadable
from rmqtool.scan.fields import OFF_BODY_CRC, OFF_MAGIC, DispatchColumn
from rmqtool.scan.options import ReadOptions
from rmqtool.store.access import Access
from rmqtool.store.bytes import PreadSource
from rmqtool.store.layout import Store
from tests.check.test_sound import KERNELS, jumping_times, verified
from tests.scan.conftest import compiled_kernels, python_kernels
from tests.scan.test_reader import DAMAGE, SIZE, write_harmed

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType

    from tests.scan.test_reader import Damage


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("columns")
    facts = logs.write_log(root / "commitlog", 2 * SIZE, body_size=logs.BODY_OF_300, segment_size=SIZE)
    write_derived(root, facts, units_in_a_file=17, slots=50, items=300)
    return root


def mixed(root: Path, count: int) -> Store:
    """Messages of many kinds by chance."""
    chance = np.random.default_rng(5)
    log = HandmadeLog(segment_size=1 << 16)
    for number in range(count):
        kind = int(chance.integers(0, 12))
        topic = SCHEDULE_TOPIC if kind < 2 else f"Topic{chance.integers(0, 9)}"
        properties = {"TAGS": "ü" if kind == 3 else f"T{kind}"} | ({"DELAY": "3"} if kind == 0 else {})
        if kind != 4:
            properties["UNIQ_KEY"] = f"u{number}"
        if kind > 5:
            properties["KEYS"] = " ".join(["k", f"ключ{number}", ""] * int(chance.integers(1, 5)))
        flag = {7: SysFlag.PREPARED, 8: SysFlag.ROLLBACK, 9: SysFlag.COMMIT}.get(kind, 0)
        log.put(topic, b"b" * kind, properties, queue_id=kind % 3, sys_flag=int(flag))
    log.write(root / "commitlog")
    return Store.open(root)


def told(store: Store, account: Accounting) -> dict[str, Any]:
    """What accounts tell of each record, whatever the runs, and how many records the largest run has."""
    found: dict[str, Any] = {"units": [], "places": [], "keys": [], "unindexed": [0, None, 0], "largest": 0}
    for _, event in CheckedLog(store.segments, ReadOptions(), account.kernels, account).events():
        if not isinstance(event, RunSummary):
            continue
        found["largest"] = max(found["largest"], event.extent.records)
        keys = event.placed.keys
        columns = event.placed.columns
        for partition, *rest in columns.T.tolist():
            del rest[DispatchColumn.OWNER - 1]
            found["units"].append([keys[partition], rest])
        if isinstance(event.keys, Unindexed):
            if event.keys.records:
                found["unindexed"][0] = found["unindexed"][0] or event.keys.start
                found["unindexed"][1:] = event.keys.end, found["unindexed"][2] + event.keys.records
            continue
        own = event.keys
        assert columns[DispatchColumn.OFFSET].tolist() == own.offsets[columns[DispatchColumn.OWNER]].tolist()
        found["places"] += np.stack([own.offsets, own.ends, own.times]).T.tolist()
        found["keys"] += np.stack([own.hashes, own.offsets[own.owners]]).T.tolist()
    return found


@pytest.mark.share
@pytest.mark.parametrize("module", KERNELS)
@pytest.mark.parametrize(
    ("block", "room", "key_room"), [(128, 1 << 15, 1 << 17), (7, 200, 1 << 17), (16, 300, 350)]
)
def test_columns_are_those_of_the_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: Any, block: int, room: int, key_room: int
) -> None:
    monkeypatch.setattr(sound, "BLOCK", block)
    monkeypatch.setattr("rmqtool.check.account.MOST_COLUMNS", room)
    monkeypatch.setattr(sound, "KEYS_ROOM", key_room)
    store = mixed(tmp_path, 1500)
    for unindexed in (False, True):
        account = replace(Accounting.of(store, module(), Level.DEFAULT), unindexed=unindexed)
        assert account.columned
        by_columns = told(store, account)
        with monkeypatch.context() as patch:
            patch.setattr(Accounting, "columned", False)
            one_by_one = told(store, account)
        assert by_columns.pop("largest") != one_by_one.pop("largest")
        assert by_columns == one_by_one


def bits(path: Path, chance: np.random.Generator) -> None:
    """Changes bytes of a file."""
    data = bytearray(path.read_bytes())
    for at in chance.integers(0, len(data), 3).tolist():
        data[at] ^= 1 << int(chance.integers(0, 8))
    path.write_bytes(data)


def sorted_out(found: list[dict[str, Any]], summary: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Those of the log as they come; in between come others, as runs end."""
    of_log = [one for one in found if one["path"].startswith("commitlog")]
    return of_log, sorted(str(one) for one in found if one not in of_log), summary


@pytest.mark.share
@pytest.mark.parametrize("module", KERNELS)
@pytest.mark.parametrize("derived", [False, True])
@pytest.mark.parametrize("harm", [None, *DAMAGE, jumping_times])
def test_findings_are_those_of_the_records(
    whole: Path,
    tmp_path: Path,
    harm: Damage | None,
    derived: bool,
    module: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sound, "BLOCK", 7)
    (tmp_path / "commitlog").mkdir()
    kernels: ModuleType = module()
    monkeypatch.setattr("rmqtool.check.verify.choose_kernels", lambda *_: kernels)
    for name in ("consumequeue", "index"):
        shutil.copytree(whole / name, tmp_path / name)
    if derived:
        chance = np.random.default_rng(3)
        for path in sorted(one for one in tmp_path.rglob("*") if one.is_file())[::3]:
            bits(path, chance)
    for seed in range(2):
        write_harmed(whole, tmp_path, harm, seed)
        by_columns = [sorted_out(*verified(tmp_path, jobs)) for jobs in (1, 2)]
        with monkeypatch.context() as patch:
            patch.setattr(Accounting, "columned", False)
            assert by_columns == [sorted_out(*verified(tmp_path, 1))] * 2


@pytest.mark.parametrize("block", [7, 128])
def test_a_record_claims_an_item_whatever_the_blocks(
    whole: Path, tmp_path: Path, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Items of two records of different blocks were exchanged."""
    monkeypatch.setattr(sound, "BLOCK", block)
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    write_harmed(whole, tmp_path, flip_at_record_100, 0)
    path = min((tmp_path / "index").iterdir())
    items = np.frombuffer(path.read_bytes()[item_position(1, 50) :], dtype_of(Item)).copy()
    items[[180, 270]] = items[[270, 180]]
    overwrite_at(path, item_position(1, 50), items.tobytes())
    by_columns = [sorted_out(*verified(tmp_path, jobs)) for jobs in (1, 2)]
    with monkeypatch.context() as patch:
        patch.setattr(Accounting, "columned", False)
        one_by_one = sorted_out(*verified(tmp_path, 1))
    assert by_columns == [one_by_one] * 2
    assert one_by_one[2]["by_code"]["IDX-OFFSET"] == 2


def flip_at_record_100(data: bytearray, chance: np.random.Generator) -> None:
    data[100 * 300 + OFF_BODY_CRC] ^= 1


def overwrite_at(path: Path, at: int, new: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(at)
        file.write(new)


def test_delayed_messages_are_cut_off_while_they_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kernels = compiled_kernels()
    log = HandmadeLog(segment_size=1 << 16)
    for number in range(700):
        log.put(SCHEDULE_TOPIC if number % 2 else "T", b"b", {"DELAY": "3", "UNIQ_KEY": f"u{number}"})
    path, _ = log.write(tmp_path / "commitlog")
    kept = 4096 * 4
    usual = kernels.records_at
    cut: list[int] = []

    def cut_first(window: Any, *arguments: Any) -> int:
        if not cut:
            assert len(window) == log.segment_size, "not mapped"
            os.truncate(path, kept)
            cut.append(kept)
        return int(usual(window, *arguments))

    monkeypatch.setattr(kernels, "records_at", cut_first)
    store = Store.open(tmp_path)
    account = Accounting.of(store, kernels, Level.DEFAULT)
    events = [event for _, event in accounted_log(store.segments, ReadOptions(), kernels, account).events()]
    assert cut
    records = sum(one.extent.records for one in events if isinstance(one, RunSummary))
    assert records == sum(one.end <= kept or one.end > log.segment_size for one in log.records)
    (lost,) = [one for one in events if isinstance(one, Unreadable)]
    assert (lost.position, lost.length) == (kept, log.segment_size - kept)


def test_how_old_large_records_of_a_block_are_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is left of an earlier life is told by the last records in front of it, however large they are."""
    monkeypatch.setattr(sound, "BLOCK", 7)
    monkeypatch.setattr("rmqtool.scan.segment.LOOK_BACK", 200)
    log = HandmadeLog(segment_size=1 << 18)
    for number in range(140):
        age = 0 if number < 70 else 100_000
        log.put("T", b"b" * 500, store_timestamp=FIRST_TIME + number - age)
    (path,) = log.write(tmp_path / "commitlog")
    overwrite_at(path, log.records[70].physical_offset, bytes(100))
    account = Accounting.of(Store.open(tmp_path), python_kernels(), Level.DEFAULT)
    for columned in (True, False):
        with monkeypatch.context() as patch:
            patch.setattr(Accounting, "columned", columned)
            found, summary = verified(tmp_path, 1)
        assert summary["records"] == 70
        assert [one["code"] for one in found if one["path"].startswith("commitlog")] == ["CL-STALE"]
    assert account.columned


@pytest.mark.parametrize("apart", [10, 40, 72])
def test_a_log_with_many_gaps_is_copied_no_oftener_for_blocks(
    whole: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, apart: int
) -> None:
    monkeypatch.setattr(sound, "BLOCK", 7)
    monkeypatch.setattr("rmqtool.scan.reader.WINDOW_BYTES", 1 << 16)
    (tmp_path / "commitlog").mkdir()

    def gaps(data: bytearray, chance: np.random.Generator) -> None:
        for number in range(int(chance.integers(1, apart)), SIZE // 300 - 1, apart):
            data[number * 300 + OFF_MAGIC] ^= 1

    write_harmed(whole, tmp_path, gaps, 0)
    usual = PreadSource.window
    asked: list[int] = []

    def counted(self: PreadSource, offset: int, length: int) -> Any:
        asked.append(length)
        return usual(self, offset, length)

    monkeypatch.setattr(PreadSource, "window", counted)
    store = Store.open(tmp_path)
    account = Accounting.of(store, python_kernels(), Level.DEFAULT)
    found: list[tuple[int, int]] = []
    for columned in (True, False):
        monkeypatch.setattr(Accounting, "columned", columned)
        asked.clear()
        how = ReadOptions(Access("pread"))
        events = [event for _, event in accounted_log(store.segments, how, account.kernels, account).events()]
        found.append((sum(one.extent.records for one in events if isinstance(one, RunSummary)), sum(asked)))
    assert found[0][0] == found[1][0]
    assert found[0][1] <= 1.3 * found[1][1]


def test_keys_without_an_index() -> None:
    nothing, longs = np.empty(0, np.int32), np.empty(0, np.int64)
    assert Keys(nothing, nothing, longs, longs, longs).unindexed() == Unindexed(0, 0, 0)
