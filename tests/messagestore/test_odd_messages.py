"""Messages that no store takes, and odd ones that it takes: those beside them are put."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

from rmqtool import Message
from rmqtool.messagestore.messages import PutStatus
from tests.messagestore.helpers import open_small

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("release", "message", "status"),
    [
        ("5.3.3", Message("", b""), PutStatus.MESSAGE_ILLEGAL),
        ("5.3.3", Message("T" * 128, b""), PutStatus.MESSAGE_ILLEGAL),
        ("5.3.3", Message("%RETRY%" + "T" * 120, b""), PutStatus.PUT_OK),
        ("5.3.3", Message("%RETRY%" + "T" * 249, b""), PutStatus.MESSAGE_ILLEGAL),
        ("4.9.8", Message("%RETRY%" + "T" * 121, b""), PutStatus.MESSAGE_ILLEGAL),
        ("5.3.3", Message("T", bytes(101)), PutStatus.MESSAGE_ILLEGAL),
        ("5.3.3", Message("T", bytes(100)), PutStatus.PUT_OK),
        ("5.3.3", Message("T", b"", properties={"a": "v" * 40_000}), PutStatus.PROPERTIES_SIZE_EXCEEDED),
        ("4.9.8", Message("T", b"", properties={"a": "v" * 40_000}), PutStatus.MESSAGE_ILLEGAL),
        ("4.9.8", Message("T", b"", properties={"a": "é" * 20_000}), PutStatus.PROPERTIES_SIZE_EXCEEDED),
        ("5.3.3", Message("T", b"", properties={"KEYS": "v"}), PutStatus.MESSAGE_ILLEGAL),
        ("5.3.3", Message("T", b"", tags="a\x02b"), PutStatus.MESSAGE_ILLEGAL),
        ("5.3.3", Message("T", None), PutStatus.MESSAGE_ILLEGAL),  # type: ignore[arg-type]
        ("5.3.3", Message("T", bytearray(b"x")), PutStatus.PUT_OK),
        ("5.3.3", Message("T", b"", flag=1 << 31), PutStatus.MESSAGE_ILLEGAL),
        ("5.3.3", Message("T", b"", properties={"a": "v" * 4000}), PutStatus.MESSAGE_ILLEGAL),
    ],
)  # fmt: skip
def test_messages_that_no_store_takes(
    tmp_path: Path, release: str, message: Message, status: PutStatus
) -> None:
    with open_small(tmp_path / "store", release, maxMessageSize=100) as store:
        ack = store.put(message)
        assert ack.status is status
        assert [one.status for one in store.put_many([message, Message("U", b"")])] == [
            status,
            PutStatus.PUT_OK,
        ]
        assert bool(ack.message) is (status is not PutStatus.PUT_OK)


@pytest.mark.share
@pytest.mark.parametrize("beside", [1, 40])
@pytest.mark.parametrize(
    "odd",
    [
        Message(None, b""),  # type: ignore[arg-type]
        Message(b"T", b""),  # type: ignore[arg-type]
        Message("T", "text"),  # type: ignore[arg-type]
        Message("T", b"", queue_id="0"),  # type: ignore[arg-type]
        Message("T", b"", queue_id=-1),
        Message("T", b"", keys=[5]),  # type: ignore[list-item]
        Message("T", b"", properties=5),  # type: ignore[arg-type]
        Message("T", b"", queue_id=np.array([1, 2])),  # type: ignore[arg-type]
        Message("T", b"", flag=np.array([1, 2])),  # type: ignore[arg-type]
        Message("T", b"", tags=np.array([1, 2])),  # type: ignore[arg-type]
        Message("T", b"", flag="0"),  # type: ignore[arg-type]
        Message("T", b"", born_timestamp=1 << 63),
        Message("T", b"", born_timestamp="now"),  # type: ignore[arg-type]
        Message("T", b"", born_host="10.0.0.1:1"),  # type: ignore[arg-type]
        Message("T", b"", born_host=(bytes(5), 1)),
        Message("T", b"", born_host=(bytes(4), 1 << 16)),
    ],
)
def test_an_odd_message_is_illegal_and_those_beside_it_are_put(
    tmp_path: Path, odd: Message, beside: int
) -> None:
    """It was an exception, was stored in another way, or took the others with it."""
    with open_small(tmp_path / "store") as store:
        store.topics.set("T")
        assert store.put(odd).status is PutStatus.MESSAGE_ILLEGAL
        assert store.put_async(odd).result(10).status is PutStatus.MESSAGE_ILLEGAL
        assert store.put_batch([odd])[0].status is PutStatus.MESSAGE_ILLEGAL
        assert store.send_delayed(odd, 1).status is PutStatus.MESSAGE_ILLEGAL
        assert store.prepare_transaction(odd).status is PutStatus.MESSAGE_ILLEGAL
        others = [Message("T", b"", queue_id=0)] * beside
        statuses = [ack.status for ack in store.put_many([*others, odd, *others])]
        assert statuses.pop(beside) is PutStatus.MESSAGE_ILLEGAL
        assert set(statuses) == {PutStatus.PUT_OK}
        assert store.offsets("T", 0) == (0, 2 * beside)


def test_numbers_of_numpy_are_numbers(tmp_path: Path) -> None:
    seven = np.int64(7)
    message = Message("T", b"", queue_id=np.int64(1), born_timestamp=seven, flag=seven)  # type: ignore[arg-type]
    with open_small(tmp_path / "store") as store:
        acks = [store.put(message), store.put_async(message).result(10), *store.put_many([message] * 40)]
        assert {ack.status for ack in acks} == {PutStatus.PUT_OK}
        assert store.offsets("T", 1) == (0, 42)


def test_a_born_time_before_1970_stays(tmp_path: Path) -> None:
    with open_small(tmp_path / "store") as store:
        acks = store.put_many([Message("T", b"", queue_id=0, born_timestamp=-5)] * 40)
        assert {store.message_at(ack.physical_offset).born_timestamp for ack in acks} == {-5}


def test_a_queue_below_0_in_a_table_is_illegal(tmp_path: Path) -> None:
    table = pa.table({"topic": ["T", "T", "T"], "body": [b""] * 3, "queue_id": [0, -1, None]})
    with open_small(tmp_path / "store") as store:
        answer = store.put_many(table)
    assert answer["status"].to_pylist() == ["PUT_OK", "MESSAGE_ILLEGAL", "PUT_OK"]
    assert answer["queue_id"][1].as_py() == -1
