"""Replication between two of our stores; `tests/interop/test_replication_interop.py` has the real ones."""

from __future__ import annotations

import random
import socket
import struct
import threading
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from rmqtool import Message, MessageStore
from rmqtool.errors import DivergedError, RmqtoolError, StoreIOError, UsageError
from rmqtool.messagestore.messages import PutStatus
from tests.helpers import rmq
from tests.messagestore.helpers import RELEASES, bodies, of_queue, open_small, traffic

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FAST = {"haSendHeartbeatInterval": 50, "haHousekeepingInterval": 2000}


def master(root: Path, **settings: Any) -> MessageStore:
    return open_small(root, **{**FAST, **settings})


def slave(root: Path, **settings: Any) -> MessageStore:
    return open_small(root, **{**FAST, "brokerRole": "SLAVE", **settings})


def until(reached: Callable[[], bool], seconds: float = 20) -> None:
    """Waits for it; a failure where it never comes."""
    end = time.monotonic() + seconds
    while not reached():
        assert time.monotonic() < end, "it never came"
        time.sleep(0.005)


def log_of(root: Path, end: int) -> bytes:
    """The commit log from its first segment on, up to a physical offset."""
    segments = sorted((root / "commitlog").iterdir())
    first = int(segments[0].name)
    return b"".join(one.read_bytes() for one in segments)[: end - first]


@pytest.mark.parametrize("release", RELEASES)
def test_a_slave_has_what_its_master_has(tmp_path: Path, release: str) -> None:
    one, other = tmp_path / "master", tmp_path / "slave"
    sent = traffic(0, 300)
    with master(one, release=release) as store:
        _, port = store.listen(port=0)
        with slave(other, release=release) as copy:
            following = copy.follow("127.0.0.1", port)
            assert following.caught_up.wait(10)  # one that reports late would begin with the last segment
            store.put_many(sent[:150])
            for message in sent[150:]:
                store.put(message)
            store.put(sent[0])
            end = store.end  # the log of a slave may end within a record
            until(lambda: [offset for _, offset in store.slaves] == [end])
            for key in store.queues():
                assert bodies(copy, *key) == bodies(store, *key)
            assert [one.body for one in copy.query_key("Topic1", "key-77")] == [sent[77].body]
            refused = copy.put(sent[0])
            assert refused.status is PutStatus.SERVICE_NOT_AVAILABLE
    assert log_of(one, end) == log_of(other, end)
    assert rmq("verify", other).exit_code == 0


def test_a_late_slave_begins_with_the_last_segment(tmp_path: Path) -> None:
    with master(tmp_path / "master") as store:
        store.put_many(traffic(0, 200))
        _, port = store.listen(port=0)
        with slave(tmp_path / "slave") as copy:
            copy.follow("127.0.0.1", port)
            end = store.put(traffic(0, 1)[0]).physical_offset
            until(lambda: [offset for _, offset in store.slaves] == [store.end])
            low = min(int(one.name) for one in (tmp_path / "slave/commitlog").iterdir())
            assert low == end - end % 4096 > 0
            low, high = copy.offsets("Topic0", 0)
            assert 0 < low < high == store.offsets("Topic0", 0)[1]
    assert rmq("verify", tmp_path / "slave").exit_code == 0


def test_it_goes_on_where_it_was(tmp_path: Path) -> None:
    """Behind cut connections, in the middle of records too, and behind restarts of either side."""
    chance = random.Random(7)
    sent: list[Message] = []
    port = 0
    for _ in range(4):
        with master(tmp_path / "master", haTransferBatchSize=97) as store:
            _, port = store.listen(port=port)
            for _ in range(3):
                with slave(tmp_path / "slave") as copy:
                    following = copy.follow("127.0.0.1", port)
                    more = traffic(len(sent), chance.randrange(10, 40))
                    sent += more
                    store.put_many(more)
                    if chance.random() < 0.5:
                        until(lambda s=store: bool(s.slaves))
                        continue  # closed wherever it is
                    end = store.end
                    until(lambda e=end, s=store: any(offset >= e for _, offset in s.slaves))
                    assert following.error is None
    with master(tmp_path / "master") as store, slave(tmp_path / "slave") as copy:
        _, port = store.listen(port=0)
        copy.follow("127.0.0.1", port)
        end = store.end
        until(lambda: any(offset >= end for _, offset in store.slaves))
        for key in store.queues():
            assert bodies(copy, *key) == bodies(store, *key) == of_queue(sent, *key)
    assert log_of(tmp_path / "master", end) == log_of(tmp_path / "slave", end)
    assert rmq("verify", tmp_path / "slave").exit_code == 0


