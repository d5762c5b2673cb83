"""Bytes that real brokers wrote: all build again as they are, and mean what Java says."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pytest

import fixtures
from formats import batch, checkpoint, commitlog, consumequeue, crc_trailer, index, message_id, tags_code
from formats import properties as props
from formats.primitives import Schema, sizeof

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


API = fixtures.golden_names("api")
BEFORE_491 = ("4.7.0", "4.9.0")
SLOTS, ITEMS = 100, 400

OpenGolden = "Callable[[str], Golden]"


def records(store: Path) -> Iterator[tuple[int, bytes, Any]]:
    """(physical offset, bytes, parsed) of every record up to the first word that is not a record magic."""
    for path in sorted((store / "commitlog").glob("[0-9]*")):
        raw = path.read_bytes()
        position = 0
        while position + 8 <= len(raw):
            size, magic = struct.unpack_from(">ii", raw, position)
            if magic == commitlog.BLANK_MAGIC_CODE:
                blank = commitlog.Blank.parse(raw[position:])
                assert blank.total_size == len(raw) - position
                assert commitlog.Blank.build(blank) == raw[position : position + 8]
            if magic not in commitlog.MESSAGE_MAGIC_CODES:
                break
            record = raw[position : position + size]
            yield int(path.name) + position, record, commitlog.Message.parse_exact(record)
            position += size


@pytest.mark.share
@pytest.mark.parametrize("name", API)
def test_records(name: str, golden: OpenGolden) -> None:
    opened = golden(name)
    expected = {row["physicalOffset"]: row for row in opened.expected["records"]}
    compared = 0
    for offset, record, message in records(opened.path):
        assert commitlog.Message.build(message) == record
        assert commitlog.body_crc_ok(message)
        assert message.physical_offset == offset
        assert encode_again(message) == record
        assert props.Properties.build(props.Properties.parse_exact(message.properties)) == message.properties
        if offset in expected:
            compare(message, expected[offset], opened.release)
            compared += 1
    assert compared == len(expected) > 0


def encode_again(message: Any) -> bytes:
    return commitlog.encode_message(
        message.topic.decode(),
        message.body,
        message.properties,
        queue_id=message.queue_id,
        flag=message.flag,
        queue_offset=message.queue_offset,
        physical_offset=message.physical_offset,
        sys_flag=message.sys_flag,
        born_timestamp=message.born_timestamp,
        born_host=(message.born_host.ip, message.born_host.port),
        store_timestamp=message.store_timestamp,
        store_host=(message.store_host.ip, message.store_host.port),
        reconsume_times=message.reconsume_times,
        prepared_transaction_offset=message.prepared_transaction_offset,
    )


def compare(message: Any, row: dict[str, Any], release: str) -> None:
    """Against Java's own view of the record; releases up to 4.9.0 decode properties by their own rule."""
    decoded = (
        props.decode_by_split(message.properties)
        if release in BEFORE_491
        else props.decode(message.properties)
    )
    assert decoded == row["properties"]
    found = {
        "magic": message.magic,
        "storeSize": message.total_size,
        "topic": message.topic.decode(),
        "queueId": message.queue_id,
        "queueOffset": message.queue_offset,
        "flag": message.flag,
        "sysFlag": message.sys_flag,
        "bornTimestamp": message.born_timestamp,
        "storeTimestamp": message.store_timestamp,
        "reconsumeTimes": message.reconsume_times,
        "preparedTransactionOffset": message.prepared_transaction_offset,
        "bodyCRC": message.body_crc,
        "bodyLength": len(message.body),
        "javaTagsCode": tags_code.tags_code_of(row["topic"], decoded, message.store_timestamp),
    }
    assert found == {name: row[name] for name in found}
    host = message.store_host
    made = message_id.OffsetMessageId(host.ip, host.port, message.physical_offset)
    assert made.build() == row["offsetMsgId"]
    assert message_id.OffsetMessageId.decode(row["offsetMsgId"]) == made


