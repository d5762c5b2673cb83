"""The end of a log: the last messages by Java's records, damage, leftovers, growth."""

from __future__ import annotations

import os
import time
from contextlib import nullcontext
from threading import current_thread, main_thread

import pytest

import fixtures
from fixtures.builder import HandmadeLog, damage_file, overwrite
from rmqtool.query import tail as module
from rmqtool.query.message_filter import MessageFilter
from rmqtool.query.tail import LogTail
from rmqtool.scan.log_end import end_of_data
from rmqtool.store.layout import Store
from tests.disks import replace
from tests.helpers import held

COLUMNS = ("physical_offset", "topic")


def last(root, count, wanted=None, **options):
    found = LogTail(Store.open(root), wanted or MessageFilter(), count, **options)
    given = [
        at
        for batch in found.batches(COLUMNS)
        if batch is not None
        for at in batch["physical_offset"].to_pylist()
    ]
    return given, found


CASES = [(name, 1 << 18) for name in fixtures.golden_names("api")]
CASES += [(name, 200) for name in ("v498-edge", "v533-batch", "v533-compressed")]


@pytest.mark.share
@pytest.mark.parametrize(("name", "chunk"), CASES)
def test_the_last_messages_are_those_of_java(golden, name, chunk):
    found = golden(name)
    wanted = sorted(one["physicalOffset"] for one in found.expected["records"])
    if "unclean" in name:  # records that Java dropped in recovery lie there, too
        wanted = last(found.path, 10**6)[0]
    for count in (0, 1, 7, len(wanted), 10**6):
        given, tail = last(found.path, count, first_chunk=chunk)
        assert given == wanted[max(len(wanted) - count, 0) :], count
        assert tail.summary()["complete"] is (count >= len(wanted))
        assert tail.damage == tail.torn == []


@pytest.mark.parametrize("chunk", [300, 1 << 18])
def test_filters_search_as_far_back_as_it_takes(golden, chunk):
    found = golden("v533-basic")
    topic = min(found.expected["records"], key=lambda one: one["physicalOffset"])["topic"]
    own = sorted(one["physicalOffset"] for one in found.expected["records"] if one["topic"] == topic)
    for count in (1, 5, len(own)):
        assert last(found.path, count, MessageFilter(topics=(topic,)), first_chunk=chunk)[0] == own[-count:]
    assert last(found.path, 3, MessageFilter(topics=("nowhere",)), first_chunk=chunk)[0] == []


def test_a_limit_ends_it(golden):
    found = golden("v533-basic")
    wanted = sorted(one["physicalOffset"] for one in found.expected["records"])
    given, tail = last(found.path, 20, MessageFilter(limit=4))
    assert given == wanted[-20:-16]
    assert {row["reason"] for row in tail.not_covered()} == {"limit"}
    assert last(found.path, 20, MessageFilter(limit=0))[0] == []


def handmade(root, count=60, **options):
    log = HandmadeLog(segment_size=8192, **options)
    for number in range(count):
        log.put("T", b"%d" % number * 20, {"KEYS": f"k{number}"})
    return log, log.write(root / "commitlog")


def test_holes_are_stepped_over(tmp_path):
    """Bodies of zeros in holes, and a TiB of nothing between two records: the same messages, few calls."""
    log = HandmadeLog(segment_size=1 << 18)
    for number in range(12):
        log.put("T", bytes(9000 + 4096 * (number % 3)), {"KEYS": f"k{number}"})
    (path,) = log.write(tmp_path / "commitlog")
    raw = path.read_bytes()
    with path.open("wb") as file:
        for at in range(0, len(raw), 4096):
            if any(page := raw[at : at + 4096]):
                file.seek(at)
                file.write(page)
        file.truncate(len(raw))
    wanted = [one.physical_offset for one in log.records]
    for count in range(13):
        assert last(tmp_path, count, first_chunk=300)[0] == wanted[12 - count :]
    os.truncate(path, 1 << 40)
    with path.open("r+b") as file:
        file.seek((1 << 40) - 777)
        file.write(b"\1" * 600)
    opened: list[str] = []
    real = os.open
    with pytest.MonkeyPatch.context() as patch:
        replace(patch, "open", lambda *given, **more: (opened.append(given[0]), real(*given, **more))[1])
        assert last(tmp_path, 5)[0] == wanted[-5:]
    assert len(opened) < 200


