"""Consumer groups: queues have one owner, messages come in order, what was not committed comes again."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from rmqtool import Message, MessageStore
from rmqtool.errors import StoreClosedError, UsageError
from rmqtool.messagestore.messages import StoredMessage
from rmqtool.messagestore.services.consumer import Consumer, Options
from rmqtool.messagestore.services.idempotence import Idempotent, message_key
from rmqtool.messagestore.services.membership import Membership
from rmqtool.query.assignment.queues import MessageQueue
from rmqtool.query.assignment.strategies import STRATEGIES, assign
from tests.messagestore.helpers import open_small

AVG = STRATEGIES["AVG"]


def queues_of(topic: str) -> list[MessageQueue]:
    return [MessageQueue(topic, "b", number) for number in range(8)]


class Ticks:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def member(ticks: Ticks) -> Membership:
    return Membership("G", AVG, queues_of, 30.0, ticks)


def test_queues_change_hands_when_they_are_let_go_of() -> None:
    group = member(Ticks())
    group.join("b", "T")
    first = group.take("b", "T")
    assert len(first) == 8
    group.join("a", "T")
    assert group.take("a", "T") == {}
    assert len(group.take("b", "T")) == 4
    assert sorted(group.take("a", "T")) == [("T", number) for number in range(4)]
    owned = group.take("b", "T")
    assert {key: owned[key] for key in owned} == {key: first[key] for key in owned}, "what stays is the same"
    group.leave("a")
    again = group.take("b", "T")
    assert len(again) == 8
    assert again["T", 0] != first["T", 0]
    assert not group.guarded(("T", 0), first["T", 0], lambda: pytest.fail("fenced"))
    assert group.guarded(("T", 0), again["T", 0], lambda: None)


def test_who_gives_no_sign_loses_its_queues() -> None:
    ticks = Ticks()
    group = member(ticks)
    group.join("a", "T")
    group.join("b", "T")
    stalled = group.take("a", "T")
    ticks.now = 29.0
    assert len(group.take("b", "T")) == 4
    ticks.now = 30.5
    assert len(group.take("b", "T")) == 8
    assert not any(group.owns(key, one) for key, one in stalled.items())
    assert not group.beat("a")
    assert group.take("a", "T") == {}
    assert len(group) == 2
    group.take("b", "T")
    back = group.take("a", "T")
    assert len(back) == 4
    assert not set(back.values()) & set(stalled.values())


def test_a_sign_of_life_is_enough() -> None:
    ticks = Ticks()
    group = member(ticks)
    for name in "ab":
        group.join(name, "T")
    group.take("a", "T")
    for ticks.now in (20.0, 40.0, 60.0):
        assert group.beat("a")
        assert len(group.take("b", "T")) == 4


def test_members_want_different_topics() -> None:
    group = member(Ticks())
    group.join("a", ["T", "U"])
    group.join("b", ["U"])
    assert len(group.take("a", ["T", "U"])) == 12
    assert sorted(group.take("b", ["U"])) == [("U", number) for number in range(4, 8)]
    with pytest.raises(UsageError):
        group.join("a", ["T"])


@pytest.mark.parametrize("name", STRATEGIES)
def test_everybody_is_given_what_the_strategy_says(name: str) -> None:
    """Whatever came before: joins, leaves and losses in any order end at the same division."""
    chance, ticks = random.Random(name), Ticks()
    group = Membership("G", STRATEGIES[name], queues_of, 30.0, ticks)
    there: set[str] = set()
    for _ in range(300):
        one = f"c{chance.randrange(6)}"
        if one in there and chance.random() < 0.4:
            group.leave(one)
            there.discard(one)
        else:
            group.take(one, "T")
            there.add(one)
        owners = group.owners()
        assert set(owners.values()) <= there
        if chance.random() < 0.1:
            for _ in range(2):
                for other in there:
                    group.take(other, "T")
            given = assign(STRATEGIES[name], queues_of("T"), there)
            assert group.owners() == {
                (queue.topic, queue.queue_id): who for who, queues in given.items() for queue in queues
            }


def filled(root: Path, count: int, queues: int = 1, **settings: Any) -> MessageStore:
    store = open_small(root, **settings)
    store.topics.set("T", read_queues=queues, write_queues=queues)
    store.put_many(
        [Message("T", b"%d" % one, queue_id=one % queues, keys=[f"k{one}"]) for one in range(count)]
    )
    return store


def numbers(messages: list[StoredMessage]) -> list[int]:
    return [int(one.body) for one in messages]


def test_consumed_to_10_committed_8_moved(tmp_path: Path) -> None:
    with filled(tmp_path, 12) as store:
        first = store.consumer("G", "T", name="a")
        got = first.poll(10)
        assert numbers(got) == list(range(10))
        assert first.commit(got[7])
        first.close()
        with store.consumer("G", "T", name="b") as second:
            assert numbers(second.poll(2)) == [8, 9]
        with pytest.raises(StoreClosedError):
            first.poll()
    with open_small(tmp_path) as store, store.consumer("G", "T") as third:
        assert numbers(third.poll()) == [8, 9, 10, 11]


def test_a_loop_commits_what_is_behind_it(tmp_path: Path) -> None:
    with filled(tmp_path, 6) as store:
        consumer = store.consumer("G", ["T"])
        for number, message in enumerate(consumer):
            assert int(message.body) == number
            if number == 4:
                break
        assert store.committed_offset("G", "T", 0) == 4
        consumer.close()
        assert numbers(store.consumer("G", "T").poll()) == [4, 5]


def test_a_handler_is_called_and_commits(tmp_path: Path) -> None:
    with filled(tmp_path, 50, queues=3) as store:
        done: list[int] = []
        all_there = threading.Event()

        def handle(message: StoredMessage) -> None:
            done.append(int(message.body))
            if len(done) == 51:
                all_there.set()

        consumer = store.consumer("G", "T", on_message=handle)
        store.put(Message("T", b"50", queue_id=0))
        assert all_there.wait(60)
        consumer.close()
        assert (sorted(done), consumer.error) == (list(range(51)), None)
        assert [store.committed_offset("G", "T", one) for one in range(3)] == [18, 17, 16]


def test_what_fails_comes_again_later_and_ends(tmp_path: Path) -> None:
    """With one message that fails twice and one that always does; `retryMaxTimes` is 2."""
    with filled(tmp_path, 4, messageDelayLevel="1s " * 17 + "1s") as store:
        store.groups.set("G", retry_max=2)
        tries: Counter[int] = Counter()
        ended = threading.Event()

        def handle(message: StoredMessage) -> bool:
            number = int(message.body)
            tries[number] += 1
            if number == 1 and tries[1] < 3:
                raise RuntimeError("not yet")
            if tries[2] == 3 and tries[1] == 3:
                ended.set()
            return number != 2

        with store.consumer("G", "T", on_message=handle):
            assert ended.wait(60)
            until = time.monotonic() + 30
            while not store.offsets("%DLQ%G", 0)[1] and time.monotonic() < until:
                time.sleep(0.02)
        assert tries == {0: 1, 1: 3, 2: 3, 3: 1}
        assert [one.body for one in store.get("%DLQ%G", 0, 0).messages] == [b"2"]


def test_in_order_nothing_passes_what_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rmqtool.messagestore.services.consumer.PAUSE", 0.01)
    with filled(tmp_path, 5) as store:
        seen: list[int] = []
        ended = threading.Event()

        def handle(message: StoredMessage) -> bool:
            seen.append(int(message.body))
            if seen[-1] == 4:
                ended.set()
            return seen[-1] != 2 or seen.count(2) == 3

        with store.consumer("G", "T", on_message=handle, ordered=True):
            assert ended.wait(60)
        assert seen == [0, 1, 2, 2, 2, 3, 4]


@pytest.mark.parametrize("most", [0, 2])
def test_in_order_up_to_the_dead_letters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """As `ConsumeMessageOrderlyService` counts: tried, then `maxReconsumeTimes` times again."""
    monkeypatch.setattr("rmqtool.messagestore.services.consumer.PAUSE", 0.01)
    with filled(tmp_path, 5) as store:
        seen: list[int] = []
        ended = threading.Event()

        def handle(message: StoredMessage) -> bool:
            seen.append(int(message.body))
            if seen[-1] == 4:
                ended.set()
            return seen[-1] != 2

        with store.consumer("G", "T", on_message=handle, ordered=True, max_reconsume=most):
            assert ended.wait(60)
        assert seen == [0, 1, *[2] * (most + 1), 3, 4]
        (dead,) = store.get("%DLQ%G", 0, 0).messages
        assert (dead.body, dead.reconsume_times) == (b"2", most)
        assert store.committed_offset("G", "T", 0) == 5
        with pytest.raises(UsageError):
            store.consumer("G", "T", max_reconsume=-1)


def test_max_reconsume_instead_of_the_group_s(tmp_path: Path) -> None:
    with filled(tmp_path, 1) as store:
        with store.consumer("G", "T", on_message=lambda _: False, max_reconsume=0):
            found = store.get("%DLQ%G", 0, 0, wait=60)
        assert [one.body for one in found.messages] == [b"0"]


def test_a_member_of_a_broadcast_goes_on_where_it_was(tmp_path: Path) -> None:
    """By its name, also behind a restart; the offsets of groups say nothing of it."""
    with filled(tmp_path, 5) as store:
        with store.consumer("G", "T", name="a", broadcast=True) as one:
            assert one.commit(one.poll()[2])
        with store.consumer("G", "T", name="a", broadcast=True) as one:
            assert numbers(one.poll()) == [3, 4]
    with open_small(tmp_path) as store:
        for name, expected in (("a", [3, 4]), ("b", list(range(5)))):
            with store.consumer("G", "T", name=name, broadcast=True) as one:
                assert numbers(one.poll()) == expected
        assert store.committed_offsets() == []
    table = tmp_path / "config" / "rmqtool-broadcast.json"
    for spoiled in (b"[]", b'{"broadcastMembers":{"G":{"a":{"T":{"0":-1,"x":2,"1":"y"}}}}}', b"{"):
        table.write_bytes(spoiled)
        with open_small(tmp_path) as store, store.consumer("G", "T", name="a", broadcast=True) as one:
            assert numbers(one.poll()) == list(range(5))


def test_every_member_gets_everything_of_a_broadcast(tmp_path: Path) -> None:
    with filled(tmp_path, 5, queues=2) as store:
        for name in "ab":
            with store.consumer("G", "T", name=name, broadcast=True) as one:
                got = one.poll()
                assert sorted(numbers(got)) == list(range(5))
                assert one.commit(got[0])
        assert store.committed_offsets() == []
        store.groups.set("G", broadcast=False)
        with pytest.raises(UsageError):
            store.consumer("G", "T", broadcast=True)


def test_where_a_new_group_begins(tmp_path: Path) -> None:
    with filled(tmp_path, 5) as store:
        with store.consumer("G", "T", start="last") as one:
            assert one.poll() == []
            store.put(Message("T", b"5", queue_id=0))
            assert numbers(one.poll()) == [5]
        for how in ({"start": "middle"}, {"strategy": "NONE"}):
            with pytest.raises(UsageError):
                store.consumer("H", "T", **how)  # type: ignore[arg-type]
        with pytest.raises(UsageError):
            store.consumer("H", [])


def test_tags_choose_and_the_rest_is_behind_it(tmp_path: Path) -> None:
    with open_small(tmp_path) as store:
        store.put_many([Message("T", b"%d" % one, queue_id=0, tags="AB"[one % 2]) for one in range(20)])
        with store.consumer("G", "T", tags="B") as one:
            got = one.poll()
            assert numbers(got) == list(range(1, 20, 2))
            one.commit(got[-1])
        with store.consumer("H", "T", tags="C") as one:
            assert one.poll() == []
        assert [store.committed_offset(group, "T", 0) for group in "GH"] == [20, 20]


def test_a_group_that_may_not_consume_any_more(tmp_path: Path) -> None:
    with filled(tmp_path, 5) as store:
        one = store.consumer("G", "T")
        store.groups.set("G", consume=False)
        with pytest.raises(UsageError):
            one.poll()
        store.groups.set("G", consume=True)
        assert len(one.poll()) == 5
        with pytest.raises(UsageError):
            store.consumer("G", "T", strategy="AVG_BY_CIRCLE")


def test_a_store_that_closes_ends_its_consumers(tmp_path: Path) -> None:
    with filled(tmp_path, 5) as store:
        one = store.consumer("G", "T", on_message=lambda message: None)
        store.consumer("H", "T")
    assert one._thread is not None
    assert not one._thread.is_alive()
    assert one.error is None


def test_a_message_is_handled_once_by_its_key(tmp_path: Path) -> None:
    with open_small(tmp_path) as store:
        for body, keys in ((b"1", ["a"]), (b"2", ["a"]), (b"3", ["b"]), (b"4", ["c"]), (b"5", ["a"])):
            store.put(Message("T", body, queue_id=0, keys=keys))
        seen: list[bytes] = []
        failing = [True]

        def handle(message: StoredMessage) -> bool:
            seen.append(message.body)
            return not (message.body == b"3" and failing.pop())

        once = Idempotent(handle, most=2)
        messages = store.get("T", 0, 0).messages
        assert [once(one) for one in messages[:2]] == [True, True]
        assert [once(messages[2]), failing.append(False), once(messages[2])] == [False, None, True]
        once(messages[3])
        once(messages[4])
        assert seen == [b"1", b"3", b"3", b"4", b"5"], "of the oldest nothing is remembered"
        store.put(Message("T", b"6", queue_id=0, uniq_key="u"))
        assert message_key(store.get("T", 0, 5).messages[0]) == "u"


def test_one_key_is_under_way_once() -> None:
    at_once: list[int] = []
    running = [0]

    def handle(message: StoredMessage) -> None:
        running[0] += 1
        at_once.append(running[0])
        time.sleep(0.02)
        running[0] -= 1

    once = Idempotent(handle, key=lambda message: "same")
    threads = [threading.Thread(target=once, args=(None,)) for _ in range(5)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert at_once == [1]


class Chaos:
    """Members come, go and stall. One owner a queue, order, every message at least once."""

    HEARTBEAT, QUEUES, MEMBERS = 0.3, 8, 5

    def __init__(self, store: MessageStore, seed: int) -> None:
        self.store, self.seed = store, seed
        self.handled: dict[tuple[int, int], list[int]] = defaultdict(list)
        """offsets by queue and number of its ownership"""
        self.newest: dict[int, int] = defaultdict(int)
        self.last_taken: dict[int, int] = defaultdict(int)
        self.problems: list[str] = []
        self.guard, self.stop = threading.Lock(), threading.Event()
        store.topics.set("T", read_queues=self.QUEUES, write_queues=self.QUEUES)

    def member(self, name: str) -> Consumer:
        return self.store._services.consuming.consumer("G", "T", name, None, Options(), self.HEARTBEAT)

    def live(self, name: str, dice: random.Random) -> None:
        consumer = self.member(name)
        while not self.stop.is_set():
            for message in consumer.poll(dice.randrange(1, 20), wait=0.02):
                self.handle(consumer, message)
                if dice.random() < 0.7:
                    consumer.commit(message)
            fate = dice.random()
            if fate < 0.01:
                time.sleep(self.HEARTBEAT * 1.7)
            elif fate < 0.02:
                consumer.close()
                consumer = self.member(name)
        consumer.close()

    def handle(self, consumer: Consumer, message: StoredMessage) -> None:
        number, offset = message.queue_id, message.queue_offset
        mine = consumer._owned["T", number]
        consumer._membership.guarded(("T", number), mine, lambda: self.owned(number, mine.number))
        with self.guard:
            self.handled[number, mine.number].append(offset)
            if offset > self.newest[number]:
                self.problems.append(f"{number}: {offset} came in front of {self.newest[number]}")
            self.newest[number] = max(self.newest[number], offset + 1)

    def owned(self, number: int, ownership: int) -> None:
        """Called while nobody else can take the queue: who has it took it last."""
        if ownership < self.last_taken[number]:
            self.problems.append(f"{number} has two owners")
        self.last_taken[number] = ownership

    def run(self, seconds: float) -> None:
        chance, sent = random.Random(self.seed), 0
        names = [f"m{one}" for one in range(self.MEMBERS)]
        threads = [
            threading.Thread(target=self.live, args=(name, random.Random(f"{self.seed}{name}")))
            for name in names
        ]
        for one in threads:
            one.start()
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            count = chance.randrange(1, 40)
            new = range(sent, sent + count)
            self.store.put_many([Message("T", b"%d" % one, queue_id=one % self.QUEUES) for one in new])
            sent += count
            time.sleep(0.005)
        self.stop.set()
        for one in threads:
            one.join()
        with self.member("last") as rest:
            while got := rest.poll(500):
                for message in got:
                    self.handle(rest, message)
                    rest.commit(message)

    def check(self) -> None:
        assert self.problems == []
        seen: dict[int, set[int]] = defaultdict(set)
        for (number, _), offsets in self.handled.items():
            assert offsets == list(range(offsets[0], offsets[0] + len(offsets))), number
            seen[number] |= set(offsets)
        for number in range(self.QUEUES):
            assert seen[number] == set(range(self.store.offsets("T", number)[1]))
            assert self.store.committed_offset("G", "T", number) == len(seen[number])


def chaos(root: Path, seconds: float, seed: int) -> None:
    with open_small(root, mappedFileSizeCommitLog=1 << 16, mappedFileSizeConsumeQueue=4000) as store:
        run = Chaos(store, seed)
        run.run(seconds)
        run.check()


def test_chaos(tmp_path: Path) -> None:
    chaos(tmp_path, 2.0, 7)


@pytest.mark.full
@pytest.mark.parametrize("seed", [1, 2])
def test_chaos_for_a_minute(tmp_path: Path, seed: int) -> None:
    chaos(tmp_path, 30.0, seed)
