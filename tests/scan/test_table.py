"""The record table: types by the contract, values against Java's reading of real logs and by construction."""

from __future__ import annotations

import gc
import hashlib
import ipaddress
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import strategies as st

import fixtures
from fixtures.builder import HandmadeLog
from formats import properties as declared
from formats.commitlog import SysFlag, encode_message
from formats.primitives import java_utf8_decode
from rmqtool.scan.events import Records
from rmqtool.scan.fields import ROW_WIDTH, STATUS_WIDTH, Check, Field, Issue, Status
from rmqtool.scan.table import COLUMNS, DEFAULT_COLUMNS, bad_bodies, table_schema, to_batch
from tests.scan.test_walk import replaced, segments
from tests.scan.tools import array, check_property, encode_raw_topic, logs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import ModuleType

BASE = 8192

INT64 = [
    "segment",
    "position",
    "physical_offset",
    "stored_physical_offset",
    "queue_offset",
    "prepared_transaction_offset",
    "born_timestamp",
    "store_timestamp",
]
INT32 = [
    "store_size",
    "body_crc",
    "queue_id",
    "flag",
    "sys_flag",
    "reconsume_times",
    "body_length",
    "plain_length",
]
STRING = [
    "path",
    "magic",
    "crc",
    "topic",
    "topic_hex",
    "tags",
    "uniq_key",
    "born_host",
    "store_host",
    "offset_msg_id",
    "compression",
    "transaction",
]


def records_of(data: bytes, kernels: ModuleType, base: int = BASE) -> Records:
    """All records that `data` begins with, as one run."""
    rows = np.empty((5000, ROW_WIDTH), np.int64)
    status = np.zeros(STATUS_WIDTH, np.int64)
    window = array(data)
    kernels.walk(window, 0, 0, len(data), base, int(Check.ALL), rows, status)
    return Records(rows[: status[Status.COUNT]], window, 0)


def table(
    data: bytes, kernels: ModuleType, columns: Sequence[str] | None = None, **options: Any
) -> pa.RecordBatch:
    given = {"base": BASE, "path": f"commitlog/{BASE:020d}", **options}
    names = list(COLUMNS) if columns is None else columns
    return to_batch(records_of(data, kernels, given["base"]), kernels=kernels, columns=names, **given)


def rows_of(data: bytes, kernels: ModuleType, **options: Any) -> list[dict[str, Any]]:
    batch = table(data, kernels, **options)
    batch.validate(full=True)
    return batch.to_pylist()


def one(data: bytes, kernels: ModuleType, **options: Any) -> dict[str, Any]:
    (row,) = rows_of(data, kernels, **options)
    return row


def test_types_are_those_of_the_contract() -> None:
    kinds = {column.name: column.type for column in COLUMNS.values()}
    expected: dict[str, pa.DataType] = dict.fromkeys(INT64, pa.int64())
    expected |= dict.fromkeys(INT32, pa.int32()) | dict.fromkeys(STRING, pa.string())
    expected |= {"keys": pa.list_(pa.string()), "properties": pa.map_(pa.string(), pa.string())}
    expected |= {"properties_raw": pa.binary(), "body": pa.binary()}
    assert {field.name: field.type for field in table_schema()} == expected
    extra = {"body_sha256": pa.string(), "plain_body_sha256": pa.string(), "store": pa.string()}
    assert {name: kinds[name] for name in extra} == extra
    assert set(DEFAULT_COLUMNS) == set(expected)


def test_a_batch_has_the_schema_that_was_asked_for(kernels: ModuleType) -> None:
    data = encode_message("T", b"x", physical_offset=BASE)
    assert table(data, kernels, ["topic", "flag"]).schema == table_schema(["topic", "flag"])
    assert table(data, kernels).schema.names == list(COLUMNS)
    with pytest.raises(KeyError):
        table(data, kernels, ["no_such_column"])


def test_an_empty_batch_has_all_columns(kernels: ModuleType) -> None:
    batch = table(b"", kernels)
    batch.validate(full=True)
    assert batch.num_rows == 0
    assert batch.schema == table_schema(list(COLUMNS))


# ---- against Java --------------------------------------------------------------------------------

