"""Expiry: what goes when, that queues and index follow, and that nobody is disturbed meanwhile."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from rmqtool import Message
from rmqtool.broker.disk import Room
from rmqtool.broker.expiry import expired_below, expired_segments, look
from rmqtool.errors import StoreClosedError, StoreIOError
from rmqtool.messagestore.messages import PutStatus
from rmqtool.messagestore.queue_reader import QueueReader
from rmqtool.store.config import config_of
from tests.disks import replace
from tests.helpers import rmq
from tests.messagestore.helpers import RELEASES, open_small, traffic

if TYPE_CHECKING:
    from pathlib import Path

DAY = 86_400


def age(root: Path, count: int, days: float = 4) -> list[str]:
    """Makes the oldest segments that old; all segments."""
    names = sorted(os.listdir(root / "commitlog"))
    then = time.time() - days * DAY
    for name in names[:count]:
        os.utime(root / "commitlog" / name, (then, then))
    return names


def used(percent: int) -> Any:
    return lambda _: Room(100, percent, 100 - percent)


@pytest.fixture(autouse=True)
def roomy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rmqtool.messagestore.expiry.room_of", used(10))


@pytest.mark.parametrize(
    ("percent", "hour", "config", "expected"),
    [
        (10, 3, {}, (False, False, False)),
        (10, 4, {}, (False, False, True)),
        (10, 22, {"deleteWhen": "04;22"}, (False, False, True)),
        (75, 3, {}, (False, False, False)),
        (76, 3, {}, (False, False, True)),
        (85, 3, {}, (False, False, True)),
        (86, 3, {}, (False, True, True)),
        (90, 3, {}, (False, True, True)),
        (91, 3, {}, (True, True, True)),
        (91, 3, {"cleanFileForciblyEnable": "false"}, (True, False, True)),
        (36, 3, {"diskSpaceWarningLevelRatio": "1", "diskSpaceCleanForciblyRatio": "1"}, (True, True, True)),
    ],
)
def test_what_a_look_decides(
    percent: int, hour: int, config: dict[str, str], expected: tuple[bool, bool, bool]
) -> None:
    found = look(config_of(dict(config)), percent, hour)
    assert (found.full, found.at_once, found.due) == expected
    assert look(config_of(dict(config)), percent, hour, manual=True).due


def test_the_oldest_go_up_to_the_first_that_stays() -> None:
    config, hour = config_of({"fileReservedTime": "2"}), 3_600_000
    assert expired_segments(config, [0, hour, 2 * hour, 0, 0], 3 * hour, at_once=False) == 2
    assert expired_segments(config, [3 * hour] * 5, 3 * hour, at_once=True) == 4
    assert expired_segments(config, [0] * 50, 3 * hour, at_once=False) == 10
    for most in ("0", "-1"):  # brokers look at it when one has gone
        none = config_of({"deleteFileBatchMax": most})
        assert expired_segments(none, [0] * 50, 3 * hour, at_once=True) == 1
    assert expired_segments(config, [], 0, at_once=True) == 0
    assert expired_below([1, 5, 3, 9], 4) == 1
    assert expired_below([1, 2, 3], 4) == 2


@pytest.mark.parametrize("release", RELEASES)
def test_queues_and_index_follow_the_log(tmp_path: Path, release: str) -> None:
    with open_small(tmp_path, release) as store:
        store.put_many(traffic(0, 300))
        store.flush()
        names = age(tmp_path, 9)
        before = {key: store.offsets(*key) for key in store.queues()}
        gone = store.expire()
        after = {key: store.offsets(*key) for key in store.queues()}
        assert (gone.segments, gone.bytes) == (9, 9 * 4096)
        assert min(os.listdir(tmp_path / "commitlog")) == names[9]
        assert gone.queue_files > 0
        assert gone.index_files > 0
        assert gone.messages == sum(after[key][0] - before[key][0] for key in after)
        for key, (low, high) in after.items():
            assert before[key] == (0, high)
            result = store.get(*key, 0)
            assert (result.status.name, result.next_begin_offset) == ("OFFSET_TOO_SMALL", low)
            first = store.get(*key, low, 1).messages[0]
            assert (first.queue_offset, first.physical_offset >= 9 * 4096) == (low, True)
        assert store.expire() == (0, 0, 0, 0, 0)
        store.put_many(traffic(300, 50))
    assert rmq("verify", tmp_path).exit_code == 0
    with open_small(tmp_path, release) as store:
        assert {key: store.offsets(*key)[0] for key in store.queues()} == {
            key: one[0] for key, one in after.items()
        }


def test_the_last_segment_and_young_ones_stay_and_a_pass_takes_ten(tmp_path: Path) -> None:
    with open_small(tmp_path, deleteCommitLogFilesInterval=0) as store:
        store.put_many(traffic(0, 700))
        store.flush()
        age(tmp_path, 99)
        used = store.segments()
        assert used > 10
        assert store.expire().segments == used - 1
        assert os.listdir(tmp_path / "commitlog")
        store.put_many(traffic(700, 200))
        store.flush()
        assert store.expire().segments <= 1
        assert store.get("Topic0", 0, store.offsets("Topic0", 0)[1] - 1).messages


def test_a_full_disk_takes_the_oldest_and_refuses_puts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_small(tmp_path, deleteCommitLogFilesInterval=0) as store:
        store.put_many(traffic(0, 200))
        store.flush()
        monkeypatch.setattr("rmqtool.messagestore.expiry.room_of", used(95))
        assert store.expire().segments > 5
        refused = store.put(Message("Topic0", b"x"))
        assert (refused.status, refused.message) == (PutStatus.SERVICE_NOT_AVAILABLE, "the disk is full")
        monkeypatch.setattr("rmqtool.messagestore.expiry.room_of", used(20))
        store.expire()
        assert store.put(Message("Topic0", b"x")).status is PutStatus.PUT_OK


def test_forced_cleaning_can_be_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_small(tmp_path, cleanFileForciblyEnable=False) as store:
        store.put_many(traffic(0, 100))
        store.flush()
        monkeypatch.setattr("rmqtool.messagestore.expiry.room_of", used(88))
        assert store.expire().segments == 0


def test_what_a_reader_holds_stays_good(tmp_path: Path) -> None:
    with open_small(tmp_path) as store:
        store.put_many(traffic(0, 200))
        store.flush()
        raw = store.get_raw("Topic0", 0, 0)
        before = [bytes(one) for one in raw.records]
        age(tmp_path, 5)
        assert store.expire().segments == 5
        assert [bytes(one) for one in raw.records] == before
        assert store.message_at(0) is None


def test_what_expires_within_a_pull_is_not_what_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker finds no unit then and sends the consumer to the next file of the queue."""
    looked = QueueReader.plain_from
    with open_small(tmp_path, deleteCommitLogFilesInterval=0) as store:
        store.put_many(traffic(0, 200))
        store.flush()
        age(tmp_path, 5)

        def expired_meanwhile(reader: QueueReader, offset: int, most: int) -> bytes:
            return b"" if store.expire().segments else looked(reader, offset, most)

        monkeypatch.setattr(QueueReader, "plain_from", expired_meanwhile)
        result = store.get("Topic0", 0, 0)
        low, _ = store.offsets("Topic0", 0)
        assert (result.status.name, result.next_begin_offset, low > 0) == ("OFFSET_TOO_SMALL", low, True)


