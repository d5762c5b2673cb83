"""Light queues of release 5, in which prepared records take an offset and get no unit."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from fixtures import strict
from fixtures.handmade import plain_unit
from fixtures.stores import PREPARED, HandmadeStore
from formats.tags_code import tags_hash
from tests.helpers import rmq

if TYPE_CHECKING:
    from pathlib import Path

A, B = "%LMQ%a", "%LMQ%b"
SETTINGS = {
    "mappedFileSizeCommitLog": 4096,
    "mappedFileSizeConsumeQueue": 400,
    "enableMultiDispatch": True,
    "enableLmq": True,
}


class LightStore(HandmadeStore):
    """Dispatches to light queues as 5.3.3 does: `LmqDispatch`, `ConsumeQueue#putMessagePositionInfo`."""

    def __init__(self) -> None:
        super().__init__()
        self.offsets: Counter[str] = Counter()
        self.units: Counter[str] = Counter()

    def start(self) -> None:
        """What a start does with the offsets: it counts the units."""
        self.offsets = Counter(self.units)

    def light(self, *names: str, sys_flag: int = 0) -> None:
        number = len(self.stored)
        stated = ",".join(str(self.offsets[name]) for name in names)
        properties = {"INNER_MULTI_DISPATCH": ",".join(names), "INNER_MULTI_QUEUE_OFFSET": stated}
        half = {"queue_offset": 0} if sys_flag == PREPARED else {}
        body = b"body %d" % number * 3
        one = self.put("Orders", body, tags="TagA", sys_flag=sys_flag, properties=properties, **half)
        for name in names:
            self.offsets[name] += 1
            if sys_flag != PREPARED:
                self._queue(name, 0).append(plain_unit(one.offset, one.size, tags_hash("TagA")))
                self.units[name] += 1


def written() -> LightStore:
    """Three lives with a prepared record in each of the first two."""
    store = LightStore()
    for life in range(3):
        for number in range(20):
            store.light(*((A, B) if number % 3 else (A,)))
            if number in (6, 13) and life < 2:
                store.light(A, B, sys_flag=PREPARED)
        store.start()
    return store


def recovered(store: HandmadeStore, place: Path) -> Path:
    """The repaired copy; it was proven, and nothing is left to repair."""
    conf = place / "broker.conf"
    conf.write_text("".join(f"{name}={str(value).lower()}\n" for name, value in SETTINGS.items()))
    given = ("--store-config", conf, "--json")
    reported = rmq("recover", store.root, "--output", place / "out", "--apply", *given)
    assert reported.exit_code == 0, reported.stderr
    assert json.loads(rmq("recover", place / "out", *given).stdout)["summary"]["changes"] == 0
    return place / "out"


def test_units_of_further_queues_say_where_records_were(tmp_path: Path) -> None:
    """Seed 10225: a range of the log is lost with its own units, and other queues have theirs."""
    store = LightStore()
    for number in range(60):
        if number % 3:
            store.put("Orders", b"x" * (number * 37 % 200), tags="TagA")
        else:
            store.light(*((A, B) if number % 2 else (A,)))
    store.write(tmp_path / "store")
    was = strict.entries(store.root)
    first, last = 20, 29
    for one in store.of("Orders")[first : last + 1]:
        store.patch(*store.segment(one.offset), bytes(one.size))
    store.patch(f"consumequeue/Orders/0/{400:020d}", (first - 20) * 20, bytes((last - first + 1) * 20))
    now = strict.entries(recovered(store, tmp_path))
    light = [
        {key: (one.offset, one.size) for key, one in units.items() if key[1] in (A, B)}
        for units in (was, now)
    ]
    assert light[1] == light[0]


def test_units_behind_the_end_of_the_log_go(tmp_path: Path) -> None:
    """Seed 10750: they lead to no message, also in files in front of which the range of them begins."""
    store = LightStore()
    for _ in range(45):
        store.light(A)
    store.write(tmp_path / "store")
    was = strict.entries(store.root)
    lost = store.stored[-8:]
    for one in lost:
        store.patch(*store.segment(one.offset), bytes(one.size))
    now = strict.entries(recovered(store, tmp_path))
    left = {key: one for key, one in was.items() if one.offset < lost[0].offset}
    assert [key for key in left if not left[key].same(now.get(key))] == []
    assert now.keys() == left.keys()


def test_records_whose_lists_differ_in_length_took_an_offset(tmp_path: Path) -> None:
    """60532: they are there, and a lost record of another queue was taken for the one that had it."""
    store = LightStore()
    for number in range(40):
        if number % 4:
            store.light(A)
        else:
            stated = {
                "INNER_MULTI_DISPATCH": f"{A},Plain",
                "INNER_MULTI_QUEUE_OFFSET": f"{store.offsets[A]},",
            }
            store.put("Orders", b"body", properties=stated)
            store.offsets[A] += 1
        if number % 8 == 4:
            store.put("Orders", b"of no further queue")
    store.write(tmp_path / "store")
    was = strict.entries(store.root)
    for one in store.stored:
        if one.placed.data.find(b"of no further queue") > 0:
            store.patch(*store.segment(one.offset), bytes(one.size))
    store.patch(f"consumequeue/{A}/0/{400:020d}", 0, bytes(200))
    now = strict.entries(recovered(store, tmp_path))
    assert [key for key, one in was.items() if key[1] == A and not one.same(now.get(key))] == []


def expire(store: HandmadeStore) -> int:
    """The first segment is gone, with a prepared record; where the log begins."""
    store.remove(f"commitlog/{0:020d}")
    return 4096


@pytest.mark.share
@pytest.mark.parametrize("expired", [False, True])
@pytest.mark.parametrize("damage", ["none", "record", "units", "end of the units", "plain queue"])
def test_units_stay_where_the_broker_counted_them(tmp_path: Path, damage: str, expired: bool) -> None:
    store = written().write(tmp_path / "store")
    was = strict.entries(store.root)
    begin = expire(store) if expired else 0
    lost = store.of("Orders")[40]
    if damage == "record":
        store.patch(*store.segment(lost.offset), bytes(lost.size))
    elif damage == "units":
        store.patch(f"consumequeue/{A}/0/{400:020d}", 100, bytes(200))
    elif damage == "end of the units":
        store.patch(f"consumequeue/{A}/0/{800:020d}", 100, bytes(300))
    elif damage == "plain queue":
        store.remove(f"consumequeue/Orders/0/{400:020d}")
    now = strict.entries(recovered(store, tmp_path))
    there = {key: one for key, one in was.items() if one.offset >= begin}
    assert {key: one.offset for key, one in now.items() if key in there} == {
        key: one.offset for key, one in there.items()
    }
    assert all(one.same(now[key]) for key, one in there.items() if one.offset != lost.offset)


def test_a_size_that_is_put_right_moves_no_entry(tmp_path: Path) -> None:
    """Law seed 49147: one flipped bit in an entry of a light queue, and the plan was refused."""
    store = written().write(tmp_path / "store")
    was = strict.entries(store.root)
    for slot in (2, 5):  # behind 3, records state more than their places
        store.patch(f"consumequeue/{B}/0/{0:020d}", slot * 20 + 9, b"\x01")
    assert strict.entries(recovered(store, tmp_path)) == was


def test_another_queue_s_file_says_nothing(tmp_path: Path) -> None:
    """Its units of records that feed both lie at the other queue's offsets."""
    store = written().write(tmp_path / "store")
    was = strict.entries(store.root)
    store.patch(f"consumequeue/{A}/0/{400:020d}", 0, store.read(f"consumequeue/{B}/0/{400:020d}"))
    now = strict.entries(recovered(store, tmp_path))
    assert now == was