MAGIC = {-626843481: "V1", -626843477: "V2"}
DIRECT = {
    "physical_offset": "physicalOffset",
    "stored_physical_offset": "physicalOffset",
    "store_size": "storeSize",
    "body_crc": "bodyCRC",
    "topic": "topic",
    "queue_id": "queueId",
    "queue_offset": "queueOffset",
    "flag": "flag",
    "sys_flag": "sysFlag",
    "born_timestamp": "bornTimestamp",
    "store_timestamp": "storeTimestamp",
    "reconsume_times": "reconsumeTimes",
    "prepared_transaction_offset": "preparedTransactionOffset",
    "offset_msg_id": "offsetMsgId",
    "tags": "tags",
    "uniq_key": "uniqKey",
    "body_length": "bodyLength",
    "body_sha256": "bodySha256",
}


def host(pair: tuple[str, int]) -> str:
    address = ipaddress.ip_address(pair[0])
    return f"[{address}]:{pair[1]}" if address.version == 6 else f"{address}:{pair[1]}"


def javas(record: dict[str, Any], base: int) -> dict[str, Any]:
    """What every column must hold for a record as Java's store reads it."""
    row = {ours: record[theirs] for ours, theirs in DIRECT.items()}
    compressed = bool(record["sysFlag"] & 1)
    kinds = {0: "zlib", 0x100: "lz4", 0x200: "zstd", 0x300: "zlib"}
    row |= {
        "segment": base,
        "position": record["physicalOffset"] - base,
        "magic": MAGIC[record["magic"]],
        "crc": "ok" if record["bodyLength"] > 0 else "absent",
        "topic_hex": None,
        "compression": kinds[record["sysFlag"] & 0x700] if compressed else None,
        "transaction": ["none", "prepared", "commit", "rollback"][record["sysFlag"] >> 2 & 3],
        "born_host": host(record["bornHost"]),
        "store_host": host(record["storeHost"]),
        "keys": None if record["keys"] is None else [key for key in record["keys"].split(" ") if key],
        "plain_body_sha256": record["plainSha256"] if compressed else record["bodySha256"],
    }
    return row


@pytest.mark.share
@pytest.mark.parametrize("name", fixtures.golden_names("api"))
def test_columns_are_java_s(golden: Callable[[str], fixtures.Golden], kernels: ModuleType, name: str) -> None:
    opened = golden(name)
    expected = {record["physicalOffset"]: record for record in opened.expected["records"]}
    seen = 0
    for base, data in segments(opened):
        for row in rows_of(data, kernels, base=base, path="p", store="s"):
            record = expected[row["physical_offset"]]
            wanted = javas(record, base)
            assert {key: row[key] for key in wanted} == wanted
            raw = row["properties_raw"]
            assert dict(row["properties"]) == declared.decode(raw)
            known = {
                k: v for k, v in declared.decode(raw).items() if "\x01" not in v or k in record["properties"]
            }
            assert known == record["properties"] or opened.release >= "4.9.8"
            if opened.release >= "4.9.8":
                assert dict(row["properties"]) == record["properties"]
            assert hashlib.sha256(row["body"]).hexdigest() == record["bodySha256"]
            assert hashlib.sha256(row["plain_body"]).hexdigest() == row["plain_body_sha256"]
            assert (row["plain_length"], row["body_length"]) == (len(row["plain_body"]), len(row["body"]))
            assert row["record"] == data[row["position"] : row["position"] + row["store_size"]]
            assert (row["path"], row["store"]) == ("p", "s")
            assert row["issues"] & ~int(Issue.PROPERTIES_SYNTAX | Issue.TOPIC_CHARACTERS) == 0
            seen += 1
    assert seen == len(expected)


# ---- text that makes trouble ---------------------------------------------------------------------


def test_topics_that_cannot_be_decoded(kernels: ModuleType) -> None:
    topics = [b"good", b"\xff\xfe", "grün".encode(), b"", b"a\xed\xa0\x80", b"nul\0"]
    data = b"".join(encode_raw_topic(topic, body=b"x") for topic in topics)
    rows = rows_of(data, kernels)
    assert [row["topic"] for row in rows] == ["good", None, "grün", "", None, "nul\0"]
    assert [row["topic_hex"] for row in rows] == [None, "fffe", None, None, "61eda080", None]