def test_readers_and_writers_go_on_meanwhile(tmp_path: Path) -> None:
    errors: list[BaseException] = []
    with open_small(tmp_path, deleteCommitLogFilesInterval=0, deleteConsumeQueueFilesInterval=0) as store:
        store.put_many(traffic(0, 300))
        done = threading.Event()

        def read() -> None:
            try:
                while not done.is_set():
                    for key in store.queues():
                        result = store.get(*key, store.offsets(*key)[0])
                        offsets = [one.queue_offset for one in result.messages]
                        assert offsets == sorted(set(offsets))
            except BaseException as error:  # noqa: BLE001 - of any thread
                errors.append(error)

        readers = [threading.Thread(target=read) for _ in range(3)]
        for one in readers:
            one.start()
        gone = 0
        for number in range(300, 1500, 60):
            assert all(ack.status is PutStatus.PUT_OK for ack in store.put_many(traffic(number, 60)))
            store.flush()
            names = sorted(os.listdir(tmp_path / "commitlog"))
            age(tmp_path, len(names) - 5)
            gone += store.expire().segments
        done.set()
        for one in readers:
            one.join()
    assert (errors, gone > 20) == ([], True)
    assert rmq("verify", tmp_path).exit_code == 0


def test_what_goes_is_in_the_directory_that_was_opened(tmp_path: Path) -> None:
    """Whoever owns the directory above may put another store under its name, and links into it."""
    root, other = tmp_path / "store", tmp_path / "other"
    with open_small(other) as store:
        store.put_many(traffic(0, 60))
    before = age(other, 99)
    with open_small(root, deleteCommitLogFilesInterval=0, deleteConsumeQueueFilesInterval=0) as store:
        store.put_many(traffic(0, 100))
        store.flush()
        age(root, 2)
        root.rename(tmp_path / "moved")
        root.symlink_to(other)
        assert store.expire().segments == 2
        assert sorted(os.listdir(other / "commitlog")) == before
        (tmp_path / "moved/index").rename(tmp_path / "moved/gone")
        (tmp_path / "moved/index").symlink_to(other / "index")
        age(tmp_path / "moved", 2)
        with pytest.raises(StoreIOError, match="index: a link lies on the way"):
            store.expire()
        (tmp_path / "moved/index").unlink()
        (tmp_path / "moved/gone").rename(tmp_path / "moved/index")
        root.unlink()
        (tmp_path / "moved").rename(root)


