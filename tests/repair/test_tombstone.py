"""A tombstone is an intact record of the length asked for, in its place, in the form that its topic needs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import strategies as st

from fixtures.builder import FIRST_TIME
from formats import crc_trailer
from formats import properties as props
from formats.batch import inner_messages
from formats.commitlog import (
    MESSAGE_MAGIC_CODE,
    MESSAGE_MAGIC_CODE_V2,
    Message,
    body_crc_ok,
    encode_message,
    record_size,
)
from formats.errors import FormatError
from formats.tags_code import deliver_time, tags_code_of
from rmqtool.repair.place import Place
from rmqtool.repair.tombstone import LONGEST_TIME, smallest, tombstone
from tests.scan.conftest import KERNELS
from tests.scan.tools import HOSTS, I32, check_property, declared_row, walk

PLAN = "0123456789abcdef"
MARK = "RMQTOOL_TOMBSTONE"
SCHEDULE = "SCHEDULE_TOPIC_XXXX"
HALF = "RMQ_SYS_TRANS_HALF_TOPIC"
OP = "RMQ_SYS_TRANS_OP_HALF_TOPIC"
TIMER = "rmq_sys_wheel_timer"
REVIVE = "rmq_sys_REVIVE_LOG_DefaultCluster"
INTERNAL = (SCHEDULE, HALF, OP, TIMER, REVIVE)
ORDINARY = (
    "T",
    "TopicTest",
    "%RETRY%group",
    "%DLQ%group",
    "SELF_TEST_TOPIC",
    "t" * 127,
    "%RETRY%" + "g" * 200,
)
LARGEST_RECORD_WITHOUT_BODY = 400


def place(topic: str = "TopicTest", **fields: Any) -> Place:
    given = {"queue_id": 2, "queue_offset": 77, "physical_offset": 4096, "store_timestamp": FIRST_TIME}
    return Place(topic, **{**given, **fields})


def made(where: Place, length: int, **options: Any) -> Any:
    """The parsed tombstone; fails when there is none."""
    data = tombstone(where, length, PLAN, **options)
    assert data is not None
    assert len(data) == length
    return Message.parse_exact(data)


def properties_of(message: Any) -> dict[str, str]:
    return props.decode(bytes(message.properties))


# ---- any place, any length ------------------------------------------------------------------------


@st.composite
def places(draw: st.DrawFn) -> Place:
    topic = draw(st.sampled_from(INTERNAL + ORDINARY))
    v2 = len(topic) > 127 or draw(st.booleans())
    return Place(
        topic,
        queue_id=draw(st.integers(0, 17)),
        queue_offset=draw(st.integers(0, 1 << 62)),
        physical_offset=draw(st.integers(0, 1 << 62)),
        store_timestamp=draw(st.integers(0, 1 << 43)),
        born_timestamp=draw(st.none() | st.integers(0, 1 << 43)),
        magic=MESSAGE_MAGIC_CODE_V2 if v2 else draw(st.sampled_from([None, MESSAGE_MAGIC_CODE])),
        born_host=draw(HOSTS),
        store_host=draw(HOSTS),
        flag=draw(I32),
        sys_flag=draw(I32),
        reconsume_times=draw(I32),
        prepared_transaction_offset=draw(st.integers(0, 1 << 62)),
        batch_size=draw(st.none() | st.integers(1, 40)),
        compacted=draw(st.booleans()),
    )


TEXT = st.text(
    st.characters(exclude_characters="\x00\x01\x02", exclude_categories=["Cs"]), min_size=1, max_size=30
)
KEPT = st.dictionaries(
    st.sampled_from(["KEYS", "UNIQ_KEY", "CLUSTER", "INNER_MULTI_DISPATCH", "ü"]), TEXT, max_size=4
)
WHOLE = KEPT.map(lambda pairs: props.encode(pairs, trailing_separator=False))


@pytest.mark.share
@pytest.mark.parametrize("kernels", ["python", "compiled"])
def test_every_length_from_the_smallest_on_is_an_intact_record(kernels: str) -> None:
    module = KERNELS[kernels]()

    def prop(where: Place, more: int, trailer: bool, kept: dict[str, str] | bytes | None) -> None:
        pairs = kept if isinstance(kept, dict) else None
        length = smallest(where, kept=pairs, crc_trailer=trailer) + more
        data = tombstone(where, length, PLAN, kept=kept, crc_trailer=trailer)
        assert data is not None
        assert data == tombstone(where, length, PLAN, kept=kept, crc_trailer=trailer)
        walked = walk(module, data, base=where.physical_offset)
        assert walked.rows == [declared_row(data, 0, where.physical_offset)]
        message = Message.parse_exact(data)
        assert body_crc_ok(message)
        assert declared_row(data, 0, where.physical_offset)[20] == 0  # no issue of any kind
        assert message.topic.decode() == where.topic
        for name in (
            "queue_id",
            "queue_offset",
            "physical_offset",
            "store_timestamp",
            "flag",
            "reconsume_times",
        ):
            assert message[name] == getattr(where, name)
        assert message.sys_flag & 0x700 == 0
        assert message.sys_flag & 0xC == (0x8 if where.sys_flag & 0xC == 0x8 else 0)
        if trailer:
            assert crc_trailer.verify(data, bytes(message.properties)) == "ok"

    more = st.integers(0, 40) | st.integers(0, 3000)
    check_property(prop, places(), more, st.booleans(), st.none() | KEPT | WHOLE, examples=200)


def test_room_that_is_kept_before_the_place_is_known_is_enough() -> None:
    """Positions are given to holes before it is known where in them they lie (law seed 10806)."""

    def prop(topic: str, at: int, time: int, trailer: bool, batch: int | None) -> None:
        known = Place(topic, 3, 12, 0, LONGEST_TIME, batch_size=batch)
        where = replace(known, physical_offset=at, store_timestamp=time)
        assert tombstone(where, smallest(known, crc_trailer=trailer), PLAN, crc_trailer=trailer) is not None

    topics, offsets = st.sampled_from(INTERNAL + ORDINARY), st.integers(0, (1 << 63) - 1)
    times = st.integers(-(1 << 63), (1 << 63) - 1)
    check_property(prop, topics, offsets, times, st.booleans(), st.none() | st.integers(1, 40), examples=100)


def test_below_the_smallest_length_there_is_none() -> None:
    def prop(where: Place, less: int, trailer: bool, kept: dict[str, str]) -> None:
        length = smallest(where, kept=kept, crc_trailer=trailer) - less
        assert tombstone(where, length, PLAN, kept=kept, crc_trailer=trailer) is None

    check_property(prop, places(), st.integers(1, 300), st.booleans(), KEPT, examples=100)


def test_what_the_broker_wrote_there_was_never_too_small() -> None:
    """The smallest record that a broker can have written to each of its own topics is large enough."""
    smallest_written = {
        SCHEDULE: b"DELAY\x011\x02REAL_TOPIC\x01T\x02REAL_QID\x010",
        HALF: b"REAL_TOPIC\x01T\x02TRAN_MSG\x01true\x02PGROUP\x01G\x02REAL_QID\x010",
        OP: b"TAGS\x01d",
        TIMER: b"TIMER_DELAY_SEC\x011\x02TIMER_OUT_MS\x011700000000000\x02REAL_TOPIC\x01T\x02REAL_QID\x010",
        REVIVE: b"TAGS\x01ck",
    }
    for topic, properties in smallest_written.items():
        assert smallest(place(topic)) <= len(encode_message(topic, b"x", properties))


# ---- ordinary topics ------------------------------------------------------------------------------


def test_it_carries_the_plan_and_a_tag() -> None:
    message = made(place(), 300)
    assert properties_of(message) == {MARK: PLAN, "TAGS": MARK}
    assert bytes(message.body).rstrip() == f"{MARK} {PLAN}".encode()


@pytest.mark.parametrize(
    ("room", "expected"),
    [
        (60, {MARK: PLAN, "TAGS": MARK}),
        (57, {MARK: PLAN}),
        (35, {MARK: PLAN}),
        (33, {"TAGS": MARK}),
        (24, {"TAGS": MARK}),
        (22, {"T": "T"}),
        (4, {"T": "T"}),
        (3, {}),
        (0, {}),
    ],
)
def test_it_carries_less_where_there_is_less_room(room: int, expected: dict[str, str]) -> None:
    message = made(place(), record_size(MESSAGE_MAGIC_CODE, 0, 0, len("TopicTest"), 0) + room)
    assert properties_of(message) == expected
    assert message.body_length > 0 or room == 0


def test_intact_properties_come_back_byte_for_byte() -> None:
    kept = b"TAGS\x01TagA\x02KEYS\x01k1 k2\x02\x02odd\x02UNIQ_KEY\x01U"
    assert bytes(made(place(), 300, kept=kept).properties) == kept


def test_intact_properties_without_room_give_way_to_the_mark() -> None:
    assert properties_of(made(place(), 200, kept=b"KEYS\x01" + b"k" * 200)) == {MARK: PLAN, "TAGS": MARK}


def test_pairs_that_have_to_be_there_are_there_or_there_is_no_tombstone() -> None:
    pairs = {"INNER_MULTI_DISPATCH": "%LMQ%a,%LMQ%b", "INNER_MULTI_QUEUE_OFFSET": "3,9"}
    assert properties_of(made(place(), 300, kept=pairs)) == {**pairs, MARK: PLAN, "TAGS": MARK}
    least = smallest(place(), kept=pairs)
    assert properties_of(made(place(), least, kept=pairs)) == pairs
    assert tombstone(place(), least - 1, PLAN, kept=pairs) is None


def test_a_body_that_was_compressed_is_plain() -> None:
    assert made(place(sys_flag=0x301 | 0x2), 300).sys_flag == 0x2


def test_a_commit_stays_one_and_other_transactions_become_none() -> None:
    assert [made(place(sys_flag=flag), 300).sys_flag for flag in (0x8, 0xC, 0x4, 0)] == [0x8, 0, 0, 0]


def test_a_topic_that_is_too_long_for_its_record_is_refused() -> None:
    with pytest.raises(FormatError):
        tombstone(place("t" * 200, magic=MESSAGE_MAGIC_CODE), 500, PLAN)


def test_under_compaction_it_has_no_key() -> None:
    kept = b"KEYS\x01k\x02TAGS\x01a\x02"
    assert properties_of(made(place(compacted=True), 300, kept=kept)) == {"TAGS": "a"}


# ---- inner batches --------------------------------------------------------------------------------


def test_an_inner_batch_keeps_all_its_positions() -> None:
    message = made(place(batch_size=3), 400)
    assert properties_of(message) == {"INNER_NUM": "3", "INNER_BASE": "77", MARK: PLAN, "TAGS": MARK}
    assert message.sys_flag == 0x40 | 0x80
    inner = list(inner_messages(bytes(message.body), message.queue_offset))
    assert [one.queue_offset for one in inner] == [77, 78, 79]


def test_an_inner_batch_without_room_is_one_message_over_all_positions() -> None:
    message = made(place(batch_size=30), 200)
    assert properties_of(message)["INNER_NUM"] == "30"
    assert message.sys_flag == 0


# ---- the broker's own topics ----------------------------------------------------------------------


def test_a_delayed_one_claims_to_be_a_half_message() -> None:
    message = made(place(SCHEDULE), 300)
    found = properties_of(message)
    assert found == {"REAL_TOPIC": HALF, "REAL_QID": "0", "DELAY": "3", MARK: PLAN, "TAGS": MARK}
    # due when the lost message was
    assert tags_code_of(SCHEDULE, found, FIRST_TIME) == deliver_time(3, FIRST_TIME) == FIRST_TIME + 10_000


def test_a_delayed_one_keeps_all_but_where_it_was_to_go() -> None:
    kept = b"REAL_TOPIC\x01Orders\x02DELAY\x0118\x02REAL_QID\x017\x02KEYS\x01k"
    found = properties_of(made(place(SCHEDULE), 300, kept=kept))
    assert found == {"DELAY": "18", "KEYS": "k", "REAL_TOPIC": HALF, "REAL_QID": "0"}


@pytest.mark.parametrize("delay", ["x", "0", "-3", "99999999999"])
def test_a_level_that_is_none_is_replaced(delay: str) -> None:
    kept = f"DELAY\x01{delay}\x02".encode()
    assert properties_of(made(place(SCHEDULE), 300, kept=kept))["DELAY"] == "3"


def test_the_smallest_delayed_one_is_delivered_where_nobody_reads() -> None:
    where = place(SCHEDULE)
    message = made(where, smallest(where))
    assert properties_of(message) == {"REAL_TOPIC": "TBW102", "REAL_QID": "0"}
    assert message.body_length == 1


def test_a_timed_one_deletes_a_message_that_there_is_not() -> None:
    found = properties_of(made(place(TIMER), 300))
    assert found == {
        "TIMER_OUT_MS": str(FIRST_TIME),
        "REAL_QID": "0",
        "TIMER_DEL_UNIQKEY": MARK,
        MARK: PLAN,
        "TAGS": MARK,
    }


@pytest.mark.parametrize(("out", "queue"), [("x", "0"), ("", "9"), ("5", "y")])
def test_numbers_of_a_timed_one_that_are_none_are_replaced(out: str, queue: str) -> None:
    numbers = f"TIMER_OUT_MS\x01{out}\x02REAL_QID\x01{queue}\x02".encode()
    kept = numbers + b"REAL_TOPIC\x01A\x02TIMER_DEL_UNIQKEY\x01A+U\x02"
    found = properties_of(made(place(TIMER), 300, kept=kept))
    assert found["TIMER_OUT_MS"] == ("5" if out == "5" else str(FIRST_TIME))
    assert found["REAL_QID"] == ("9" if queue == "9" else "0")
    assert (found["REAL_TOPIC"], found["TIMER_DEL_UNIQKEY"]) == ("A", MARK)


def test_a_half_one_was_asked_for_too_often_and_belongs_to_nobody() -> None:
    kept = b"REAL_TOPIC\x01Orders\x02PGROUP\x01G\x02TRANSACTION_CHECK_TIMES\x011\x02REAL_QID\x010"
    found = properties_of(made(place(HALF), 300, kept=kept))
    assert found == {
        "REAL_TOPIC": "Orders",
        "REAL_QID": "0",
        "TRANSACTION_CHECK_TIMES": "2147483647",
        "PGROUP": MARK,
    }


def test_a_half_one_without_room_is_too_old() -> None:
    where = place(HALF)
    message = made(where, smallest(where))
    assert (message.born_timestamp, message.properties_length, message.body_length) == (0, 0, 0)
    assert made(where, 300).born_timestamp == FIRST_TIME


@pytest.mark.parametrize("room", range(1, 60))
def test_an_op_one_is_done_with_and_settles_nothing(room: int) -> None:
    message = made(place(OP), record_size(MESSAGE_MAGIC_CODE, 0, 0, len(OP), len(b"TAGS\x01d")) + room)
    assert properties_of(message)["TAGS"] == "d"
    body = bytes(message.body)
    assert body == b"-" or int(body) == -1


def test_an_op_one_takes_no_comma_nor_tag_from_what_was_there() -> None:
    message = made(place(OP), 300, kept=b"TAGS\x01x\x02UNIQ_KEY\x01U")
    assert properties_of(message) == {"UNIQ_KEY": "U", "TAGS": "d", MARK: PLAN}
    assert b"," not in bytes(message.body)


@pytest.mark.parametrize("tag", ["ck", "ack", "bAck"])
def test_a_revive_one_has_no_tag_of_the_service(tag: str) -> None:
    for length in range(smallest(place(REVIVE)), LARGEST_RECORD_WITHOUT_BODY):
        message = made(place(REVIVE), length, kept=f"TAGS\x01{tag}\x02UNIQ_KEY\x01U".encode())
        assert properties_of(message).get("TAGS") in (None, MARK)


# ---- hosts ----------------------------------------------------------------------------------------


def test_the_layout_follows_the_hosts() -> None:
    v6 = (bytes(range(16)), 1)
    assert made(place(born_host=v6), 300).sys_flag == 0x10
    assert made(place(store_host=v6), 300).sys_flag == 0x20
    assert smallest(replace(place(), born_host=v6, store_host=v6)) == smallest(place()) + 24


def test_an_op_one_gives_up_its_properties_for_a_body_that_is_a_number() -> None:
    """An op message of 4.x may have a body of one digit, in which no negative number fits."""
    kept = b"TAGS\x01d\x02UNIQ_KEY\x01" + b"U" * 32
    length = record_size(MESSAGE_MAGIC_CODE, 0, 0, len(OP), len(kept)) + 1
    message = made(place(OP), length, kept=kept)
    assert properties_of(message) == {"TAGS": "d", MARK: PLAN}
    assert int(bytes(message.body)) == -1
