"""Found once by the generator, as smallest stores: verdicts of `doctor` and `verify`."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest

from fixtures import strict
from fixtures.compound import Compound
from fixtures.goldens import open_golden
from fixtures.handmade import plain_unit
from fixtures.stores import ROLLBACK, HandmadeStore
from formats.commitlog import BLANK_MAGIC_CODE
from tests.helpers import rmq
from tests.laws.stores import orders
from tests.laws.truth import kept

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
def test_a_start_that_cuts_a_light_queue_gives_its_offsets_again(tmp_path: Path, release: str) -> None:
    """Only records say how far it reached: none of them has its queue offset as its own."""
    golden = open_golden("v498-lmq", tmp_path)
    ask = (golden.path, "--json", "--as-version", release, "--store-config", golden.config_path)
    assert '"verdict":"safe"' in rmq("doctor", *ask).stdout
    queue = sorted((golden.path / "consumequeue/%LMQ%alpha/0").iterdir())
    assert len(queue) > 1
    with queue[0].open("r+b") as file:
        file.write(b"\xff" * 20)
    reported = rmq("doctor", *ask)
    assert '"verdict":"unsafe"' in reported.stdout
    assert "DR-OFFSETS-TWICE" in reported.stdout


def test_a_log_that_ends_in_a_record_without_a_unit_misses_none(tmp_path: Path) -> None:
    """Since 5.3.2 the record at which the queues end is passed over; a rolled back one needs no unit."""
    store = HandmadeStore()
    for number in range(20):
        store.put("Orders", b"body %d" % number)
    store.put("Orders", b"rolled back", sys_flag=ROLLBACK, queue_offset=0)
    store.write(tmp_path / "store")
    reported = rmq("doctor", store.root, "--json", "--as-version", "5.3.3")
    assert reported.exit_code == 0
    assert '"verdict":"safe"' in reported.stdout


@pytest.mark.parametrize("text", [b"null", b"[]"])
def test_what_no_broker_writes_is_no_empty_table(text: bytes, tmp_path: Path) -> None:
    store = orders(tmp_path / "store")
    store.add("config/consumerOffset.json", text)
    for release in ("4.9.8", "5.3.3"):
        reported = rmq("doctor", store.root, "--json", "--as-version", release)
        assert reported.exit_code == 1
        assert '"safe_to_start":false' in reported.stdout
    store.add("config/consumerOffset.json", b"{}")
    assert rmq("doctor", store.root, "--as-version", "4.9.8").exit_code == 0


def test_a_file_in_the_place_of_a_topic_that_only_the_log_knows(tmp_path: Path) -> None:
    """`doctor` predicts lost queues there, so `verify` must not take it for any foreign file."""
    store = orders(tmp_path / "store")
    shutil.rmtree(store.root / "consumequeue/Orders")
    (store.root / "consumequeue/Orders").write_bytes(b"x")
    for path in (store.root / "config").glob("topics.json*"):
        path.unlink()
    assert rmq("doctor", store.root).exit_code == 1
    found = rmq("verify", store.root, "--format", "ndjson")
    assert found.exit_code == 1
    assert [one["path"] for one in found.rows if one.get("code") == "DIR-BLOCKED"] == ["consumequeue/Orders"]


def test_a_record_whose_topic_is_no_utf8_is_counted_once(tmp_path: Path) -> None:
    """It is damaged, and the entry of its queue leads to a record of another topic: one message."""
    store = orders(tmp_path / "store")
    path, at = store.segment(store.stored[5].offset)
    record = store.read(path, at, store.stored[5].size)
    store.patch(path, at + record.index(b"Orders"), b"\xff\xfe")
    for release in ("4.9.8", "5.3.3"):
        reported = json.loads(rmq("doctor", store.root, "--json", "--as-version", release).stdout)
        assert reported["already_damaged"]["messages"] == 1


@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
def test_messages_of_a_light_queue_behind_units_of_another_queue_are_counted(
    tmp_path: Path, release: str
) -> None:
    """Nothing builds their units, and no record tells how far such a queue reached."""
    golden = open_golden("v533-lmq", tmp_path)
    queues = golden.path / "consumequeue"
    other = max((queues / "TopicLmq/0").iterdir())
    (mine,) = (queues / "%LMQ%beta/0").iterdir()
    count = sum(one[0] == "consumequeue" and one[1] == "%LMQ%beta" for one in strict.entries(golden.path))
    shutil.copyfile(other, mine)
    ask = ("--json", "--as-version", release, "--store-config", golden.config_path)
    reported = json.loads(rmq("doctor", golden.path, *ask).stdout)
    assert reported["verdict"] == "damaged"
    assert reported["already_damaged"]["messages"] == count


@pytest.mark.parametrize("expired", [False, True])
@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
def test_a_queue_file_that_does_not_reach_its_first_entry(
    tmp_path: Path, release: str, expired: bool
) -> None:
    """Seeds 10630, 10807: a broker looks for an entry where the file's name says, and finds none."""
    store = orders(tmp_path / "store")
    if expired:
        store.remove(f"commitlog/{0:020d}")
    path = store.root / "consumequeue/Orders/0"
    (path / f"{0:020d}").rename(path / f"{1:020d}")
    reported = json.loads(rmq("doctor", store.root, "--json", "--as-version", release).stdout)
    assert reported["verdict"] == "damaged"
    assert reported["already_damaged"]["messages"] == 1


