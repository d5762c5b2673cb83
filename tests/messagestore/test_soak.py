"""Many writers and readers, dispatching and expiry at once: each queue is what was put, in its order."""

from __future__ import annotations

import os
import random
import threading
import time
from collections import defaultdict
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rmqtool import Message, MessageStore
from rmqtool.messagestore.messages import PutStatus
from tests.helpers import rmq

WRITERS, READERS = 16, 8
TOPICS, QUEUES = 4, 4
SETTINGS: dict[str, Any] = {
    "mappedFileSizeCommitLog": 1 << 20,
    "mappedFileSizeConsumeQueue": 20_000,
    "maxHashSlotNum": 5_000,
    "maxIndexNum": 20_000,
    "brokerIP1": "10.0.0.1",
    "flushDiskType": "SYNC_FLUSH",
    "fileReservedTime": 0,
    "deleteCommitLogFilesInterval": 1,
    "deleteConsumeQueueFilesInterval": 1,
}
_SHORT, _LONG = 4.0, 600.0
"""seconds"""
_MORE_MIB, _MORE_DESCRIPTORS = 48, 40
"""what the parts of a run may differ by"""


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def files(root: Path) -> int:
    """Files of log and queues; each that is mapped has two descriptors."""
    return sum(one.is_file() for kind in ("commitlog", "consumequeue") for one in (root / kind).rglob("*"))


def memory() -> int:
    """Bytes of this process that belong to no file."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) << 10 for line in lines if line.startswith("RssAnon"))


class Sent(NamedTuple):
    writer: int
    number: int
    physical: int


class Soak:
    """Threads on one store until a time (s). first: number of the first writer."""

    def __init__(self, store: MessageStore, until: float, first: int) -> None:
        self.store, self.until, self.first = store, until, first
        self.sent: dict[tuple[str, int], dict[int, Sent]] = defaultdict(dict)
        """of each queue, by offset"""
        self.floor: dict[tuple[str, int], int] = defaultdict(int)
        """below it all offsets of a queue were given, and are forgotten here"""
        self.guard = threading.Lock()
        self.wrong: list[str] = []
        self.put = self.got = self.expired = 0

    def run(self) -> None:
        threads = [
            threading.Thread(target=self._safely, args=(self._write, self.first + one))
            for one in range(WRITERS)
        ]

        threads += [threading.Thread(target=self._safely, args=(self._read, one)) for one in range(READERS)]
        threads.append(threading.Thread(target=self._safely, args=(self._expire, 0)))
        for one in threads:
            one.start()
        for one in threads:
            one.join()

    def _safely(self, work: Any, number: int) -> None:
        try:
            work(number)
        except Exception as error:
            self.wrong.append(f"{work.__name__} {number}: {error!r}")
            raise

    @property
    def _goes_on(self) -> bool:
        return time.monotonic() < self.until and not self.wrong

    def _write(self, writer: int) -> None:
        chance, number = random.Random(writer), 0
        numbers: dict[tuple[str, int], int] = defaultdict(int)
        while self._goes_on:
            count = chance.choice((1, 1, 1, 10))
            queue = f"T{chance.randrange(TOPICS)}", chance.randrange(QUEUES)
            first, numbers[queue] = numbers[queue], numbers[queue] + count
            body = bytes(chance.randrange(300))
            messages = [
                Message(
                    queue[0], body, queue_id=queue[1], tags=f"{writer}",
                    properties={"of": f"{writer} {one}"}, keys=[f"{writer}-{number}"],
                )
                for one in range(first, first + count)
            ]  # fmt: skip
            number += 1
            acks = self.store.put_many(messages) if count > 1 else [self.store.put(messages[0])]
            with self.guard:
                self.put += count
                for one, ack in zip(range(first, first + count), acks, strict=True):
                    assert ack.status is PutStatus.PUT_OK, ack
                    twice = ack.queue_offset in self.sent[queue] or ack.queue_offset < self.floor[queue]
                    assert not twice, "an offset was given twice"
                    self.sent[queue][ack.queue_offset] = Sent(writer, one, ack.physical_offset)

    def _read(self, reader: int) -> None:
        """Follows its queues: no offset is left out but by expiry, each writer's numbers rise one by one."""
        chance = random.Random(-reader - 1)
        mine = [(f"T{topic}", queue) for topic in range(TOPICS) for queue in range(QUEUES)]
        mine = [queue for place, queue in enumerate(mine) if place % READERS == reader]
        places = dict.fromkeys(mine, 0)
        last: dict[tuple[str, int], dict[str, int]] = {queue: {} for queue in mine}
        while self._goes_on:
            queue = chance.choice(mine)
            result = self.store.get(*queue, places[queue], 32, wait=0.05)
            begins = [one.queue_offset for one in result.messages] or [result.next_begin_offset]
            for offset in range(places[queue], begins[0]):
                assert self._is_gone(queue, offset), "an offset was left out"
            if places[queue] < begins[0]:
                last[queue].clear()
                places[queue] = begins[0]
            for message in result.messages:
                assert message.queue_offset == places[queue]
                writer, number = message.properties["of"].split()
                assert int(number) == last[queue].get(writer, int(number) - 1) + 1, "not in order"
                last[queue][writer] = int(number)
                places[queue] += 1
            self.got += len(result.messages)
            if result.messages:
                one = chance.choice(result.messages)
                again = self.store.get_raw(*queue, one.queue_offset, chance.choice((1, 32))).records
                assert again[:1] == [one.raw] or self._is_gone(queue, one.queue_offset)

    def _is_gone(self, queue: tuple[str, int], offset: int) -> bool:
        """Whether the message expired; queues follow the log a moment later."""
        while True:
            with self.guard:
                if offset < self.floor[queue]:
                    return True
                sent = self.sent[queue].get(offset)
            if sent is not None:
                return self.store.message_at(sent.physical) is None
            if not self._goes_on:
                return False
            time.sleep(0.01)  # its writer has not noted the answer yet

    def _expire(self, _: int) -> None:
        while self._goes_on:
            time.sleep(0.5)
            self.expired += self.store.expire().segments
            for queue in list(self.sent):
                low, _ = self.store.offsets(*queue)
                with self.guard:
                    while self.floor[queue] < low and self.sent[queue].pop(self.floor[queue], None):
                        self.floor[queue] += 1

    def check(self) -> None:
        """What is left in each queue is what its writers were answered, each message at its offset."""
        for queue, sent in self.sent.items():
            low, high = self.store.offsets(*queue)
            assert sorted(sent) == list(range(self.floor[queue], high))
            table = self.store.get_table(*queue, low, high - low, columns=["queue_offset", "tags"])
            assert table["queue_offset"].to_pylist() == list(range(low, high))
            assert table["tags"].to_pylist() == [f"{sent[offset].writer}" for offset in range(low, high)]