def test_damage_between_the_messages_is_said_and_damage_before_them_is_not(tmp_path):
    log, paths = handmade(tmp_path, 75)
    broken = log.records[-5].physical_offset
    damage_file(paths[-1], overwrite, broken - int(paths[-1].name), b"\xff" * 60)
    starts = [one.physical_offset for one in log.records]
    given, tail = last(tmp_path, 4)
    assert (given, tail.damage) == (starts[-4:], [])
    given, tail = last(tmp_path, 5)
    assert given == [starts[-6], *starts[-4:]]
    (row,) = tail.damage
    assert (row["physical_offset"], row["reason"]) == (broken, "damage")


def test_a_missing_segment_is_said(tmp_path):
    log, paths = handmade(tmp_path, 200)
    paths[-2].unlink()
    starts = [
        one.physical_offset
        for one in log.records
        if not int(paths[-2].name) <= one.physical_offset < int(paths[-1].name)
    ]
    given, tail = last(tmp_path, 10**6)
    assert given == starts
    assert [row["reason"] for row in tail.damage] == ["damage"]


def test_older_records_behind_the_end_are_not_the_last_ones(tmp_path):
    """A broker that was killed goes on in front of what it had written: the rest of it stays there."""
    size = 1 << 18
    old = HandmadeLog(segment_size=size)
    while old.end_offset < size - 4000:
        old.put("T", b"old" * 40, store_timestamp=1_600_000_000_000)
    new = HandmadeLog(segment_size=size)
    for _ in range(700):
        new.put("T", b"new" * 41, store_timestamp=1_700_000_000_000)
    data = bytearray(old.files()[0])
    data[: new.end_offset] = new.files()[0][: new.end_offset]
    path = tmp_path / "commitlog" / f"{0:020d}"
    path.parent.mkdir()
    path.write_bytes(data)
    assert end_of_data(Store.open(tmp_path).segments[0]) == new.end_offset
    given, _ = last(tmp_path, 3)
    assert given == [one.physical_offset for one in new.records[-3:]]


def test_zeros_between_the_data_do_not_hide_what_follows(tmp_path):
    size = 1 << 20
    log = HandmadeLog(segment_size=size)
    while log.end_offset < size // 2:
        log.put("T", b"x" * 400)
    (path,) = log.write(tmp_path / "commitlog")
    damage_file(path, overwrite, 65536, bytes(128 * 1024))
    given, _ = last(tmp_path, 2)
    assert given == [one.physical_offset for one in log.records[-2:]]


def asleep(monkeypatch, does):
    """What is done when the program under test sleeps; other threads of the process, Spark's, do sleep."""
    sleep = time.sleep

    def instead(seconds):
        return does(seconds) if current_thread() is main_thread() else sleep(seconds)

    monkeypatch.setattr(time, "sleep", instead)


