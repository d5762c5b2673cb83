"""The forms that a tombstone may have in a topic, the best one first.

Where the broker reads a topic itself, an exception or an endless retry at one record stops the service behind
it for good: these topics have forms of their own. What each release does with them, and how that was seen:
docs/recover-tombstones.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from formats import batch
from formats import properties as props
from formats.commitlog import SysFlag
from formats.java import java_parse_int
from formats.system_topics import (
    AUTO_CREATE_TOPIC,
    HALF_TOPIC,
    OP_HALF_TOPIC,
    OP_REMOVE_TAG,
    REVIVE_PREFIX,
    TIMER_TOPIC,
)
from formats.tags_code import SCHEDULE_TOPIC

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rmqtool.repair.place import Place

MARK = "RMQTOOL_TOMBSTONE"
"""Name of the property that holds the plan's id, and the tag."""

_ENOUGH_CHECKS = "2147483647"
_SMALLEST = b"T\x01T\x02"

Pairs = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Form:
    """One way to write the record.

    properties: as stored, ended by 0x02 where it may be. body: makes a body of so many bytes, `least_body`
    or more. sys_flag: bits that belong to that body. born_timestamp: None to leave it as it was.
    """

    properties: bytes
    body: Callable[[int], bytes]
    least_body: int = 0
    sys_flag: int = 0
    born_timestamp: int | None = None


def is_service(topic: str) -> bool:
    """Whether services of the broker read the topic, by its properties."""
    return topic in _MAKERS or topic.startswith(REVIVE_PREFIX)


def forms(place: Place, plan_id: str, kept: bytes | Pairs | None) -> Iterator[Form]:
    """Every form for this place, in the order of preference.

    Raw `kept` properties are wanted: forms without them follow. Pairs in a mapping are in every form.
    """
    make = _MAKERS.get(place.topic, _revive if place.topic.startswith(REVIVE_PREFIX) else _ordinary)
    if isinstance(kept, bytes) and kept:
        yield from make(place, _Mark(plan_id, whole=True), kept)
    pairs = _encode(kept) if isinstance(kept, Mapping) else b""
    yield from make(place, _Mark(plan_id), pairs)


@dataclass(frozen=True, slots=True)
class _Mark:
    """Says that a record is a tombstone, and names its plan.

    whole: the properties are those of the message, and a tombstone keeps them as they are; its body tells.
    """

    plan_id: str
    whole: bool = False

    def on(self, properties: bytes) -> Iterator[bytes]:
        """Properties with the mark, the fullest first; at the end as they are, but not none at all."""
        identity, tag = {MARK: self.plan_id}, {props.TAGS: MARK}
        if not self.whole:
            yield _with(properties, identity | tag)
            yield _with(properties, identity)
            yield _with(properties, tag)
        yield properties or _SMALLEST

    def body(self, length: int) -> bytes:
        """A body that says what it is, filled up with spaces."""
        return f"{MARK} {self.plan_id}".encode()[:length].ljust(length)


def _ordinary(place: Place, mark: _Mark, kept: bytes) -> Iterator[Form]:
    """Consumers read it. A body and a property are there if they can be: some choke on none at all."""
    if place.compacted:  # with a key it would be the newest value of that key, and the last good one would go
        kept = props.without(kept, props.KEYS)
    if place.batch_size is not None:
        yield from _inner_batch(place, mark, kept, place.batch_size)
        return
    for properties in mark.on(kept):
        yield Form(properties, mark.body, least_body=1)
    yield Form(kept, mark.body)


def _inner_batch(place: Place, mark: _Mark, kept: bytes, size: int) -> Iterator[Form]:
    """As many messages as it had, so that consumers count on; without room for them, one in their place."""
    own = _with(kept, {props.INNER_NUM: str(size), props.INNER_BASE: str(place.queue_offset)})
    inner = int(SysFlag.NEED_UNWRAP | SysFlag.INNER_BATCH)
    for properties in mark.on(own):
        yield Form(properties, _batch_body(size, mark), size * batch.CLIENT_MESSAGE_OVERHEAD, inner)
    yield Form(own, mark.body)