def test_properties_that_cannot_be_decoded(kernels: ModuleType) -> None:
    """One ill-formed string in a batch changes no other row."""
    strings = [
        b"TAGS\x01a\x02KEYS\x01k1 k2\x02UNIQ_KEY\x01id\x02",
        b"TAGS\x01\xff\x02KEYS\x01\xc3 k\x02UNIQ_KEY\x01\xed\xa0\x80\x02",
        b"",
        "TAGS\x01é\x02K\x01v".encode(),
        b"TAGS\x01a\x02TAGS\x01b\x02",
        b"junk\x02TAGS\x01a",
        b"\xff\x01one\x02\xfe\x01two\x02",
        b"TAGS\x01a\x02\x02KEYS\x01b\x02",
        b"\x02TAGS\x01a\x02",
        b"TAGS\x01a\x02\x02",
        b"TAGS\x01a\x02",
    ]
    rows = rows_of(b"".join(encode_message("T", b"", raw) for raw in strings), kernels)
    assert [dict(row["properties"]) for row in rows] == [declared.decode(raw) for raw in strings]
    assert [row["properties_raw"] for row in rows] == strings
    assert [row["tags"] for row in rows][:7] == ["a", "\ufffd", None, "é", "b", "a", None]
    assert rows[0]["keys"] == ["k1", "k2"]
    assert rows[1]["keys"] == ["\ufffd", "k"]
    assert rows[1]["uniq_key"] == java_utf8_decode(b"\xed\xa0\x80")[0]
    assert rows[2]["keys"] is None
    assert [row["properties_lost"] for row in rows] == [
        *(False, True, False, False, True, True, True),
        *(True, True, True, False),
    ]
    assert dict(rows[6]["properties"]) == {"\ufffd": "two"}


def test_the_order_of_properties_is_that_of_first_appearance(kernels: ModuleType) -> None:
    raw = b"b\x011\x02a\x012\x02b\x013\x02c\x014\x02"
    assert one(encode_message("T", b"", raw), kernels)["properties"] == [("b", "3"), ("a", "2"), ("c", "4")]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("a", ["a"]), ("a b", ["a", "b"]), (" a  b ", ["a", "b"]), (" ", []), ("   ", []),
        ("a\tb", ["a\tb"]), ("ключ k", ["ключ", "k"]), ("a\x01b c", ["a\x01b", "c"]),
    ],
)  # fmt: skip
def test_keys(kernels: ModuleType, keys: str, expected: list[str]) -> None:
    raw = f"KEYS\x01{keys}\x02".encode()
    without = encode_message("T")
    rows = rows_of(without + encode_message("T", b"", raw) + without, kernels)
    assert [row["keys"] for row in rows] == [None, expected, None]


def test_any_log(kernels: ModuleType, effort: int) -> None:
    """Text columns of any batch are what the declared decoder says of each record alone."""

    def prop(data: bytes) -> None:
        for row in rows_of(data, kernels):
            raw = row["properties_raw"]
            decoded = declared.decode(raw)
            assert dict(row["properties"]) == decoded
            assert list(dict(row["properties"])) == list(decoded)
            assert (row["tags"], row["uniq_key"]) == (decoded.get("TAGS"), decoded.get("UNIQ_KEY"))
            keys = decoded.get("KEYS")
            assert row["keys"] == (None if keys is None else declared.split_keys(keys))
            assert row["properties_lost"] == (not declared.is_lossless(raw))

    check_property(prop, logs(base=BASE), examples=60 * effort)


def test_hosts(kernels: ModuleType) -> None:
    v4, v6 = bytes([192, 168, 1, 10]), ipaddress.ip_address("2001:db8::1").packed
    pairs = [((v4, 1), (v6, 2)), ((v6, -1), (v4, 65535)), ((v6, 3), (v6, 4)), ((v4, 1), (v4, 1 << 30))]
    data = b"".join(encode_message("T", born_host=born, store_host=store) for born, store in pairs)
    rows = rows_of(data, kernels)
    assert [(row["born_host"], row["store_host"]) for row in rows] == [
        ("192.168.1.10:1", "[2001:db8::1]:2"),
        ("[2001:db8::1]:-1", "192.168.1.10:65535"),
        ("[2001:db8::1]:3", "[2001:db8::1]:4"),
        ("192.168.1.10:1", "192.168.1.10:1073741824"),
    ]
    places = [row["physical_offset"] for row in rows]
    assert rows[0]["offset_msg_id"] == f"{v6.hex().upper()}00000002{places[0]:016X}"
    assert rows[1]["offset_msg_id"] == f"C0A8010A0000FFFF{places[1]:016X}"


def test_the_id_is_made_of_the_place_not_of_the_field(kernels: ModuleType) -> None:
    row = one(encode_message("T", physical_offset=77), kernels)
    assert (row["physical_offset"], row["stored_physical_offset"]) == (BASE, 77)
    assert row["offset_msg_id"].endswith(f"{BASE:016X}")


