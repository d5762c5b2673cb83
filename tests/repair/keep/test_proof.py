"""Whose position a lost record had: files under the name of a queue prove nothing, their neighbours do."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from fixtures import copy_base, strict
from fixtures.stores import HandmadeStore
from formats.commitlog import encode_message
from rmqtool.check.findings import Severity
from rmqtool.check.verify import ReadOptions, Verification
from rmqtool.cli.main import run
from rmqtool.repair.keep.torn import with_whole_properties
from rmqtool.scan.torn import is_torn
from rmqtool.store.layout import Store
from tests.helpers import rmq
from tests.repair.keep.laws import problems, repair
from tests.repair.keep.seven import BASE, RELEASE, SEGMENT, SETTINGS, repaired

if TYPE_CHECKING:
    from pathlib import Path


def overwritten(root: Path, start: int, data: bytes) -> None:
    path = root / f"commitlog/{start // SEGMENT * SEGMENT:020d}"
    raw = bytearray(path.read_bytes())
    raw[start % SEGMENT : start % SEGMENT + len(data)] = data
    path.write_bytes(raw)


@pytest.mark.share
@pytest.mark.parametrize(
    ("original", "copy"),
    [
        ("OrderTopic/0", "AOrderTopic/0"),
        ("OrderTopic/1", "OrderTopic/9"),
        ("PayTopic/2", "PayTopic/02"),
        ("PayTopic/0", "PayTopic/-1"),
        ("PayTopic/3", "PayTopic/0 copy"),
    ],
)
def test_a_backup_of_a_queue_claims_nothing(base: Path, tmp_path: Path, original: str, copy: str) -> None:
    overwritten(base, 70_000, bytes(20_000))
    queues = base / "consumequeue"
    shutil.copytree(queues / original, queues / copy)
    assert repaired(base, tmp_path) == []


@pytest.mark.parametrize("exchanged", [False, True])
def test_files_of_another_queue_claim_nothing(base: Path, tmp_path: Path, exchanged: bool) -> None:
    """Both queues lost records in the same place."""
    overwritten(base, 4 * SEGMENT, bytes(SEGMENT))
    one, other = base / "consumequeue/PayTopic/0", base / "consumequeue/PayTopic/2"
    own = shutil.copytree(other, tmp_path / "own")
    shutil.rmtree(other)
    shutil.copytree(one, other)
    if exchanged:
        shutil.rmtree(one)
        shutil.copytree(own, one)
    assert repaired(base, tmp_path) == []


def test_a_queue_that_lost_a_unit_claims_no_neighbour(base: Path, tmp_path: Path) -> None:
    """All later units are one slot too low."""
    overwritten(base, 200_000, bytes(9_000))
    path = base / "consumequeue/OrderTopic/0/00000000000000000000"
    data = path.read_bytes()
    path.write_bytes(data[:200] + data[220:] + bytes(20))
    assert repaired(base, tmp_path) == []


def test_the_first_record_of_a_run_is_lost_as_a_whole(base: Path, tmp_path: Path) -> None:
    """Its queue number makes it the first of a long run of another queue, to which it does not belong."""
    found = {at: one for at, one in strict.carve(base).items() if one.placed}
    key, following = ("OrderTopic", 0), None
    for _, one in sorted(found.items(), reverse=True):
        if following is not None and one.slot[:2] == ("OrderTopic", 1):
            break
        following = one if one.slot[:2] == key else following
    assert following is not None
    victim, number = one.offset, following.queue_offset - 1
    overwritten(base, victim + 12, key[1].to_bytes(4, "big") + bytes(4) + number.to_bytes(8, "big"))
    must = {at: one for at, one in found.items() if at != victim}
    repair(base, RELEASE, tmp_path / "repaired", SETTINGS)
    assert problems(tmp_path / "repaired", must, RELEASE, SETTINGS) == []


@pytest.mark.parametrize(
    ("raw", "torn"),
    [
        (b"KEYS\x01a\x02TAGS\x01b\x02", False),
        (b"KEYS\x01a\0b\x02", False),
        (b"KEYS\x01a\0\x02", True),
        (b"KEYS\x01a" + bytes(9) + b"b\x02", True),
        (b"KE\0S\x01a\x02", True),
        (b"KEYS\x01a\0\0\0\0S\x01b\x02", True),
        (bytes(30), True),
    ],
)
@pytest.mark.parametrize("trailer", [False, True])
def test_what_is_left_of_torn_properties(raw: bytes, torn: bool, trailer: bool) -> None:
    whole = b"W\x01whole\x02"
    assert is_torn(whole + raw) is torn
    record = encode_message("T", b"body", whole + raw, physical_offset=7, crc_trailer=trailer)
    made = with_whole_properties(record, trailer=trailer)
    assert (made is not None) is torn
    if made is None:
        return
    was, now = strict.parse(record, 0, 7), strict.parse(made, 0, 7)
    assert was is not None
    assert now is not None
    assert (now.size, now.slot, now.body) == (was.size, was.slot, was.body)
    assert now.properties["W"] == "whole"
    assert ("__CRC32#" in now.properties) is trailer
    assert b"\0" not in now.raw[-len(raw) :]


@pytest.mark.parametrize("with_queues", [True, False])
def test_a_message_with_zeros_for_properties_stays(base: Path, tmp_path: Path, with_queues: bool) -> None:
    found = sorted(strict.carve(base).items())
    for at, one in found[100:104]:
        start = min(one.raw.index(name.encode() + b"\x01") for name in one.properties)
        overwritten(base, at + start, bytes(one.size - start))
    if not with_queues:
        shutil.rmtree(base / "consumequeue")
    must = {at: one for at, one in strict.carve(base).items() if one.placed}
    repair(base, RELEASE, tmp_path / "repaired", SETTINGS)
    now = strict.walk(tmp_path / "repaired")[0]
    assert [now[at].body for at, _ in found[100:104]] == [one.body for _, one in found[100:104]]
    assert problems(tmp_path / "repaired", must, RELEASE, SETTINGS) == []
    repaired = Store.open(tmp_path / "repaired")
    findings = Verification(repaired, ReadOptions.of(repaired)).findings()
    assert [one.code for one in findings if one.severity is Severity.ERROR] == []


def test_a_copied_segment_and_a_foreign_queue(base: Path, tmp_path: Path) -> None:
    """The copy is full of headers of another place, and no unit says where one queue's records were."""
    log, queues = base / "commitlog", base / "consumequeue"
    shutil.copyfile(log / f"{SEGMENT:020d}", log / f"{3 * SEGMENT:020d}")
    shutil.rmtree(queues / "OrderTopic/0")
    shutil.copytree(queues / "PayTopic/2", queues / "OrderTopic/0")
    assert repaired(base, tmp_path) == []


