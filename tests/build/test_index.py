"""Index files against the broker's rules, written down once more key by key."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.index import index_file, key_hash
from rmqtool.broker.file_rules import FileRules
from rmqtool.broker.index_files import FileEnd, IndexFile, IndexFiles, IndexNames
from rmqtool.build.files import DerivedFiles
from rmqtool.store.layout import Store
from tests.build.building import files_of, kernel_modules

SLOTS, ITEMS = 4, 6
FIRST_TIME = 1_700_000_000_123

RECORDS = st.lists(
    st.tuples(st.lists(st.sampled_from([0, 1, 2, 5, 9, 2**31 - 1]), max_size=3), st.integers(-5000, 9000)),
    min_size=1,
    max_size=14,
)
"""hashes of a record's keys, and how long after the one before it was stored, in ms"""


class JavaIndex:
    """`IndexService#buildIndex` and `IndexFile#putKey` over whole files as objects."""

    def __init__(self, every_put: bool, at_stop: bool) -> None:
        self.files: list[Any] = []
        self.every_put, self.at_stop = every_put, at_stop

    def writable(self) -> Any:
        if not self.files or self.files[-1]["header"]["index_count"] >= ITEMS:
            end = (
                self.files[-1]["header"]
                if self.files
                else dict.fromkeys(("end_timestamp", "end_physical_offset"), 0)
            )
            header = {
                "begin_timestamp": end["end_timestamp"],
                "end_timestamp": end["end_timestamp"],
                "begin_physical_offset": end["end_physical_offset"],
                "end_physical_offset": end["end_physical_offset"],
                "hash_slot_count": 0,
                "index_count": 1,
            }
            empty = {"key_hash": 0, "physical_offset": 0, "time_diff": 0, "prev": 0}
            items = [dict(empty) for _ in range(ITEMS)]
            self.files.append({"header": header, "slots": [0] * SLOTS, "items": items})
        return self.files[-1]

    def put(self, hashes: list[int], offset: int, time: int) -> None:
        self.writable()
        for value in hashes:
            file = self.writable()
            header, number = file["header"], file["header"]["index_count"]
            newest = file["slots"][value % SLOTS]
            begin = header["begin_timestamp"]
            seconds = 0 if begin <= 0 else max(int((time - begin) / 1000), 0)
            file["items"][number] = {
                "key_hash": value, "physical_offset": offset, "time_diff": seconds, "prev": newest,
            }  # fmt: skip
            file["slots"][value % SLOTS] = number
            if number <= 1:
                header["begin_physical_offset"], header["begin_timestamp"] = offset, time
            header["hash_slot_count"] += self.every_put or newest == 0
            header["index_count"] += 1
            header["end_physical_offset"], header["end_timestamp"] = offset, time

    def dispatch(self, hashes: list[int], offset: int, time: int) -> None:
        """Of a record that may be known: then it changes nothing but that there is a file with room."""
        if offset >= self.writable()["header"]["end_physical_offset"]:
            self.put(hashes, offset, time)

    def content(self) -> list[bytes]:
        last = self.files[-1]["header"]
        if last["index_count"] == 1 and not self.at_stop:
            last["index_count"] = 0
        return [index_file(SLOTS, ITEMS).build(file) for file in self.files]


@settings(max_examples=150, deadline=None)
@given(RECORDS, st.integers(1, 14), st.booleans(), st.booleans())
def test_files_are_those_of_the_brokers_rules(
    records: list[tuple[list[int], int]], at_once: int, every_put: bool, at_stop: bool
) -> None:
    times = (FIRST_TIME + np.cumsum([step for _, step in records])).astype(np.int64)
    offsets = np.arange(1, len(records) + 1, dtype=np.int64) * 100
    java = JavaIndex(every_put, at_stop)
    for (keys, _), offset, time in zip(records, offsets.tolist(), times.tolist(), strict=True):
        java.put(keys, offset, time)
    rules = FileRules(hash_slots=SLOTS, index_items=ITEMS, every_put=every_put, header_at_stop=at_stop)
    for kernels in kernel_modules():
        with tempfile.TemporaryDirectory() as name:
            names = IndexNames().next_name
            index = IndexFiles(rules, DerivedFiles(Path(name)), kernels, names)
            for start in range(0, len(records), at_once):
                part = slice(start, start + at_once)
                hashes = [value for keys, _ in records[part] for value in keys]
                owners = [number for number, (keys, _) in enumerate(records[part]) for _ in keys]
                index.put(np.array(hashes, np.int32), np.array(owners, np.int32), offsets[part], times[part])
            index.close()
            assert list(files_of(Path(name)).values()) == java.content()


