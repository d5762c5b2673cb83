"""Index files by themselves and against the keys of the records."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import fixtures
from fixtures import DamageCase, Golden
from formats.index import slot_position
from rmqtool.check.findings import Finding, Severity, finding
from rmqtool.check.index_stream import ascending
from rmqtool.check.ranges import Ranges
from rmqtool.scan import kernels_python
from rmqtool.store.config import StoreConfig
from tests.check.indexing import SLOTS, change, check_index, header_at, index_paths, item_at, item_of
from tests.scan.conftest import compiled_kernels
from tests.tiers import of_each_kind

Fresh = Callable[[str], Golden]

CASES = [one for one in fixtures.damage_cases() if one.cls == "index"]
ELSEWHERE = {"stray-name", "stray-numeric", "zero-length"}
"""found by name or size, see test_layout"""
BEHIND = {"all-deleted", "newest-deleted", "zero-length"}


def loud(found: list[Finding]) -> list[Finding]:
    return [one for one in found if one.severity is not Severity.NOTE]


@pytest.mark.share
@pytest.mark.parametrize("name", of_each_kind(fixtures.golden_names()))
def test_goldens_have_no_warning(name: str, golden: Callable[[str], Golden]) -> None:
    for root in golden(name).stores.values():
        found, check = check_index(root)
        assert loud(found) == []
        notes = {one.code for one in found}
        assert notes <= {"IDX-EMPTY"} | ({"IDX-BEHIND"} if "unclean" in name else set())
        wanted = sum(file["items"] for file in check.stats())
        if "dledger" not in name and "ha-late" not in name and "expired" not in name:
            assert check._matcher.matched == wanted


@pytest.mark.share
@pytest.mark.parametrize("batch_rows", [1, 7, 64])
@pytest.mark.parametrize("name", ["v498-basic", "v533-expired-head", "v533-unclean", "b497-unclean"])
def test_the_length_of_runs_does_not_matter(
    name: str, batch_rows: int, golden: Callable[[str], Golden]
) -> None:
    whole, _ = check_index(golden(name).path)
    parts, check = check_index(golden(name).path, batch_rows=batch_rows)
    assert parts == whole
    assert check._matcher.matched


def test_compiled_kernels_find_the_same(golden: Callable[[str], Golden], fresh_golden: Fresh) -> None:
    kernels = compiled_kernels()
    root = fresh_golden("v498-basic").path
    change(index_paths(root)[0], item_at(20), 77, 4)
    change(index_paths(root)[1], item_at(30, "time_diff"), 99, 4)
    one, check = check_index(root, kernels=kernels)
    other, twin = check_index(root, kernels=kernels_python)
    assert one == other
    assert check.stats() == twin.stats()
    assert {finding.code for finding in one} == {"IDX-HASH", "IDX-TIME"}


@pytest.mark.share
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_damage_is_found_at_its_place(case: DamageCase, damaged: Callable[[DamageCase], Path]) -> None:
    found, _ = check_index(damaged(case), StoreConfig.model_validate(case.settings))
    behind = case.mode != "c" and case.variant in BEHIND
    if case.variant in ELSEWHERE - BEHIND:
        assert loud(found) == []
        return
    assert behind or loud(found), "nothing found"
    for path, spots in case.damaged.items():
        if not path.startswith("index"):
            continue
        for spot in spots:
            if isinstance(spot, str):
                continue
            start, length = spot
            here = [
                one
                for one in loud(found)
                if one.path == path
                and (one.position or 0) < start + length
                and start < (one.position or 0) + (one.length or 1)
            ]
            assert here, f"{path} {spot} not found"
    strange = {one.path for one in loud(found)} - set(case.damaged) - {"index"}
    assert not strange


def test_untouched_bases_are_silent(damaged: Callable[[DamageCase], Path]) -> None:
    for case in fixtures.damage_cases():
        if case.cls == "none":
            found, _ = check_index(damaged(case), StoreConfig.model_validate(case.settings))
            assert loud(found) == []


def only(found: list[Finding]) -> Finding:
    assert len(found) == 1, found
    return found[0]


def place(one: Finding) -> tuple[str, int | None, int | None, str | None]:
    return one.code, one.position, one.length, one.part


def test_a_hash_of_a_record_without_keys_left_says_so() -> None:
    assert finding("IDX-HASH", found=7, expected=None).message.endswith("the record has none")


def test_a_wrong_hash_names_item_and_record(fresh_golden: Fresh) -> None:
    root = fresh_golden("v498-basic").path
    path = index_paths(root)[0]
    was = item_of(path, 40)
    change(path, item_at(40), was["key_hash"] ^ 5, 4)
    one = only(check_index(root)[0])
    assert place(one) == ("IDX-HASH", item_at(40), 20, "key_hash")
    assert (one.physical_offset, one.expected, one.found) == (
        was["physical_offset"],
        was["key_hash"],
        was["key_hash"] ^ 5,
    )


@pytest.mark.parametrize("value", [-1, 0, 1 << 60, 12345])
def test_a_wrong_offset_names_the_record_that_it_belongs_to(value: int, fresh_golden: Fresh) -> None:
    root = fresh_golden("v498-basic").path
    path = index_paths(root)[0]
    was = item_of(path, 40)
    change(path, item_at(40, "physical_offset"), value, 8)
    one = only(check_index(root)[0])
    assert place(one) == ("IDX-OFFSET", item_at(40), 20, "physical_offset")
    assert (one.expected, one.found) == (was["physical_offset"], value)


def test_a_wrong_time_is_found(fresh_golden: Fresh) -> None:
    root = fresh_golden("v533-basic").path
    path = index_paths(root)[0]
    was = item_of(path, 40)
    change(path, item_at(40, "time_diff"), was["time_diff"] + 1, 4)
    one = only(check_index(root)[0])
    assert place(one) == ("IDX-TIME", item_at(40), 20, "time_diff")
    assert (one.expected, one.found) == (was["time_diff"], was["time_diff"] + 1)


@pytest.mark.parametrize("length", [1, 2, 3, 5])
def test_cycles_of_any_length_are_found(length: int, fresh_golden: Fresh) -> None:
    root = fresh_golden("v498-basic").path
    path = index_paths(root)[0]
    number = next(n for n in range(399, 1, -1) if len(chain_of(path, n)) > length)
    chain = chain_of(path, number)
    change(path, item_at(chain[length - 1], "prev"), number, 4)
    one = only(check_index(root)[0])
    assert place(one) == ("IDX-CYCLE", item_at(chain[length - 1]), 20, "prev")
    assert (one.expected, one.found) == (chain[length], number)


def chain_of(path: Path, number: int) -> list[int]:
    chain = [number]
    while item_of(path, chain[-1])["prev"]:
        chain.append(item_of(path, chain[-1])["prev"])
    return chain


def test_a_prev_that_skips_items_is_found(fresh_golden: Fresh) -> None:
    root = fresh_golden("v498-basic").path
    path = index_paths(root)[0]
    number = next(n for n in range(300, 1, -1) if len(chain_of(path, n)) > 2)
    chain = chain_of(path, number)
    change(path, item_at(number, "prev"), chain[2], 4)
    one = only(check_index(root)[0])
    assert place(one) == ("IDX-CHAIN", item_at(number), 20, "prev")
    assert (one.expected, one.found) == (chain[1], chain[2])


@pytest.mark.parametrize("value", [0, -7, 1, 20_000_001])
def test_a_wrong_slot_is_found(value: int, fresh_golden: Fresh) -> None:
    root = fresh_golden("v498-basic").path
    path = index_paths(root)[0]
    raw = path.read_bytes()
    slot = next(
        n for n in range(SLOTS) if int.from_bytes(raw[slot_position(n) : slot_position(n) + 4], "big") > 1
    )
    was = int.from_bytes(raw[slot_position(slot) : slot_position(slot) + 4], "big")
    change(path, slot_position(slot), value, 4)
    one = only(check_index(root)[0])
    assert place(one) == ("IDX-SLOT", slot_position(slot), 4, f"slot {slot}")
    assert (one.expected, one.found) == (was, value)


@pytest.mark.share
@pytest.mark.parametrize(
    ("part", "value", "width", "code"),
    [
        ("begin_timestamp", 1_000, 8, "IDX-HEADER"),
        ("begin_timestamp", 0, 8, "IDX-HEADER"),
        ("end_timestamp", 5, 8, "IDX-HEADER"),
        ("begin_physical_offset", 17, 8, "IDX-HEADER"),
        ("end_physical_offset", 17, 8, "IDX-HEADER"),
        ("hash_slot_count", 0, 4, "IDX-HEADER"),
        ("hash_slot_count", 400, 4, "IDX-HEADER"),
        ("index_count", 5, 4, "IDX-COUNT"),
        ("index_count", -1, 4, "IDX-COUNT"),
        ("index_count", 400_000, 4, "IDX-COUNT"),
    ],
)
def test_every_field_of_the_header(part: str, value: int, width: int, code: str, fresh_golden: Fresh) -> None:
    root = fresh_golden("v533-basic").path
    path = index_paths(root)[0]
    change(path, header_at(part), value, width)
    found = [one for one in loud(check_index(root)[0]) if one.code in ("IDX-HEADER", "IDX-COUNT")]
    one = next(one for one in found if one.part == part)
    assert place(one) == (code, header_at(part), width, part)
    assert one.found == value


def test_a_million_items_that_lead_nowhere_are_one_finding(fresh_golden: Fresh) -> None:
    root = fresh_golden("v498-basic").path
    segment = sorted((root / "commitlog").iterdir())[1]
    raw = bytearray(segment.read_bytes())
    raw[4096:8192] = b"\x55" * 4096
    segment.write_bytes(raw)
    found, _ = check_index(root)
    assert {one.code for one in found} == {"IDX-DANGLING"}
    assert {one.caused_by for one in found} == {"CL-MAGIC"}
    assert len(found) == 1


def test_missing_files_are_missing_keys(fresh_golden: Fresh) -> None:
    root = fresh_golden("v498-basic").path
    paths = index_paths(root)
    first, last = item_of(paths[1], 1), item_of(paths[1], 399)
    paths[1].unlink()
    one = only(check_index(root)[0])
    assert (one.code, one.severity) == ("IDX-MISSING", Severity.WARNING)
    assert one.physical_offset is not None
    assert one.length is not None
    assert one.physical_offset <= first["physical_offset"]
    assert one.physical_offset + one.length > last["physical_offset"]


def test_a_lost_tail_is_a_note_under_abort(fresh_golden: Fresh) -> None:
    root = fresh_golden("v498-basic").path
    index_paths(root)[-1].unlink()
    assert [(one.code, one.severity) for one in check_index(root)[0]] == [("IDX-BEHIND", Severity.WARNING)]
    (root / "abort").touch()
    assert [(one.code, one.severity) for one in check_index(root)[0]] == [("IDX-BEHIND", Severity.NOTE)]


def test_no_index_at_all(fresh_golden: Fresh) -> None:
    root = fresh_golden("v533-basic").path
    shutil.rmtree(root / "index")
    assert [(one.code, one.severity) for one in check_index(root)[0]] == [("IDX-ABSENT", Severity.WARNING)]
    switched_off = StoreConfig.model_validate({"messageIndexEnable": "false"})
    assert check_index(root, switched_off)[0] == []


def test_an_index_that_is_ahead_of_the_log(fresh_golden: Fresh) -> None:
    root = fresh_golden("v498-basic").path
    max((root / "commitlog").iterdir()).unlink()
    found, _ = check_index(root)
    assert {one.code for one in found} == {"IDX-AHEAD", "IDX-BEYOND-LOG"}
    assert all(one.severity is Severity.WARNING for one in found)


def test_facts_about_chains(golden: Callable[[str], Golden]) -> None:
    _, check = check_index(golden("v498-basic").path)
    facts = check.stats()[0]
    path = index_paths(golden("v498-basic").path)[0]
    hashes = [item_of(path, number)["key_hash"] for number in range(1, 400)]
    slots = np.bincount([value % SLOTS for value in hashes])
    assert facts["items"] == facts["capacity"] == 399
    assert facts["longest_chain"] == slots.max()
    assert facts["slots_used"] == np.count_nonzero(slots)
    assert facts["longest_same_hash"] == np.unique(hashes, return_counts=True)[1].max()


def test_only_the_files_without_a_log(fresh_golden: Fresh) -> None:
    from rmqtool.check.index import IndexCheck
    from rmqtool.store.layout import Store

    root = fresh_golden("v498-basic").path
    change(index_paths(root)[0], item_at(40, "prev"), 41, 4)
    check = IndexCheck(Store.open(root), kernels_python, "pread")
    assert [one.code for one in check.finish(None, Ranges())] == ["IDX-CYCLE"]


@pytest.mark.parametrize(
    ("offsets", "wrong"),
    [
        ([1, 2, 2, 3], []),
        ([1, 900, 2, 3], [1]),
        ([5, 6, 0, 7], [2]),
        ([5, 900, 901, 6, 7, 8], [1, 2]),
        ([-1, 4, 5], [0]),
    ],
)
def test_as_few_as_possible_are_astray(offsets: list[int], wrong: list[int]) -> None:
    out_of_order, order = ascending(np.array(offsets, np.int64))
    assert np.flatnonzero(out_of_order).tolist() == wrong
    assert (np.diff(order) >= 0).all()


@pytest.mark.share
@pytest.mark.parametrize("number", [1, 2, 3, 150, 398, 399])
@pytest.mark.parametrize("offset", [1, 1 << 40])
def test_an_item_at_the_border_of_a_run_is_judged_as_any_other(
    number: int, offset: int, fresh_golden: Fresh
) -> None:
    root = fresh_golden("v498-basic").path
    change(index_paths(root)[0], item_at(number, "physical_offset"), offset, 8)
    whole, small = (loud(check_index(root, batch_rows=rows)[0]) for rows in (16_384, 3))
    assert [place(one) for one in whole] == [place(one) for one in small]
    assert (item_at(number), 20) in {place(one)[1:3] for one in whole}


def test_a_flood_of_findings_is_counted(fresh_golden: Fresh, monkeypatch: pytest.MonkeyPatch) -> None:
    from rmqtool.check import finding_limits

    monkeypatch.setattr(finding_limits, "MOST", 3)
    root = fresh_golden("v498-basic").path
    path = index_paths(root)[0]
    for number in range(10, 30):
        change(path, item_at(number), 7, 4)
    found = loud(check_index(root)[0])
    more = [one for one in found if one.code == "IDX-MORE"]
    assert sum(one.code == "IDX-HASH" for one in found) == 3
    assert [(one.part, one.found) for one in more if one.part == "IDX-HASH"] == [("IDX-HASH", 17)]