@pytest.mark.parametrize("missing", [False, True])
def test_the_copy_of_a_file_that_is_lost_moves_no_entry(tmp_path: Path, missing: bool) -> None:
    """Law seed 280009: over the file in front, whose messages have expired; its entries say too much then."""
    store = LightStore()
    for _ in range(40):
        store.light(A)
    store.write(tmp_path / "store")
    kept, _ = store.segment(store.stored[37].offset)
    for segment in sorted((store.root / "commitlog").iterdir()):
        if segment.name < kept.rpartition("/")[2]:
            segment.unlink()
    there = {one.offset for one in store.stored if store.segment(one.offset)[0] >= kept}
    was = {key: one for key, one in strict.entries(store.root).items() if one.offset in there}
    front, behind = (f"consumequeue/{A}/0/{base:020d}" for base in (0, 400))
    store.patch(front, 0, store.read(behind))
    if missing:
        (store.root / behind).unlink()
    else:
        store.patch(behind, 0, bytes(400))
    now = strict.entries(recovered(store, tmp_path))
    assert {key: one for key, one in now.items() if one.offset in there} == was


def test_a_foreign_file_s_units_take_no_place(tmp_path: Path) -> None:
    """Law seed 40554: units of lost records in it filled what the queue missed; all behind them moved."""
    alone, lost = (0, 2, 4, 6, 11, 17), (2, 3, 5, 7, 9, 10, 14)
    store = LightStore()
    for number in range(19):
        if number in alone:
            store.put("Orders", b"body %d" % number * 3, tags="TagA")
        else:
            store.light(A)
    store.write(tmp_path / "store")
    was = strict.entries(store.root)
    name = f"{0:020d}"
    store.patch(f"consumequeue/{A}/0/{name}", 0, store.read(f"consumequeue/Orders/0/{name}"))
    for number in lost:
        path, position = store.segment(store.stored[number].offset)
        store.patch(path, store.read(path).index(b"body", position), b"dead")
    now = strict.entries(recovered(store, tmp_path))
    assert {key: one.offset for key, one in now.items()} == {key: one.offset for key, one in was.items()}