def test_a_queue_file_whose_name_is_a_little_too_low_serves_what_it_did(tmp_path: Path) -> None:
    """42375: the laws' own reader moved its units by one, which the real stores do not."""
    store = orders(tmp_path / "store")
    before = strict.entries(store.root)
    path = store.root / "consumequeue/Orders/0/00000000000000000400"
    path.rename(path.with_name("00000000000000000399"))
    assert strict.entries(store.root) == before
    reported = json.loads(rmq("doctor", store.root, "--json").stdout)
    assert reported["already_damaged"]["messages"] == 0


def test_a_message_whose_slot_a_zero_entry_takes_is_never_built(tmp_path: Path) -> None:
    """14531: 4.9.8 takes the first zero entry of an empty last file for a message."""
    store = HandmadeStore()
    last = store.put("Orders", b"body")
    while last.queue_offset == 0 or store.queues["Orders", 0].place(last.queue_offset)[1]:
        last = store.put("Orders", b"body")
    store.put("Payments", b"body")
    store.write(tmp_path / "store")
    path = store.queues["Orders", 0].place(last.queue_offset)[0]
    store.patch(path, 0, bytes(len(store.read(path))))
    (store.root / "abort").unlink(missing_ok=True)
    reported = json.loads(rmq("doctor", store.root, "--json", "--as-version", "4.9.8").stdout)
    codes = {one["code"] for one in reported["consequences"]}
    assert "DR-PHANTOM-UNIT" in codes
    assert "DR-NOT-REBUILT" in codes
    assert reported["verdict"] == "unsafe"


@pytest.mark.parametrize("cut", [4096, 8192])
def test_an_end_that_only_the_index_knows_in_front_of_stale_records_or_of_none(
    cut: int, tmp_path: Path
) -> None:
    """17663, 20015: nobody but the index tells of messages behind the end that a start gives the log."""
    store = HandmadeStore()
    for number in range(60):
        store.put("Orders", b"body %d" % number * 4, keys=f"k{number}")
    store.write(tmp_path / "store")
    behind = [one for one in store.stored if one.offset >= cut]
    for one in behind:
        store.patch(*(one.unit or ("", 0)), bytes(20))
    for path in sorted((store.root / "commitlog").iterdir()):
        if int(path.name) < cut and cut == 8192:  # as retention leaves it
            path.unlink()
        elif int(path.name) >= cut and cut == 8192:
            path.write_bytes(bytes(4096))
        elif int(path.name) == cut:
            raw = store.read("commitlog/00000000000000000000")
            path.write_bytes(bytes(1024) + raw[1024:])
        elif int(path.name) > cut:
            path.unlink()
    (store.root / "abort").write_bytes(b"")
    for release in ("4.9.8", "5.3.3"):
        reported = rmq("doctor", store.root, "--json", "--as-version", release)
        assert reported.exit_code == 1
        assert "DR-END-LOST" in reported.stdout


@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
def test_entries_of_a_light_queue_that_go_with_its_recovery_are_a_loss(tmp_path: Path, release: str) -> None:
    """17373: in front of them lies a copy of their file, so that the start sees no more than that."""
    golden = open_golden("v533-lmq", tmp_path)
    light = golden.path / "consumequeue/%LMQ%alpha/0"
    shutil.copyfile(max(light.iterdir()), min(light.iterdir()))
    conf = ("--store-config", golden.config_path)
    reported = json.loads(rmq("doctor", golden.path, "--json", "--as-version", release, *conf).stdout)
    assert reported["safe_to_start"] is False
    assert "DR-OFFSETS-TWICE" in {one["code"] for one in reported["consequences"]}


def test_an_entry_behind_the_log_in_front_of_others_cuts_them_off_with_the_next_start(tmp_path: Path) -> None:
    """17588: a start that dispatches something looks for none; the next one, after a clean stop, does."""
    store = HandmadeStore()
    for number in range(16):
        store.put("Orders", b"body %d" % number)
    store.put("Late", b"which 4.9.8 dispatches behind")
    store.write(tmp_path / "store")
    units = [one.unit or ("", 0) for one in store.of("Orders")]
    for unit in (*units[12:], store.stored[-1].unit or ("", 0)):
        store.patch(*unit, bytes(20))
    store.patch(*units[5], (1 << 40).to_bytes(8, "big"))
    (store.root / "abort").write_bytes(b"")
    for release in ("4.9.8", "5.3.3"):
        reported = json.loads(rmq("doctor", store.root, "--json", "--as-version", release).stdout)
        assert reported["safe_to_start"] is False
        (cut,) = [one for one in reported["consequences"] if one["code"] == "DR-QUEUE-CUT"]
        assert (cut["count"], cut["before"], cut["end"]) == (11, 16, 5)