@pytest.mark.parametrize("place", ["commitlog", "index"])
def test_a_link_that_came_since_is_not_read(tmp_path: Path, place: str) -> None:
    with open_small(tmp_path / "store") as store:
        store.put_many(traffic(0, 100))
    age(tmp_path / "store", 2)
    with open_small(tmp_path / "store", deleteCommitLogFilesInterval=0) as store:
        path = min((tmp_path / "store" / place).iterdir())
        path.rename(tmp_path / "kept")
        path.symlink_to(tmp_path / "kept")
        with pytest.raises(StoreIOError, match="symbolic links"):
            store.message_at(0) if place == "commitlog" else store.expire()
        path.unlink()
        (tmp_path / "kept").rename(path)


@pytest.mark.share
@pytest.mark.parametrize("killed", [False, True])
@pytest.mark.parametrize("release", RELEASES)
def test_a_run_that_was_cut_off_is_ended_by_the_next_life(tmp_path: Path, release: str, killed: bool) -> None:
    """Segments are gone, queue files and index files that lead to them are not."""
    root = tmp_path / "store"
    with open_small(root, release) as store:
        store.put_many(traffic(0, 400))
    for name in sorted(os.listdir(root / "commitlog"))[:15]:
        (root / "commitlog" / name).unlink()
    if killed:
        (root / "abort").touch()
    with open_small(root, release) as store:
        found = store.expire()
        for queue in store.queues():
            low, high = store.offsets(*queue)
            assert store.get_table(*queue)["queue_offset"].to_pylist() == list(range(low, high))
    assert found.segments == 0
    assert (found.queue_files > 0 < found.index_files) != killed  # else by then it is done
    assert rmq("verify", root).exit_code == 0


def test_a_close_waits_for_a_run_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which else goes on without descriptors, or with those of somebody else."""
    root, real, closing = tmp_path / "store", os.unlink, list[threading.Thread]()
    with open_small(root, deleteCommitLogFilesInterval=1) as store:
        store.put_many(traffic(0, 200))
        store.flush()
        names = age(root, 3)

        def unlink(path: Any, *rest: Any, **more: Any) -> None:
            if not closing:
                closing.append(threading.Thread(target=store.close))
                closing[0].start()
                closing[0].join(0.3)
                assert closing[0].is_alive()
            real(path, *rest, **more)

        replace(monkeypatch, "unlink", unlink)
        gone = store.expire()
        closing[0].join(60)
        assert 0 < gone.segments < 3
        assert min(os.listdir(root / "commitlog")) == names[gone.segments]
    with open_small(root) as store:
        assert store.expire().segments == 3 - gone.segments


def test_a_read_of_a_store_that_is_closed_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has no descriptors any more, and says why. 4.x asks queue files for their times."""
    store, real = open_small(tmp_path / "store", "4.9.8"), os.stat
    store.put(Message("T", b"", queue_id=0))
    assert store.offset_by_time("T", 0, 0) == 0

    def stat(path: Any, *rest: Any, **more: Any) -> os.stat_result:
        if str(path).endswith(f"consumequeue/T/0/{0:020d}"):
            replace(monkeypatch, "stat", real)
            store.close()
        return real(path, *rest, **more)

    replace(monkeypatch, "stat", stat)
    with pytest.raises(StoreClosedError):
        store.offset_by_time("T", 0, 0)