def soak(root: Path, seconds: float) -> None:
    """First a quarter of the time, behind which memory grows no more, and descriptors only with the files."""
    with MessageStore.open(root, create=True, config=SETTINGS) as store:
        parts: list[Soak] = []
        used: list[tuple[int, int, int]] = []
        for share in (0.25, 0.75):
            one = Soak(store, time.monotonic() + seconds * share, len(parts) * WRITERS)
            if parts:
                one.sent, one.floor = parts[0].sent, parts[0].floor
            one.run()
            assert one.wrong == []
            one.check()
            parts.append(one)
            used.append((memory() >> 20, descriptors(), files(root)))
            print(f"{one.put} put, {one.got} got, {one.expired} segments expired, "
                  f"{used[-1][0]} MiB, {used[-1][1]} descriptors")  # fmt: skip
            assert one.got > 0
        assert (
            sum(one.expired for one in parts) > 0
        )  # not in each part: the first of the short run has a second
        assert used[1][0] < used[0][0] + _MORE_MIB
        more_files = max(used[1][2] - used[0][2], 0)  # a loaded machine writes little in the first second
        assert used[1][1] < used[0][1] + _MORE_DESCRIPTORS + 2 * more_files
    assert rmq("verify", root).exit_code == 0


def test_all_at_once(tmp_path: Path) -> None:
    soak(tmp_path / "store", _SHORT)


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_all_at_once_for_ten_minutes(tmp_path: Path) -> None:
    soak(tmp_path / "store", _LONG)