def _schedule(place: Place, mark: _Mark, kept: bytes) -> Iterator[Form]:
    """`ScheduleMessageService` logs and leaves out what claims to be a half message.

    A REAL_QID that is not a number stops the level in 4.x. Where even the name of the half topic does not
    fit, it is delivered to the topic that nobody subscribes to; that needs a body, as 5.x puts none without.
    """
    discarded = {props.REAL_TOPIC: HALF_TOPIC, props.REAL_QID: "0"}
    delay = props.decode(kept).get(props.DELAY, "")
    level = {} if (java_parse_int(delay) or 0) > 0 else {props.DELAY: str(place.queue_id + 1)}
    for properties in mark.on(_with(kept, discarded | level)):
        yield Form(properties, mark.body)
    yield Form(_with(props.without(kept, props.DELAY), discarded), mark.body)
    delivered = discarded | {props.REAL_TOPIC: AUTO_CREATE_TOPIC}
    yield Form(_with(props.without(kept, props.DELAY), delivered), mark.body, least_body=1)


def _timer(place: Place, mark: _Mark, kept: bytes) -> Iterator[Form]:
    """`TimerMessageStore` parses two numbers, and does not deliver what only deletes another message."""
    numbers = {props.TIMER_OUT_MS: str(place.store_timestamp), props.REAL_QID: "0"}
    there = props.decode(kept)
    for name, bits in ((props.TIMER_OUT_MS, 64), (props.REAL_QID, 32)):
        if java_parse_int(there.get(name, ""), bits) is not None:
            del numbers[name]
    for properties in mark.on(_with(kept, numbers | {props.TIMER_DEL_UNIQKEY: MARK})):
        yield Form(properties, mark.body)
    yield Form(_with(kept, numbers | {props.TIMER_DEL_UNIQKEY: "T"}), mark.body)


def _half(_place: Place, mark: _Mark, kept: bytes) -> Iterator[Form]:
    """`TransactionalMessageServiceImpl#check` moves what was asked for too often elsewhere, and goes on.

    The producer group is none, so that a late commit of the lost message is refused. Without room for that
    the time of birth says that it is too old.
    """
    checked = {props.TRANSACTION_CHECK_TIMES: _ENOUGH_CHECKS}
    for properties in mark.on(_with(kept, checked | {props.PRODUCER_GROUP: MARK})):
        yield Form(properties, mark.body, least_body=1)
    orphan = props.without(kept, props.PRODUCER_GROUP)
    yield Form(_with(orphan, checked), mark.body, least_body=1)
    yield Form(orphan or _SMALLEST, mark.body, least_body=1, born_timestamp=0)
    yield Form(orphan, mark.body, born_timestamp=0)


def _op_half(_place: Place, mark: _Mark, kept: bytes) -> Iterator[Form]:
    """An op message that settles no half message; 4.x fails without a body, and never passes another tag.

    In one byte there is no such number, but what is none counts as the same, at the price of a logged error.
    """
    own = _with(kept, {props.TAGS: OP_REMOVE_TAG})
    yield Form(_with(own, {MARK: mark.plan_id}), _no_offset, least_body=2)
    yield Form(own, _no_offset, least_body=2)
    if not mark.whole:
        yield Form(own, _no_offset, least_body=1)


def _revive(_place: Place, mark: _Mark, kept: bytes) -> Iterator[Form]:
    """`PopReviveService` parses the body of what has one of its tags, and passes over other tags."""
    own = props.without(kept, props.TAGS)
    for properties in _Mark(mark.plan_id).on(own):
        yield Form(properties, mark.body, least_body=1)
    yield Form(own, mark.body)


_MAKERS: dict[str, Callable[[Place, _Mark, bytes], Iterator[Form]]] = {
    SCHEDULE_TOPIC: _schedule,
    TIMER_TOPIC: _timer,
    HALF_TOPIC: _half,
    OP_HALF_TOPIC: _op_half,
}


def _with(properties: bytes, pairs: Pairs) -> bytes:
    """Properties with these values, in place of any others of these names."""
    for name in pairs:
        properties = props.without(properties, name)
    return _ended(properties) + _encode(pairs)


def _ended(properties: bytes) -> bytes:
    separator = bytes([props.PROPERTY_SEPARATOR])
    return properties if not properties or properties.endswith(separator) else properties + separator


def _encode(pairs: Pairs) -> bytes:
    return props.encode(pairs, trailing_separator=True)


def _no_offset(length: int) -> bytes:
    """The number below every offset in so many digits; a lone sign counts as the same."""
    return b"-" if length == 1 else b"-" + b"1".rjust(length - 1, b"0")


def _batch_body(size: int, mark: _Mark) -> Callable[[int], bytes]:
    """Bodies of an inner batch of `size` messages, the last of which takes what is left."""

    def body(length: int) -> bytes:
        rest = length - size * batch.CLIENT_MESSAGE_OVERHEAD
        messages = [(b"", b"", 0)] * (size - 1) + [(mark.body(rest), b"", 0)]
        return batch.encode_batch(messages)

    return body