class OneMaster:
    """Says one thing to the slave that connects, and keeps its reports."""

    def __init__(self, *said: bytes) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.address: tuple[str, int] = self._server.getsockname()
        self.heard = b""
        self._said = said
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        with suppress(ConnectionResetError), self._server, self._server.accept()[0] as peer:
            self.heard = peer.recv(8)
            for one in self._said:
                peer.sendall(one)
            while got := peer.recv(4096):
                self.heard += got

    def join(self) -> None:
        self._thread.join(20)


def frame(offset: int, data: bytes, size: int | None = None) -> bytes:
    return struct.pack(">qi", offset, len(data) if size is None else size) + data


@pytest.mark.parametrize("length", [100_000, 600_000])
def test_a_frame_that_comes_in_pieces(tmp_path: Path, length: int) -> None:
    """What is there is in the log while the rest is awaited, and the rest follows it."""
    large = {"mappedFileSizeCommitLog": 8 << 20}
    with master(tmp_path / "master", **large) as store:
        store.put_many([message for part in range(6) for message in traffic(part * 1000, 1000)])
        raw = log_of(tmp_path / "master", store.end)
    assert length < len(raw) < length + (3 << 20)
    pieces = [raw[at : at + length // 5] for at in range(0, length, length // 5)]
    with (
        slave(tmp_path / "slave", **large) as copy,
        socket.create_server(("127.0.0.1", 0)) as server,
    ):
        following = copy.follow(*server.getsockname())
        with server.accept()[0] as peer:
            peer.recv(8)
            done = 0
            for number, one in enumerate(pieces):
                head = struct.pack(">qi", 0, length) if not number else b""
                peer.sendall(head + one)
                done += len(one)
                until(lambda d=done: copy.end > d - 1000 or following.error is not None)
            peer.sendall(frame(length, raw[length:]) + frame(len(raw), b""))
            assert following.caught_up.wait(20)
            assert following.error is None
            assert copy.end == len(raw)
        assert log_of(tmp_path / "slave", len(raw)) == raw


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (frame(4096, b"x" * 100), "sends from 4096 on, and the log here ends at"),
        (frame(0, b"", -1), "a frame of -1 bytes"),
        (frame(0, b"", 1 << 30), "a frame of 1073741824 bytes"),
        (frame(-5, b"x"), "sends from -5 on"),
    ],
)
def test_what_no_master_sends_is_refused(tmp_path: Path, said: bytes, why: str) -> None:
    with open_small(tmp_path) as store:
        store.put_many(traffic(0, 3))
    with slave(tmp_path) as copy:
        before, end = log_of(tmp_path, copy.end), copy.end
        other = OneMaster(said)
        following = copy.follow(*other.address)
        until(lambda: following.error is not None)
        assert why in str(following.error)
        assert (copy.end, log_of(tmp_path, end)) == (end, before)
        assert other.heard[:8] == struct.pack(">q", end)
    assert rmq("verify", tmp_path).exit_code == 0


def test_records_of_another_log_are_refused(tmp_path: Path) -> None:
    with open_small(tmp_path / "a") as store:
        store.put_many(traffic(0, 3))
    with open_small(tmp_path / "b") as store:
        store.put_many(traffic(0, 9))
        end = store.end
    raw = log_of(tmp_path / "b", end)
    with slave(tmp_path / "a") as copy:
        own = copy.end
        following = copy.follow(*OneMaster(frame(own, raw[:500])).address)
        until(lambda: following.error is not None)
        assert isinstance(following.error, DivergedError)
        assert (following.error.own, following.error.master) == (own, 0)
        assert copy.end == own


