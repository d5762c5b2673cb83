"""Traffic of every kind for a real broker, and records of its log overwritten by tombstones."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from formats import properties as props
from formats.commitlog import Message, encode_message, record_size
from rmqtool.repair.filler import filler
from rmqtool.repair.place import Place
from rmqtool.repair.tombstone import smallest, tombstone

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.interop.broker import Broker

PLAN = "0123456789abcdef"
MARK = b"RMQTOOL_TOMBSTONE"
SCHEDULE = "SCHEDULE_TOPIC_XXXX"
HALF = "RMQ_SYS_TRANS_HALF_TOPIC"
OP = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
TIMER = "rmq_sys_wheel_timer"
REVIVE = "rmq_sys_REVIVE_LOG_DefaultCluster"
TOO_OFTEN = "TRANS_CHECK_MAX_TIME_TOPIC"
RETRY = "%RETRY%CG_Popped"

LATER_MS = 20_000
"""so long after they are sent delayed and timed messages are due: behind the second start"""
PATIENCE = 60
SETTINGS: dict[str, object] = {
    "messageDelayLevel": f"{LATER_MS // 1000}s 1s",
    "transactionOpBatchInterval": 100,
    "enableLmq": "true",
    "enableMultiDispatch": "true",
}
SETTINGS_5: dict[str, object] = {
    "timerWheelEnable": "true",
    "reviveQueueNum": 1,
    "mappedFileSizeTimerLog": 5200,
}
QUIET: dict[str, object] = {"transactionCheckInterval": 600_000, "reviveInterval": 600_000}
"""no half message is checked and no popped one revived before the tombstones are there"""
EAGER: dict[str, object] = {
    "transactionCheckInterval": 1000,
    "transactionTimeOut": 3000,
    "transactionCheckMax": 2,
}


@dataclass(frozen=True)
class Stored:
    """A record of the log."""

    position: int
    message: Any
    data: bytes = field(repr=False)

    @property
    def topic(self) -> str:
        return bytes(self.message.topic).decode()

    @property
    def body(self) -> bytes:
        """Without the spaces behind; of a tombstone just `MARK`, even if it had no room for a body."""
        text = bytes(self.message.body).rstrip()
        return MARK if text.startswith(MARK) or not text else text

    @property
    def properties(self) -> dict[str, str]:
        return props.decode(bytes(self.message.properties))


def log(root: Path) -> list[Stored]:
    """Every record of the first segment, which is all that these tests write."""
    return records((root / "commitlog" / ("0" * 20)).read_bytes())


def records(data: bytes) -> list[Stored]:
    """Every record from the start of these bytes on."""
    found, at = [], 0
    while (size := int.from_bytes(data[at : at + 4], "big")) and data[at + 4 : at + 8] == b"\xda\xa3\x20\xa7":
        found.append(Stored(at, Message.parse_exact(data[at : at + size]), data[at : at + size]))
        at += size
    return found


def of(root: Path, topic: str) -> list[Stored]:
    return [record for record in log(root) if record.topic == topic]


def bodies(root: Path, topic: str) -> list[bytes]:
    return [record.body for record in of(root, topic)]


def wait_for(what: Callable[[], bool], say: Callable[[], object], seconds: float = PATIENCE) -> None:
    """Until ``what`` holds; fails with what ``say`` says otherwise."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, say()
        time.sleep(0.2)


def settings(broker_release: str, *more: dict[str, object]) -> dict[str, object]:
    own = {**SETTINGS, **(SETTINGS_5 if broker_release.startswith("5.") else {})}
    for one in more:
        own |= one
    return own


def body(text: str, number: int) -> bytes:
    """Long enough that a tombstone's text fits; `bodies` leaves the spaces out."""
    return (text % number).encode().ljust(80)


# ---- before ---------------------------------------------------------------------------------------


def traffic(broker: Broker) -> None:
    """Three of each kind, so that each has one in the middle. Returns when the broker has stored it all."""
    for number in range(3):
        unique = f"{number:032X}"
        broker.send("Delayed", body("delayed %d", number), DELAY=1, UNIQ_KEY=unique)
        broker.send("Ordinary", body("ordinary %d", number), TAGS="TagA", UNIQ_KEY=unique)
        broker.send("Lost", body("lost %d", number) * 3)
        broker.commit("Committed", broker.prepare("Committed", body("committed %d", number), unique))
        broker.send("Light", body("light %d", number), INNER_MULTI_DISPATCH="%LMQ%a,%LMQ%b")
        time.sleep(0.4)  # an op message each
    for number in range(3):
        broker.prepare("Pending", body("pending %d", number), f"{number:032X}")
    wait_for(lambda: len(of(broker.root, OP)) == 3, lambda: of(broker.root, OP))
    if broker.release.startswith("5."):
        _traffic_5(broker)