def torn(root):
    """A log whose last record is only half there; its file, the whole content, the row that names it."""
    log, paths = handmade(root)
    path, one = paths[-1], log.records[-1]
    at = one.physical_offset - int(path.name)
    whole = path.read_bytes()
    damage_file(path, overwrite, at + len(one.data) // 2, bytes(len(one.data)))
    return log, path, whole


@pytest.mark.parametrize("count", [0, 1, 1000])
@pytest.mark.parametrize("live", [False, True])
def test_a_torn_record_at_the_end_is_damage(tmp_path, monkeypatch, count, live):
    """Also where a broker holds the store, if it still looks like that after a while."""
    log, path, _ = torn(tmp_path)
    waits = []
    asleep(monkeypatch, waits.append)
    with held(tmp_path) if live else nullcontext():
        given, tail = last(tmp_path, count)
    assert given == [one.physical_offset for one in log.records[:-1]][len(log.records) - 1 - count :][:count]
    (row,) = [row for row in tail.not_covered() if row["reason"] == "damage"]
    assert (row["path"], row["physical_offset"]) == (
        f"commitlog/{path.name}",
        log.records[-1].physical_offset,
    )
    assert tail.summary()["incomplete_reason"] == "damage"
    assert bool(waits) is live


def test_the_moving_end_is_read_again_first(tmp_path, monkeypatch):
    log, path, whole = torn(tmp_path)
    asleep(monkeypatch, lambda seconds: path.write_bytes(whole))
    with held(tmp_path):
        given, tail = last(tmp_path, 1000)
    assert given == [one.physical_offset for one in log.records]
    assert tail.summary()["complete"] is True


@pytest.mark.parametrize("more", [0, 1])
def test_a_record_that_reaches_over_the_end_while_it_is_written_is_no_damage(tmp_path, monkeypatch, more):
    """The file is zero behind its first page while the end is looked for; more: follow before it is whole."""
    log = HandmadeLog(segment_size=1 << 16)
    for body in (b"a" * 100, b"b" * 9000):
        log.put("T", body)
    (path,) = log.write(tmp_path / "commitlog")
    half = path.read_bytes()[:2000]
    for _ in range(more):
        log.put("T", b"c" * 100)
    whole = log.files()[0]
    path.write_bytes(half + bytes(len(whole) - len(half)))
    waits = []

    def sleep(seconds):
        waits.append(seconds)
        if len(waits) == 2:  # the first is that of the search for where to begin
            path.write_bytes(whole)

    asleep(monkeypatch, sleep)
    with held(tmp_path):
        given, tail = last(tmp_path, 1000)
    assert given == [log.records[0].physical_offset]
    assert tail.summary()["complete"] is True


def test_a_half_written_record_whose_segment_expires_is_no_damage(tmp_path, monkeypatch):
    """Beside a fast writer of small segments the last one is the first before it is looked at again."""
    log, path, _ = torn(tmp_path)
    waits = []

    def sleep(seconds):
        waits.append(seconds)
        if len(waits) == 2:
            path.unlink()

    asleep(monkeypatch, sleep)
    with held(tmp_path):
        given, tail = last(tmp_path, 1000)
    assert given == [one.physical_offset for one in log.records[:-1]]
    assert tail.summary()["complete"] is True


def test_who_follows_is_told_of_a_torn_end_once_he_leaves(tmp_path, monkeypatch):
    log, path, whole = torn(tmp_path)
    rows = []

    def sleep(seconds):
        if seconds == 7:  # not the patience with what looks bad
            rows.append([row["physical_offset"] for row in tail.torn])
            if len(rows) == 3:
                path.write_bytes(whole)

    monkeypatch.setattr(module, "POLL_SECONDS", 7)
    asleep(monkeypatch, sleep)
    tail = LogTail(Store.open(tmp_path), MessageFilter(), 2, follow=True)
    given = []
    for batch in tail.batches(COLUMNS):
        given += [] if batch is None else batch["physical_offset"].to_pylist()
        if len(given) == 3:
            break
    assert given == [one.physical_offset for one in log.records[-3:]]
    assert rows[0] == [log.records[-1].physical_offset]
    assert {row["reason"] for row in tail.not_covered()} <= {"limit"}


def test_empty_logs(tmp_path):
    (tmp_path / "commitlog").mkdir()
    assert last(tmp_path, 5)[0] == []
    (tmp_path / "commitlog" / f"{0:020d}").write_bytes(bytes(8192))
    given, tail = last(tmp_path, 5)
    assert (given, tail.summary()["complete"]) == ([], True)


def test_growth_is_followed_across_segments(tmp_path, monkeypatch):
    """Record by record, with pauses in front of each: a half written one is shown once it is whole."""
    log, _ = handmade(tmp_path, 10)
    directory = tmp_path / "commitlog"
    steps = []

    def sleep(seconds):
        if len(steps) % 2 == 0:
            log.put("T", b"more" * 30)
            files = log.files()
            base = max(files)
            whole = files[base]
            at = log.records[-1].physical_offset - base
            half = at + len(log.records[-1].data) // 2
            for other in sorted(files)[:-1]:
                (directory / f"{other:020d}").write_bytes(files[other])
            (directory / f"{base:020d}").write_bytes(whole[:half] + bytes(len(whole) - half))
        else:
            log.write(directory)
        steps.append(seconds)

    asleep(monkeypatch, sleep)
    given, tail = last(tmp_path, 2, MessageFilter(limit=150), follow=True)
    starts = [one.physical_offset for one in log.records]
    assert given == starts[8 : 8 + 150]
    assert len(log.segments) > 2
    assert tail.damage == tail.torn == []