@pytest.mark.parametrize("less", [0, 8])
def test_a_filler_over_undispatched_records(tmp_path: Path, less: int) -> None:
    """41940: one that is 8 bytes too short, or that lies on the last record, hid them from `doctor`."""
    store = HandmadeStore()
    for number in range(30):
        store.put("Orders", b"body %d" % number)
    store.write(tmp_path / "store")
    place = store.stored[-4 if less else -1]
    path, position = store.segment(place.offset)
    rest = len(store.read(path)) - position
    blank = BLANK_MAGIC_CODE.to_bytes(4, "big", signed=True)
    store.patch(path, position, (rest - less).to_bytes(4, "big") + blank)
    for one in store.stored[-4:]:
        store.patch(*(one.unit or ("", 0)), bytes(20))
    (store.root / "abort").write_bytes(b"")
    for release in ("4.9.8", "5.3.3"):
        assert rmq("doctor", store.root, "--as-version", release).exit_code == 1


@pytest.mark.parametrize(
    ("noise", "counted"),
    [
        (plain_unit(-602196180742341134, -115875126, 1), 0),  # recovery of the queue ends in front of it
        (plain_unit(-1, 115, 1), 0),
        (plain_unit(1 << 40, 115, 1), 3),  # taken for an entry behind the end of the log, and what it hides
    ],
    ids=["negative", "negative-offset", "behind-the-log"],
)
def test_what_dispatching_writes_over_is_no_entry(noise: bytes, counted: int, tmp_path: Path) -> None:
    """82253: noise where a start appends units counted as messages that nobody is given."""
    store = HandmadeStore()
    for number in range(20):
        store.put("Orders", b"body %d" % number)
    store.write(tmp_path / "pristine")
    store.write(tmp_path / "store")
    path = "consumequeue/Orders/0/00000000000000000000"
    store.patch(path, 17 * 20, noise * 5)
    whole = strict.carve(store.root)
    conf = tmp_path / "broker.conf"
    made = Compound(0, "", store.root, tmp_path / "pristine", "4.9.8", {}, conf, (), (), whole, whole)
    assert len(kept(store.root, made, dispatched=False)) == counted
    assert len(kept(store.root, made)) == 3
    reported = json.loads(rmq("doctor", store.root, "--json", "--as-version", "4.9.8").stdout)
    appended = sum(one["messages"] for one in reported["dispatch_lag"])
    assert (reported["already_damaged"]["messages"], appended) == (counted, 3 - counted)


def test_the_last_entry_of_a_queue_file_with_an_uneven_name(tmp_path: Path) -> None:
    """120501: it was taken for the one behind it, whose message no start of the light queue reaches."""
    golden = open_golden("v498-lmq", tmp_path)
    light = golden.path / "consumequeue/%LMQ%alpha/0"
    (light / f"{1000:020d}").rename(light / f"{999:020d}")
    done = rmq("doctor", golden.path, "--store-config", golden.config_path, "--json")
    assert done.exit_code == 1
    (queue,) = (one for one in json.loads(done.stdout)["queues"] if one["topic"] == "%LMQ%alpha")
    assert queue["repeated"] == 1


@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
def test_entries_in_front_of_a_zero_entry_that_is_taken_for_a_message_lead_to_lost_ones(
    release: str, tmp_path: Path
) -> None:
    """650010: they stay, as it ends truncation; the log is zeros, and doctor said that nothing is lost."""
    store = HandmadeStore()
    for _ in range(30):
        store.put("Orders", b"body" * 50)
    store.write(tmp_path / "store")
    expired, *segments = sorted({store.segment(one.offset)[0] for one in store.stored})
    begin = int(segments[0].rpartition("/")[2])
    path = store.queues["Orders", 0].place(29)[0]
    for zeros in (*segments, path):
        store.patch(zeros, 0, bytes(len(store.read(zeros))))
    store.remove(expired)
    lead = [
        one for one in store.stored if one.offset >= begin and one.unit is not None and one.unit[0] < path
    ]
    reported = json.loads(rmq("doctor", store.root, "--json", "--as-version", release).stdout)
    assert "DR-PHANTOM-UNIT" in {one["code"] for one in reported["consequences"]}
    assert reported["verdict"] == "damaged"
    assert reported["already_damaged"]["messages"] == len(lead) > 0