def test_units_that_lost_one_of_them_inside_of_a_hole(base: Path, tmp_path: Path) -> None:
    path = base / f"commitlog/{3 * SEGMENT:020d}"
    path.write_bytes(path.read_bytes()[:9000].ljust(SEGMENT, b"\0"))
    queue = base / "consumequeue/OrderTopic/0/00000000000000004000"
    data = queue.read_bytes()
    lost = {one.slot for at, one in strict.carve(copy_base(BASE, tmp_path / "was")).items()} - {
        one.slot for one in strict.carve(base).values()
    }
    slots = sorted(slot for topic, number, slot in lost if (topic, number) == ("OrderTopic", 0))
    at = (slots[len(slots) // 2] - 200) * 20
    queue.write_bytes(data[:at] + data[at + 20 :] + bytes(20))
    assert repaired(base, tmp_path) == []


def test_of_two_records_at_one_queue_offset_the_one_that_lies_goes(base: Path, tmp_path: Path) -> None:
    """Its true queue misses that queue offset just there, and so does not miss the other one."""
    found = {at: one for at, one in strict.carve(base).items() if one.placed}
    places = {one.slot: at for at, one in found.items()}
    victims = []
    for number in range(3, 100):
        around = [places.get(("PayTopic", 0, slot)) for slot in (number - 1, number, number + 1)]
        at = places.get(("PayTopic", 1, number))
        if at is not None and None not in around and around[0] < at < around[2]:  # type: ignore[operator]
            victims.append(at)
    for victim in victims[:1]:
        overwritten(base, victim + 12, (0).to_bytes(4, "big"))
    must = {at: one for at, one in found.items() if at not in victims[:1]}
    repair(base, RELEASE, tmp_path / "repaired", SETTINGS)
    assert problems(tmp_path / "repaired", must, RELEASE, SETTINGS) == []


def test_the_check_of_a_plan_takes_torn_properties_for_no_message_lost(base: Path, tmp_path: Path) -> None:
    at, one = sorted(strict.carve(base).items())[100]
    start = min(one.raw.index(name.encode() + b"\x01") for name in one.properties)
    overwritten(base, at + start, bytes(one.size - start))
    conf = tmp_path / "broker.conf"
    conf.write_text("".join(f"{name}={value}\n" for name, value in SETTINGS.items()))
    target = tmp_path / "repaired"
    command = ["recover", str(base), "--store-config", str(conf), "--output", str(target), "--apply"]
    assert run(command) == 0
    assert run(["verify", str(target), "--store-config", str(conf)]) == 0


def test_records_in_order_vouch_for_each_other(tmp_path: Path) -> None:
    """No file of their queue is left, and their queue offsets leave gaps: a plan that counts them is none."""
    store = HandmadeStore()
    for number in range(6):
        store.put("Orders", b"body %d" % number)
        store.log.queue_offsets["Orders", 0] += 5
    store.write(tmp_path / "store")
    shutil.rmtree(store.root / "consumequeue")
    before = strict.carve(store.root)
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--json")
    after = strict.carve(tmp_path / "out") if (tmp_path / "out").exists() else before
    assert {at: one.raw for at, one in after.items()} == {at: one.raw for at, one in before.items()}
    assert done.exit_code == 1