@settings(max_examples=150, deadline=None)
@given(RECORDS, st.integers(0, 14), st.integers(0, 14), st.booleans(), st.randoms(use_true_random=False))
def test_an_index_that_stays_is_gone_on_with(
    records: list[tuple[list[int], int]], kept: int, again: int, every_put: bool, random: Random
) -> None:
    """Files of the first `kept` records stay, then all from `again` on come; offsets may be wrong."""
    times = (FIRST_TIME + np.cumsum([step for _, step in records])).astype(np.int64)
    steps = [random.choice((100, 100, 100, -250, 400, 0)) for _ in records]
    offsets = np.cumsum(steps).astype(np.int64)
    java = JavaIndex(every_put, at_stop=False)
    rules = FileRules(hash_slots=SLOTS, index_items=ITEMS, every_put=every_put, header_at_stop=False)
    order = [*range(len(records))[:kept], *range(len(records))[min(again, kept) :]]
    for number in order:
        java.dispatch(records[number][0], int(offsets[number]), int(times[number]))
    for kernels in kernel_modules():
        with tempfile.TemporaryDirectory() as name:
            root = Path(name)
            names = IndexNames().next_name
            for part in (slice(0, kept), slice(min(again, kept), None)):
                hashes = [value for keys, _ in records[part] for value in keys]
                owners = [number for number, (keys, _) in enumerate(records[part]) for _ in keys]
                files = DerivedFiles(root)
                there = Store.open(root / "index").index_files() if (root / "index").exists() else ()
                last = None
                if there:
                    path = f"index/{there[-1].name}"
                    files.times[path] = None
                    last = IndexFile(path, rules, files, kernels, kept=there[-1])
                index = IndexFiles(rules, files, kernels, names, last)
                index.put(np.array(hashes, np.int32), np.array(owners, np.int32), offsets[part], times[part])
                index.close()
            assert list(files_of(root).values()) == java.content()


def test_slots_that_a_header_does_not_count_are_free_until_it_does(tmp_path: Path) -> None:
    """The slots were flushed, the header was not: slot 1 is void, slot 2 names an item that is put next."""
    rules = FileRules(hash_slots=SLOTS, index_items=9)
    header = {
        "begin_timestamp": FIRST_TIME, "end_timestamp": FIRST_TIME, "begin_physical_offset": 5,
        "end_physical_offset": 5, "hash_slot_count": 1, "index_count": 2,
    }  # fmt: skip
    item = {"key_hash": 0, "physical_offset": 5, "time_diff": 0, "prev": 0}
    void = {"key_hash": 0, "physical_offset": 0, "time_diff": 0, "prev": 0}
    before = {"header": header, "slots": [1, 7, 3, -2], "items": [void, item, *[void] * 7]}
    for kernels in kernel_modules():
        root = tmp_path / kernels.__name__
        (root / "index").mkdir(parents=True)
        (root / "index" / "20231115061320123").write_bytes(index_file(SLOTS, 9).build(before))
        (kept,) = Store.open(root / "index").index_files()
        files = DerivedFiles(root, {"index/20231115061320123": None})
        file = IndexFile("index/20231115061320123", rules, files, kernels, kept=kept)
        hashes = np.array([1, 2, 3], np.int32)
        assert file.put(hashes, np.zeros(3, np.int32), np.array([50]), np.array([FIRST_TIME + 4000])) == 3
        file.close()
        found = index_file(SLOTS, 9).parse((root / "index" / "20231115061320123").read_bytes())
        assert list(found["slots"]) == [1, 2, 3, 4]
        assert [(one["key_hash"], one["prev"], one["time_diff"]) for one in found["items"][2:5]] == [
            (1, 0, 4), (2, 3, 4), (3, 0, 4),
        ]  # fmt: skip
        assert (found["header"]["index_count"], found["header"]["hash_slot_count"]) == (5, 3)