@pytest.mark.parametrize(
    ("flags", "compression", "transaction"),
    [
        (0, None, "none"), (0x300, None, "none"), (0x1, "zlib", "none"), (0x101, "lz4", "none"),
        (0x201, "zstd", "none"), (0x301, "zlib", "none"), (0x401, "unknown", "none"),
        (0x701, "unknown", "none"),
        (0x4, None, "prepared"), (0x8, None, "commit"), (0xC, None, "rollback"), (0x40000000, None, "none"),
        (-1 & ~0x31, None, "rollback"), (-1 & ~0x30, "unknown", "rollback"),
    ],
)  # fmt: skip
def test_flags(kernels: ModuleType, flags: int, compression: str | None, transaction: str) -> None:
    row = one(replaced(encode_message("T", b"x"), sys_flag=flags), kernels)
    assert (row["sys_flag"], row["compression"], row["transaction"]) == (flags, compression, transaction)


def test_crc_and_issues(kernels: ModuleType) -> None:
    good = encode_message("T", b"body", physical_offset=BASE)
    log = good + good.replace(b"body", b"bodx") + encode_message("T")
    records = records_of(log, kernels)
    assert bad_bodies(records).tolist() == [len(good)]
    rows = rows_of(log, kernels)
    assert [row["crc"] for row in rows] == ["ok", "bad", "absent"]
    assert [bool(row["issues"] & Issue.OFFSET) for row in rows] == [False, True, True]
    records.rows[0, Field.CRC_STATE] = 3
    assert to_batch(records, base=BASE, path="", kernels=kernels, columns=["crc"])["crc"][0].as_py() is None


def test_negative_lengths_are_shown_as_stored(kernels: ModuleType) -> None:
    from formats.commitlog import Message

    record = Message.parse(encode_message("T"))
    row = one(Message.build({**record, "body_length": -7, "properties_length": -1}), kernels)
    assert (row["body_length"], row["plain_length"], row["body"], row["crc"]) == (-7, 0, b"", "absent")
    assert (row["properties"], row["properties_raw"], row["keys"]) == ([], b"", None)


def test_a_batch_outlives_the_window(kernels: ModuleType) -> None:
    window = bytearray(encode_message("TopicTest", b"body", b"TAGS\x01tag\x02", physical_offset=BASE))
    rows = np.empty((1, ROW_WIDTH), np.int64)
    status = np.zeros(STATUS_WIDTH, np.int64)
    view = np.frombuffer(window, np.uint8)
    kernels.walk(view, 0, 0, len(window), BASE, int(Check.ALL), rows, status)
    batch = to_batch(Records(rows, view, 0), base=BASE, path="p", kernels=kernels, columns=list(COLUMNS))
    before = batch.to_pylist()
    window[:] = bytes(len(window))
    rows[:] = -1
    assert batch.to_pylist() == before


def test_a_batch_holds_no_window(kernels: ModuleType) -> None:
    """Not even in a cycle, which is found late: the memory of `dump --safe-io` grew with the log."""
    records = records_of(encode_message("TopicTest", b"body", b"", physical_offset=BASE), kernels)
    window = weakref.ref(records.window)
    gc.disable()
    try:
        made = to_batch(records, base=BASE, path="p", kernels=kernels, columns=list(COLUMNS))
        del records
        assert window() is None
    finally:
        gc.enable()
    assert made.num_rows


def test_windows_that_begin_inside_of_the_segment(kernels: ModuleType) -> None:
    log = HandmadeLog(first_offset=BASE)
    log.put("First", b"one", {"TAGS": "A", "KEYS": "k"})
    second = log.put("Second", b"two", {"TAGS": "B"}, sys_flag=int(SysFlag.COMMIT))
    data = log.files()[BASE]
    start = second.physical_offset - BASE
    rows = np.empty((4, ROW_WIDTH), np.int64)
    status = np.zeros(STATUS_WIDTH, np.int64)
    window = array(data[start:])
    kernels.walk(window, 0, start, len(data), BASE, int(Check.ALL), rows, status)
    part = Records(rows[: status[0]], window, start)
    alone = to_batch(part, base=BASE, path=f"commitlog/{BASE:020d}", kernels=kernels, columns=list(COLUMNS))
    assert alone.to_pylist() == rows_of(data, kernels)[1:]


def test_any_batch_is_valid_arrow(kernels: ModuleType, effort: int) -> None:
    def prop(data: bytes, chosen: set[str]) -> None:
        names = [name for name in COLUMNS if name in chosen]
        batch = table(data, kernels, names)
        batch.validate(full=True)
        assert batch.schema == table_schema(names)

    check_property(prop, logs(base=BASE), st.sets(st.sampled_from(sorted(COLUMNS))), examples=30 * effort)