def test_a_slave_that_is_ahead_or_behind_what_is_left_is_refused(tmp_path: Path) -> None:
    with master(tmp_path) as store:
        store.put_many(traffic(0, 9))
        address = store.listen(port=0)
        for offset in (store.end + 1, -7, 1 << 62):
            with socket.create_connection(address) as peer:
                peer.sendall(struct.pack(">q", offset))
                peer.settimeout(10)
                assert peer.recv(100) == b""
        with pytest.raises(UsageError, match="already"):
            store.listen(port=0)
        with pytest.raises(UsageError, match="SLAVE"):
            store.follow("127.0.0.1", 1)
    with slave(tmp_path / "other") as copy, pytest.raises(UsageError, match="SLAVE"):
        copy.listen(port=0)


def test_reports_in_pieces_and_many_at_once(tmp_path: Path) -> None:
    with master(tmp_path) as store:
        store.put_many(traffic(0, 9))
        with socket.create_connection(store.listen(port=0)) as peer:
            for one in struct.pack(">qq", 0, store.end)[:13]:
                peer.sendall(bytes([one]))
                time.sleep(0.002)
            until(lambda: [offset for _, offset in store.slaves] == [0])
            peer.sendall(struct.pack(">qq", 0, store.end)[13:])
            until(lambda: [offset for _, offset in store.slaves] == [store.end])


@pytest.mark.parametrize("release", RELEASES)
def test_a_sync_master_waits_for_its_slaves(tmp_path: Path, release: str) -> None:
    settings = {"brokerRole": "SYNC_MASTER", "slaveTimeout": 200, "inSyncReplicas": 2}
    alone = PutStatus.SLAVE_NOT_AVAILABLE if release < "5" else PutStatus.FLUSH_SLAVE_TIMEOUT
    one = traffic(0, 1)[0]
    with master(tmp_path / "master", release=release, **settings) as store:
        assert store.put(one).status is alone
        assert store.put(Message("Topic0", b"x", properties={"WAIT": "false"})).status is PutStatus.PUT_OK
        address = store.listen(port=0)
        with slave(tmp_path / "slave", release=release) as copy:
            copy.follow(*address)
            until(lambda: any(offset == store.end for _, offset in store.slaves))
            for ack in (store.put(one), *store.put_many([one, one]), store.put_async(one).result(10)):
                assert ack.status is PutStatus.PUT_OK
                assert copy.end > ack.physical_offset
        until(lambda: not store.slaves)
        with socket.create_connection(address) as peer:  # takes everything and says nothing more
            peer.sendall(struct.pack(">q", store.end))
            until(lambda: any(offset >= 0 for _, offset in store.slaves))
            assert store.put(one).status is PutStatus.FLUSH_SLAVE_TIMEOUT
            assert store.put_async(one).result(10).status is PutStatus.FLUSH_SLAVE_TIMEOUT
            assert {ack.status for ack in store.put_many([one] * 20)} == {PutStatus.FLUSH_SLAVE_TIMEOUT}


def test_one_replica_is_the_master_itself(tmp_path: Path) -> None:
    with master(tmp_path, release="5.3.3", brokerRole="SYNC_MASTER") as store:
        assert store.put(traffic(0, 1)[0]).status is PutStatus.PUT_OK


def test_a_log_that_cannot_be_written_ends_following(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with master(tmp_path / "master") as store, slave(tmp_path / "slave") as copy:
        store.put_many(traffic(0, 3))

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(copy._log, "append", full)
        following = copy.follow(*store.listen(port=0))
        until(lambda: following.error is not None)
        assert isinstance(following.error, StoreIOError)
        assert "No space left" in str(following.error)


@pytest.mark.parametrize("setting", ["haTransferBatchSize=0", "haTransferBatchSize=5000000",
                                     "haSendHeartbeatInterval=0"])  # fmt: skip
def test_impossible_settings(tmp_path: Path, setting: str) -> None:
    name, _, value = setting.partition("=")
    with pytest.raises(UsageError, match=name):
        open_small(tmp_path, **{name: value})


def test_only_this_machine_reaches_the_port(tmp_path: Path) -> None:
    with master(tmp_path) as store:
        host, port = store.listen(port=0)
        assert host == "127.0.0.1"
        with (
            pytest.raises(ConnectionRefusedError),
            socket.create_connection(("127.0.0.2", port), timeout=5),  # another address of this machine
        ):
            pass


def test_nobody_listens_where_somebody_does(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, master(tmp_path) as store:
        with pytest.raises(RmqtoolError, match="in use"):
            store.listen(port=taken.getsockname()[1])
        assert store.listen(port=0)[1] > 0