@pytest.mark.parametrize("name", API)
def test_queues_index_and_state(name: str, golden: OpenGolden) -> None:
    store = golden(name).path
    for directory, schema in (
        ("consumequeue", consumequeue.Unit),
        ("batchconsumequeue", consumequeue.BatchUnit),
    ):
        for path in store.glob(f"{directory}/*/*/[0-9]*"):
            rebuild_rows(path.read_bytes(), schema)
    for path in store.glob("index/[0-9]*"):
        raw = path.read_bytes()
        assert len(raw) == index.file_size(SLOTS, ITEMS)
        schema = index.index_file(SLOTS, ITEMS)
        assert schema.build(schema.parse_exact(raw)) == raw
    raw = (store / "checkpoint").read_bytes()
    parsed = checkpoint.Checkpoint.parse_exact(raw)
    assert checkpoint.Checkpoint.build(parsed) == raw
    assert not any(parsed.reserved)
    assert checkpoint.Lock.parse_exact((store / "lock").read_bytes())
    for path in store.glob("abort*"):
        assert checkpoint.Abort.build(checkpoint.Abort.parse(path.read_bytes())) == path.read_bytes()


def rebuild_rows(raw: bytes, schema: Schema) -> None:
    size = sizeof(schema)
    rows = [raw[position : position + size] for position in range(0, len(raw), size)]
    assert [schema.build(schema.parse_exact(row)) for row in rows] == rows


@pytest.mark.parametrize("name", ["v498-cqext", "v533-cqext"])
def test_extension_units(name: str, golden: OpenGolden) -> None:
    opened = golden(name)
    expected = [
        unit[-1]
        for queue in opened.expected["cqUnits"]
        for unit in queue["units"]
        if isinstance(unit[-1], dict)
    ]
    found = []
    for directory in sorted((opened.path / "consumequeue_ext").glob("*/*")):
        for path in sorted(directory.glob("[0-9]*")):
            found += extension_units(path.read_bytes())
    plain = [(u.size, u.tags_code, u.msg_store_time, u.bit_map.hex()) for u in found]
    java = [(u["size"], u["tagsCode"], u["msgStoreTime"], (u["bitMap"] or "").lower()) for u in expected]
    assert sorted(plain) == sorted(java)
    assert len(plain) > 100


def extension_units(raw: bytes) -> list[Any]:
    units, position = [], 0
    while raw[position : position + 2] not in (consumequeue.EXT_END_MARKER, b"\0\0"):
        unit = consumequeue.ExtUnit.parse(raw[position:])
        assert consumequeue.ExtUnit.build(unit) == raw[position : position + unit.size]
        units.append(unit)
        position += unit.size
    return units


def test_inner_batches(golden: OpenGolden) -> None:
    sizes = []
    for _, _, message in records(golden("v533-batchcq").path):
        if message.sys_flag & commitlog.SysFlag.INNER_BATCH:
            body = batch.ClientMessages.parse_exact(message.body)
            assert batch.ClientMessages.build(body) == message.body
            inner = list(batch.inner_messages(message.body, message.queue_offset))
            properties = props.decode(message.properties)
            assert len(inner) == int(properties[props.INNER_NUM])
            assert inner[0].queue_offset == int(properties[props.INNER_BASE])
            sizes.append(len(inner))
    assert set(sizes) >= {1, 2, 5, 30}


def test_crc_trailers(golden: OpenGolden) -> None:
    checked = 0
    for _, record, message in records(golden("v533-props-crc").path):
        assert crc_trailer.verify(record, message.properties) == "ok"
        assert crc_trailer.seal(record) == record
        checked += 1
    assert checked == 133


def test_epoch_file_and_identity(golden: OpenGolden) -> None:
    store = golden("b533-controller").path
    raw = (store / "epochFileCheckpoint").read_bytes()
    parsed = checkpoint.EpochFile.parse(raw)
    assert parsed.is_valid
    assert checkpoint.EpochFile.of(parsed.entries) == parsed
    assert parsed.build() == raw
    raw = (store / "brokerIdentity").read_bytes()
    assert checkpoint.BrokerIdentity.parse(raw).build() == raw


@pytest.mark.parametrize("name", ["b497-full", "b533-full"])
def test_unique_ids_are_dated_by_their_record(name: str, golden: OpenGolden) -> None:
    """A Java client on UTC made these ids, each within moments of the message's born timestamp."""
    dated = 0
    for _, _, message in records(golden(name).path):
        text = props.decode(message.properties).get(props.UNIQ_KEY)
        if text is not None:
            made = message_id.UniqueClientId.decode(text)
            assert made.build() == text
            assert abs(made.created_near(message.born_timestamp) - message.born_timestamp) < 60_000
            dated += 1
    assert dated > 100