def _traffic_5(broker: Broker) -> None:
    broker.create_topic("Batch", "+queue.type=BatchCQ")
    broker.create_topic("Compacted", "+cleanup.policy=COMPACTION")
    for number in range(3):
        parts = [body(f"part {part} of %d", number) for part in range(number + 1)]
        broker.send_batch("Batch", parts, UNIQ_KEY=f"{number:032X}")
        broker.send("Compacted", body("compacted %d", number), KEYS="k")
    for number in range(3):
        broker.send("Timed", body("timed %d", number), TIMER_DELAY_MS=LATER_MS, UNIQ_KEY=f"{number:032X}")
        broker.send("Popped", body("popped %d", number), UNIQ_KEY=f"{number:032X}")
    for _ in range(3):
        broker.pop("Popped", 1500)
    wait_for(lambda: len(of(broker.root, REVIVE)) == 3, lambda: of(broker.root, REVIVE))
    broker.configure("timerStopEnqueue", "true")
    time.sleep(0.5)
    for number in range(3, 6):  # these are in the queue of the timer only, not in its wheel
        broker.send("Timed", body("timed %d", number), TIMER_DELAY_MS=LATER_MS, UNIQ_KEY=f"{number:032X}")


def middle_ones(root: Path) -> list[Stored]:
    """The middle record of each kind, by what they are in the log."""
    chosen = [of(root, topic)[1] for topic in (SCHEDULE, "Ordinary", "Light", OP)]
    pending = [half for half in of(root, HALF) if half.properties["REAL_TOPIC"] == "Pending"]
    chosen.append(pending[1])
    if of(root, REVIVE):
        timed = [one for one in of(root, TIMER) if one.properties["REAL_TOPIC"] == "Timed"]
        chosen += [timed[1], timed[4], of(root, REVIVE)[1]]
        chosen += [of(root, topic)[1] for topic in ("Batch", "Compacted")]
    return chosen


# ---- overwriting ----------------------------------------------------------------------------------


def place_of(record: Stored) -> Place:
    message = record.message
    return Place(
        record.topic,
        message.queue_id,
        message.queue_offset,
        message.physical_offset,
        message.store_timestamp,
        message.born_timestamp,
        message.magic,
        (message.born_host.ip, message.born_host.port),
        (message.store_host.ip, message.store_host.port),
        message.flag,
        message.sys_flag,
        message.reconsume_times,
        message.prepared_transaction_offset,
        batch_size=int(record.properties["INNER_NUM"]) if record.topic == "Batch" else None,
        compacted=record.topic == "Compacted",
    )


def light(record: Stored) -> dict[str, str]:
    """The light queues of a record, which no tombstone may forget."""
    return {name: text for name, text in record.properties.items() if name.startswith("INNER_MULTI_")}


def entomb(root: Path, record: Stored) -> None:
    """A tombstone over a record of which nothing but the place is known."""
    overwrite(root, record, tombstone(place_of(record), len(record.data), PLAN, kept=light(record)))


def entomb_kept(root: Path, record: Stored) -> None:
    """A tombstone over a record whose properties are intact."""
    kept = bytes(record.message.properties)
    overwrite(root, record, tombstone(place_of(record), len(record.data), PLAN, kept=kept))


def entomb_small(root: Path, record: Stored) -> None:
    """The smallest tombstone that there is, and a filler over the rest, where the rest is large enough."""
    place, kept = place_of(record), light(record)
    least = smallest(place, kept=kept)
    rest = filler(len(record.data) - least, record.position + least, place.store_timestamp)
    small = tombstone(place, least if rest else len(record.data), PLAN, kept=kept)
    assert small is not None
    overwrite(root, record, small + (rest or b""))


def naive(root: Path, record: Stored, properties: bytes) -> None:
    """What might stand in any topic: these properties and a body of spaces.

    An unfinished property takes the room of the body.
    """
    place = place_of(record)
    fixed = record_size(record.message.magic, 0, 0, len(record.topic), len(properties))
    room = len(record.data) - fixed
    if properties.endswith(b"\x01"):
        properties, room = properties + b"x" * room, 0
    data = encode_message(
        place.topic,
        b" " * room,
        properties,
        queue_id=place.queue_id,
        queue_offset=place.queue_offset,
        physical_offset=place.physical_offset,
        born_timestamp=record.message.born_timestamp,
        store_timestamp=place.store_timestamp,
    )
    overwrite(root, record, data)


def fill(root: Path, record: Stored) -> None:
    """Two fillers over a record: the smallest that there is, and one of what is left."""
    at, left = record.position, len(record.data) - 91
    stamp = record.message.store_timestamp
    first, second = filler(91, at, stamp), filler(left, at + 91, stamp)
    assert first is not None
    assert second is not None
    overwrite(root, record, first + second)


def overwrite(root: Path, record: Stored, data: bytes | None) -> None:
    assert data is not None
    assert len(data) == len(record.data)
    with (root / "commitlog" / ("0" * 20)).open("r+b") as file:
        file.seek(record.position)
        file.write(data)