def test_blank_units_that_no_record_claims_stay(tmp_path: Path) -> None:
    """Seed 10985: a record whose torn properties were cut names light queues and no offsets in them."""
    store = LightStore()
    for number in range(30):
        if number == 12:
            store.put("Orders", b"body", properties={"INNER_MULTI_DISPATCH": A})
            store._queue(A, 0).append(plain_unit(0, 2**31 - 1, 0))
            store.offsets[A] += 1
        store.light(A)
    store.write(tmp_path / "store")
    store.patch(*store.segment(store.stored[-3].offset), bytes(8))
    was, now = strict.entries(store.root), strict.entries(recovered(store, tmp_path))
    gone = store.stored[-3].offset
    assert {key: one for key, one in was.items() if one.offset != gone}.items() <= now.items()


def test_units_of_spoiled_records_count_too(tmp_path: Path) -> None:
    """Law seed 11877: what they state moves on between two of them that have the same neighbours."""
    store = written().write(tmp_path / "store")
    was = strict.entries(store.root)
    for one in store.of("Orders")[2:38]:
        path, position = store.segment(one.offset)
        store.patch(path, store.read(path).index(b"body", position), b"dead")
    now = strict.entries(recovered(store, tmp_path))
    assert {key: one.offset for key, one in now.items()} == {key: one.offset for key, one in was.items()}


@pytest.mark.parametrize("left", [False, True])
def test_places_that_nothing_tells_are_said(tmp_path: Path, left: bool) -> None:
    """Law seed 12264: all units of a light queue are lost, and with them how many lost messages it had."""
    store = written().write(tmp_path / "store")
    for path in [] if left else list(store.files()):
        if path.startswith(f"consumequeue/{B}/"):
            store.patch(path, 0, bytes(len(store.read(path))))
    for one in store.of("Orders")[31:35]:
        store.patch(*store.segment(one.offset), bytes(one.size))
    conf = tmp_path / "broker.conf"
    conf.write_text("".join(f"{name}={str(value).lower()}\n" for name, value in SETTINGS.items()))
    given = ("--output", tmp_path / "out", "--store-config", conf, "--apply")
    reported = rmq("recover", store.root, *given, "--json")
    end = store.of("Orders")[34].offset
    carved = strict.carve(store.root).items()
    behind = [at for at, one in carved if at > end and B in one.properties.get("INNER_MULTI_DISPATCH", "")]
    row = {"topic": B, "queue_id": 0, "physical_offset": behind[0], "messages": len(behind)}
    assert json.loads(reported.stdout)["summary"]["unproven_offsets"] == ([] if left else [row])
    assert (tmp_path / "out").is_dir()
    assert reported.exit_code == (0 if left else 1)
    page = rmq("recover", store.root, "--store-config", conf).stdout
    assert (f"Queue offsets of {len(behind)} messages are not proven" in page) != left
    again = rmq("recover", tmp_path / "out", "--store-config", conf, "--json")
    assert (again.exit_code, json.loads(again.stdout)["summary"]["unproven_offsets"]) == (0, [])


@pytest.mark.share
@pytest.mark.parametrize(("release", "said"), [("5.3.3", True), ("4.9.8", False)])
@pytest.mark.parametrize("lost", ["entries", "directory"])
@pytest.mark.parametrize("damage", ["hole", "head"])
def test_places_that_no_record_contradicts_are_said(
    tmp_path: Path, damage: str, lost: str, release: str, said: bool
) -> None:
    """Law seed 48134: what ran ahead is lost, too, so no record that is left skips a queue offset."""
    store = LightStore()
    for number in range(60):
        store.light(A, sys_flag=PREPARED if number in (10, 11) else 0)
    store.write(tmp_path / "store")
    if damage == "hole":
        for one in store.stored[8:14]:
            store.patch(*store.segment(one.offset), bytes(one.size))
        first = store.stored[14]
    else:
        store.remove(f"commitlog/{0:020d}")
        first = next(one for one in store.stored if one.offset >= 4096)
    for path in [one for one in store.files() if one.startswith(f"consumequeue/{A}/")]:
        if lost == "entries":
            store.patch(path, 0, bytes(len(store.read(path))))
        else:
            store.remove(path)
    conf = tmp_path / "broker.conf"
    conf.write_text("".join(f"{name}={str(value).lower()}\n" for name, value in SETTINGS.items()))
    given = ("--as-version", release, "--store-config", conf, "--json")
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", *given)
    assert (tmp_path / "out").is_dir(), done.stderr
    named = [one["physical_offset"] for one in json.loads(done.stdout)["summary"]["unproven_offsets"]]
    assert (named, done.exit_code) == (([first.offset], 1) if said else ([], 0))