def test_a_file_of_three_keys_byte_by_byte(tmp_path: Path) -> None:
    wanted = bytes.fromhex(
        "0000018BCFE5687B0000018BCFE5704B000000000000000000000000000001080000000200000004"
        + "00000000" * 4 + "00000003" + "00000002" + "00000000" * 4
        + "00" * 20
        + "0029E6A800000000000000000000000000000000"
        + "0029E6A900000000000000840000000100000000"
        + "0029E6A800000000000001080000000200000001"
        + "00" * 80
    )  # fmt: skip
    rules = FileRules(hash_slots=10, index_items=8)
    keys = [key_hash("TopicTest", key) for key in ("k1", "k2", "k1")]
    for kernels in kernel_modules():
        root = tmp_path / kernels.__name__
        root.mkdir()
        file = IndexFile("index/one", rules, DerivedFiles(root), kernels)
        records = np.array([0, 132, 264]), np.array([FIRST_TIME, FIRST_TIME + 1876, FIRST_TIME + 2000])
        assert file.put(np.array(keys, np.int32), np.arange(3, dtype=np.int32), *records) == 3
        file.close()
        assert files_of(root) == {"index/0": wanted}


@pytest.mark.parametrize("kernels", kernel_modules())
def test_a_file_needs_only_the_end_of_the_one_before(kernels: Any, tmp_path: Path) -> None:
    """Files of one index, each built alone, are those that are built one after the other."""
    rules = FileRules(hash_slots=SLOTS, index_items=ITEMS)
    hashes = np.arange(12, dtype=np.int32) * 3
    owners = np.arange(12, dtype=np.int32) // 2
    offsets, times = np.arange(6) * 100, FIRST_TIME + np.arange(6) * 1500
    for name in ("whole", "alone"):
        (tmp_path / name).mkdir()
    index = IndexFiles(rules, DerivedFiles(tmp_path / "whole"), kernels, IndexNames().next_name)
    index.put(hashes, owners, offsets, times)
    index.close()
    alone = DerivedFiles(tmp_path / "alone")
    for number, start in enumerate(range(0, 12, ITEMS - 1)):
        before = owners[start - 1]
        after = FileEnd(int(times[before]), int(offsets[before])) if start else FileEnd()
        file = IndexFile(f"index/{number}", rules, alone, kernels, after)
        part = slice(start, start + ITEMS - 1)
        assert file.put(hashes[part], owners[part], offsets, times) == len(hashes[part])
        file.close()
    assert files_of(tmp_path / "alone") == files_of(tmp_path / "whole")


def test_names_are_store_times_that_rise() -> None:
    names = IndexNames(zone=ZoneInfo("Asia/Shanghai"))
    assert names.next_name(FIRST_TIME) == "20231115061320123"
    assert names.next_name(FIRST_TIME) == "20231115061320124"
    assert names.next_name(FIRST_TIME - 10**9) == "20231115061320125"
    assert names.next_name(FIRST_TIME + 879) == "20231115061321002"


def test_names_rise_from_any_time_and_any_name() -> None:
    names = IndexNames(["12", "99991231235959999"], ZoneInfo("UTC"))
    taken = [names.next_name(time) for time in (0, 0, 2**62, -(2**62), 5)]
    assert taken == sorted(set(taken))
    assert IndexNames(zone=ZoneInfo("UTC")).next_name(2**62) == "99990101000000000"


def test_names_that_are_there_come_first() -> None:
    names = IndexNames(["20200101000000000", "29991231235959999"], ZoneInfo("UTC"))
    taken = [names.next_name(FIRST_TIME) for _ in range(3)]
    assert taken == ["20200101000000000", "29991231235959999", "30000101000000000"]


def test_files_of_few_keys_cost_their_keys(tmp_path: Path) -> None:
    """Not their slots, of which a setting may ask for fifty million in a file of one key."""
    rules = FileRules(hash_slots=50_000_000, index_items=2)
    index = IndexFiles(rules, DerivedFiles(tmp_path), kernel_modules()[-1], IndexNames().next_name)
    hashes = np.arange(100, dtype=np.int32)
    index.put(hashes, hashes, np.arange(1, 101) * 100, FIRST_TIME + np.arange(100))
    index.close()
    assert len(index.paths) == 100
    used = sum(one.stat().st_blocks * 512 for one in tmp_path.rglob("*") if one.is_file())
    assert used < 100 * (1 << 18)