def test_a_light_queue_whose_directory_is_empty(tmp_path: Path) -> None:
    """Law seed 40776: nothing tells the places of its records, and planning ended with an internal error."""
    store = written().write(tmp_path / "store")
    for path in list(store.files()):
        if path.startswith(f"consumequeue/{B}/"):
            (store.root / path).unlink()
    store.patch(*store.segment(store.of("Orders")[20].offset), bytes(8))
    was = strict.walk(store.root)[0].keys()
    assert strict.walk(recovered(store, tmp_path))[0].keys() >= was


def test_an_end_of_which_records_ahead_of_their_entries_tell_nothing(tmp_path: Path) -> None:
    """Seed 42209: the log begins where every record states a queue offset behind the queue's end."""
    store = LightStore()
    for number in range(45):
        if number < 25:
            store.light(A, sys_flag=PREPARED)
        else:
            store.light(A)
    store.write(tmp_path / "store")
    for number in range(2):
        store.remove(f"commitlog/{number * 4096:020d}")
    conf = tmp_path / "broker.conf"
    conf.write_text("".join(f"{name}={str(value).lower()}\n" for name, value in SETTINGS.items()))
    for release in ("4.9.8", "5.3.3"):
        given = ("--json", "--as-version", release, "--store-config", conf)
        reported = json.loads(rmq("doctor", store.root, *given).stdout)
        assert "DR-OFFSETS-TWICE" not in {one["code"] for one in reported["consequences"]}
        assert reported["safe_to_start"], reported["consequences"]


def test_a_file_under_a_name_at_which_none_begins(tmp_path: Path) -> None:
    """Seed 46576: its entries stay where they are, and the plan was refused, as the file goes."""
    store = LightStore()
    store.light(A, sys_flag=PREPARED)
    for _ in range(15):
        store.light(A)
    store.write(tmp_path / "store")
    was = strict.entries(store.root)
    directory = store.root / "consumequeue" / A / "0"
    (directory / f"{0:020d}").rename(directory / f"{1:020d}")
    now = strict.entries(recovered(store, tmp_path))
    assert {key: (one.offset, one.size) for key, one in now.items() if key[1] == A} == {
        key: (one.offset, one.size) for key, one in was.items() if key[1] == A
    }


def test_nothing_tells_how_many_units_there_were_in_front_of_the_log(tmp_path: Path) -> None:
    """Seed 48240: the head expired, with messages of which no unit is left, and no unit leads here."""
    store = LightStore()
    for number in range(60):
        store.light(A, sys_flag=PREPARED if number in (3, 50) else 0)
    store.write(tmp_path / "store")
    begin = 2 * 4096
    for base in range(0, begin, 4096):
        store.remove(f"commitlog/{base:020d}")
    left = [one for one in store.stored if one.offset >= begin]
    first = left[0].queue_offset - 1  # place of its unit, as one record in front of it has none
    directory = store.root / "consumequeue" / A / "0"
    for path in sorted(directory.iterdir()):
        raw, slot = path.read_bytes(), int(path.name) // 20
        keep = max(first - 5 - slot, 0) * 20
        path.write_bytes(raw[:keep] + bytes(len(raw) - min(keep, len(raw))))
    conf = tmp_path / "broker.conf"
    conf.write_text("".join(f"{name}={str(value).lower()}\n" for name, value in SETTINGS.items()))
    given = ("--store-config", conf, "--json")
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", *given)
    named = json.loads(done.stdout)["summary"]["unproven_offsets"]
    assert [(one["topic"], one["physical_offset"]) for one in named] == [(A, left[0].offset)]
    assert done.exit_code == 1


def test_a_foreign_file_proves_no_place(tmp_path: Path) -> None:
    """440170: its entries have all records of the queue behind their places, which no broker writes."""
    store = LightStore()
    for number in range(80):
        if number % 2:
            store.light(*((A, B) if number % 3 else (A,)), sys_flag=0 if number % 7 else PREPARED)
        else:
            store.put("Orders", b"of no further queue", tags="TagA")
    store.write(tmp_path / "store")
    shutil.copytree(
        store.root / "consumequeue/Orders/0", store.root / f"consumequeue/{A}/0", dirs_exist_ok=True
    )
    for one in store.stored[31:48]:
        store.patch(*store.segment(one.offset), bytes(one.size))
    conf = tmp_path / "broker.conf"
    conf.write_text("".join(f"{name}={str(value).lower()}\n" for name, value in SETTINGS.items()))
    plan = json.loads(rmq("recover", store.root, "--store-config", conf, "--json").stdout)
    assert {one["topic"] for one in plan["summary"]["unproven_offsets"]} == {A}
