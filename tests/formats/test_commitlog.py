"""Records: the known vectors, every limit, and round trips in all layouts."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import commitlog as cl
from formats import properties as props
from formats.errors import FormatError
from formats.primitives import offset_of, sizeof
from tests.formats.catalogue import message_arguments

HELLO = bytes.fromhex(
    "00000084 DAA320A7 69C865ED 00000003 00000000 0000000000000005 0000000000000000 00000000"
    "0000018BCFE56800 C0A8010A0000D431 0000018BCFE5687B 0A00000100002A9F 00000000 0000000000000000"
    "0000000E 48656C6C6F20526F636B65744D51 09 546F70696354657374"
    "0012 4B455953016B310254414753015461674102"
)
V4, V6 = bytes([10, 0, 0, 1]), bytes.fromhex("20010db8000000000000000000000001")
BODY_LENGTH_AT = 84
TOPIC_LENGTH_AT = 88


def test_the_worked_record_parses() -> None:
    message = cl.Message.parse_exact(HELLO)
    assert len(HELLO) == message.total_size == 132
    assert (message.magic, message.body_crc) == (cl.MESSAGE_MAGIC_CODE, 0x69C865ED)
    assert (message.queue_id, message.flag, message.queue_offset, message.physical_offset) == (3, 0, 5, 0)
    assert (message.born_timestamp, message.store_timestamp) == (1700000000000, 1700000000123)
    assert (message.born_host.ip, message.born_host.port) == (bytes([192, 168, 1, 10]), 54321)
    assert (message.store_host.ip, message.store_host.port) == (V4, 10911)
    assert (message.body, message.topic) == (b"Hello RocketMQ", b"TopicTest")
    assert props.decode(message.properties) == {"KEYS": "k1", "TAGS": "TagA"}
    assert cl.body_crc_ok(message)
    assert cl.Message.build(message) == HELLO


def test_the_worked_record_is_encoded() -> None:
    record = cl.encode_message(
        "TopicTest",
        b"Hello RocketMQ",
        props.encode({"KEYS": "k1", "TAGS": "TagA"}, trailing_separator=True),
        queue_id=3,
        queue_offset=5,
        born_timestamp=1700000000000,
        born_host=(bytes([192, 168, 1, 10]), 54321),
        store_timestamp=1700000000123,
        store_host=(V4, 10911),
    )
    assert record == HELLO


def test_a_changed_body_fails_its_crc() -> None:
    assert not cl.body_crc_ok(cl.Message.parse(HELLO.replace(b"Hello", b"Jello")))


@pytest.mark.parametrize(("release", "size"), [("up to 4.9.0", 185), ("4.9.1 to 4.9.8", 174), ("5.3.3", 224)])
def test_one_message_as_three_releases_store_it(release: str, size: int) -> None:
    pairs = {"UNIQ_KEY": "7F0000010A4C18B4AAC2916A1D2C0000", "CLUSTER": "DefaultCluster", "WAIT": "true"}
    if release == "5.3.3":
        pairs |= {"MSG_REGION": "DefaultRegion", "TRACE_ON": "true"}
    if release == "4.9.1 to 4.9.8":
        del pairs["WAIT"]
    stored = props.encode(pairs, trailing_separator=release != "4.9.1 to 4.9.8")
    record = cl.encode_message("Topic-01", b"Store Msg 1", stored, born_timestamp=1640832578156)
    message = cl.Message.parse_exact(record)
    assert len(record) == message.total_size == size
    assert message.body_crc == 0x16DFFB70
    assert record[40:48].hex() == "0000017e093e326c"
    assert record[84:108].hex() == "0000000b53746f7265204d73672031" + "08" + "546f7069632d3031"


@pytest.mark.parametrize(
    ("magic", "name"), [(cl.MESSAGE_MAGIC_CODE, "DAA320A7"), (cl.MESSAGE_MAGIC_CODE_V2, "DAA320AB")]
)
@pytest.mark.parametrize(
    ("born", "store", "overhead"), [(V4, V4, 91), (V6, V4, 103), (V4, V6, 103), (V6, V6, 115)]
)
def test_overheads_of_all_layouts(magic: int, name: str, born: bytes, store: bytes, overhead: int) -> None:
    record = cl.encode_message("", magic=magic, born_host=(born, 1), store_host=(store, 2))
    expected = overhead + (magic == cl.MESSAGE_MAGIC_CODE_V2)
    message = cl.Message.parse_exact(record)
    assert len(record) == message.total_size == expected == cl.overhead(magic, message.sys_flag)
    assert (message.born_host.ip, message.store_host.ip) == (born, store)
    assert record[4:8].hex().upper() == name


def test_positions_that_brokers_take_for_granted() -> None:
    header = cl.HEADERS[(False, False)]
    fields = ["magic", "flag", "queue_offset", "physical_offset", "sys_flag", "store_timestamp"]
    assert [offset_of(header, field) for field in fields] == [4, 16, 20, 28, 36, 56]
    for (born_v6, store_v6), layout in cl.HEADERS.items():
        assert offset_of(layout, "store_timestamp") == 48 + (20 if born_v6 else 8)
        assert sizeof(layout) == 72 + (20 if born_v6 else 8) + (20 if store_v6 else 8)


@given(message_arguments())
def test_encode_and_parse(arguments: dict[str, Any]) -> None:
    record = cl.encode_message(**arguments)
    message = cl.Message.parse_exact(record)
    assert cl.Message.build(message) == record
    assert message.topic.decode() == arguments["topic"]
    assert (message.body, message.properties) == (arguments["body"], arguments["properties"])
    assert (message.born_host.ip, message.born_host.port) == arguments["born_host"]
    same = ["queue_id", "queue_offset", "physical_offset", "store_timestamp", "prepared_transaction_offset"]
    assert [message[field] for field in same] == [arguments[field] for field in same]
    assert cl.body_crc_ok(message)


@given(message_arguments())
def test_headers_read_the_same_as_messages(arguments: dict[str, Any]) -> None:
    record = cl.encode_message(**arguments)
    message = cl.Message.parse(record)
    header = cl.HEADERS[cl.is_v6(message.sys_flag)].parse(record)
    assert all(message[field] == value for field, value in header.items() if field != "_io")


@given(message_arguments(), st.data())
def test_an_outline_is_what_parsing_gives_or_refuses(arguments: dict[str, Any], data: st.DataObject) -> None:
    record = bytearray(cl.encode_message(**arguments))
    texts = sum(len(arguments[name].encode()) for name in ("topic",)) + len(arguments["properties"]) + 4
    ends = [len(record) - texts, len(record) - len(arguments["properties"]) - 2, len(record)]
    places = st.sampled_from([0, 4, 36, BODY_LENGTH_AT, 108, *(max(one - 4, 0) for one in ends)])
    for at, value in data.draw(st.lists(st.tuples(places, st.binary(min_size=1, max_size=4)), max_size=2)):
        record[at : at + len(value)] = value
    raw = bytes(record[: data.draw(st.sampled_from([len(record), len(record) - 1, 90, 40, 3]))]) + b"?"
    try:
        parsed = cl.Message.parse(raw)
    except FormatError:
        assert cl.outline_of(raw) is None
    else:
        fields = parsed.magic, parsed.sys_flag, parsed.topic, parsed.properties
        assert cl.outline_of(raw) == fields


def with_word(at: int, value: int) -> bytes:
    return HELLO[:at] + struct.pack(">i", value) + HELLO[at + 4 :]


@pytest.mark.parametrize("size", [0, 7, -1, -(1 << 31), 90, 91, 131, 133, 0x7FFFFFFF])
def test_wrong_total_size(size: int) -> None:
    with pytest.raises(FormatError) as caught:
        cl.Message.parse(with_word(0, size))
    assert caught.value.path in ("total_size", "body_length")


@pytest.mark.parametrize("magic", [0, -1, cl.BLANK_MAGIC_CODE, 0x7FFFFFFF])
def test_wrong_magic(magic: int) -> None:
    with pytest.raises(FormatError) as caught:
        cl.Message.parse(with_word(4, magic))
    assert caught.value.path == "magic"


@pytest.mark.parametrize("length", [15, 42, 0x7FFFFFFF])
def test_body_longer_than_the_record(length: int) -> None:
    with pytest.raises(FormatError):
        cl.Message.parse(with_word(BODY_LENGTH_AT, length))


@pytest.mark.parametrize("length", [0, -1, -(1 << 31)])
def test_negative_body_length_means_no_body(length: int) -> None:
    record = bytearray(cl.encode_message("T", properties=b"A\x01b"))
    record[BODY_LENGTH_AT:TOPIC_LENGTH_AT] = struct.pack(">i", length)
    message = cl.Message.parse_exact(record)
    assert (message.body, message.body_length, message.topic) == (b"", length, b"T")
    assert cl.body_crc_ok(message)
    assert cl.Message.build(message) == record


@pytest.mark.parametrize("length", [0x8001, 0xFFFF, 0x8000])
def test_negative_properties_length_means_no_properties(length: int) -> None:
    record = cl.encode_message("T")[:-2] + struct.pack(">H", length)
    message = cl.Message.parse_exact(record)
    assert (message.properties, message.properties_length) == (b"", length - 0x10000)
    assert cl.Message.build(message) == record


def test_v1_topic_of_127_bytes_and_no_more() -> None:
    record = cl.encode_message("t" * 127)
    message = cl.Message.parse_exact(record)
    assert (message.magic, message.topic_length) == (cl.MESSAGE_MAGIC_CODE, 127)
    with pytest.raises(FormatError) as caught:
        cl.encode_message("t" * 128, magic=cl.MESSAGE_MAGIC_CODE)
    assert caught.value.path == "topic_length"


@pytest.mark.parametrize("length", [0x80, 0xFF])
def test_v1_topic_length_is_signed(length: int) -> None:
    """A topic of 128 bytes with its length in one byte adds up, but not for Java, which reads -128."""
    record = bytearray(cl.encode_message("t" * 127))
    record[TOPIC_LENGTH_AT : TOPIC_LENGTH_AT + 1] = bytes([length])
    record[TOPIC_LENGTH_AT + 1 : TOPIC_LENGTH_AT + 1] = b"t" * (length - 127)
    record[0:4] = struct.pack(">i", len(record))
    with pytest.raises(FormatError) as caught:
        cl.Message.parse(record)
    assert caught.value.path == "topic_length"


def test_long_topics_become_v2() -> None:
    message = cl.Message.parse_exact(cl.encode_message("t" * 128))
    assert (message.magic, message.topic_length) == (cl.MESSAGE_MAGIC_CODE_V2, 128)
    assert cl.Message.parse_exact(cl.encode_message("t" * 32767)).topic_length == 32767
    with pytest.raises(FormatError):
        cl.encode_message("t" * 32768)


def test_version_goes_by_utf16_units_not_bytes() -> None:
    assert cl.magic_of("主" * 127) == cl.MESSAGE_MAGIC_CODE
    assert cl.magic_of("😀" * 64) == cl.MESSAGE_MAGIC_CODE_V2
    with pytest.raises(FormatError):  # 381 bytes do not fit the byte that counts them
        cl.encode_message("主" * 127)


def test_v2_topic_length_is_signed_too() -> None:
    record = bytearray(cl.encode_message("t" * 128))
    record[TOPIC_LENGTH_AT : TOPIC_LENGTH_AT + 2] = b"\xff\xff"
    with pytest.raises(FormatError) as caught:
        cl.Message.parse(record)
    assert caught.value.path == "topic_length"


def test_properties_of_32767_bytes_and_no_more() -> None:
    assert cl.Message.parse_exact(cl.encode_message("T", properties=bytes(32767))).properties_length == 32767
    with pytest.raises(FormatError) as caught:
        cl.encode_message("T", properties=bytes(32768))
    assert caught.value.path == "properties_length"


def test_cut_off_record() -> None:
    for length in range(len(HELLO)):
        with pytest.raises(FormatError):
            cl.Message.parse(HELLO[:length])


def test_blank() -> None:
    raw = bytes.fromhex("000003E8CBD43194")
    assert cl.Blank.build({"total_size": 1000}) == raw
    assert cl.Blank.parse(raw + bytes(992)).total_size == 1000
    assert sizeof(cl.Blank) == cl.END_FILE_MIN_BLANK_LENGTH == 8
    with pytest.raises(FormatError) as caught:
        cl.Blank.parse(HELLO)
    assert caught.value.path == "magic"


@pytest.mark.parametrize(("length", "free", "expected"), [(132, 140, True), (132, 139, False), (0, 8, True)])
def test_a_record_needs_8_bytes_behind_it(length: int, free: int, expected: bool) -> None:
    assert cl.fits(length, free) is expected


def test_overhead_of_an_unknown_magic() -> None:
    with pytest.raises(FormatError):
        cl.overhead(cl.BLANK_MAGIC_CODE, 0)


@pytest.mark.parametrize(
    ("sys_flag", "expected"),
    [
        (0x000, None),
        (0x300, None),
        (0x001, "zlib"),
        (0x301, "zlib"),
        (0x101, "lz4"),
        (0x201, "zstd"),
        (0x401, "unknown"),
        (0x701, "unknown"),
        (-1, "unknown"),
    ],
)
def test_compression(sys_flag: int, expected: str | None) -> None:
    assert cl.compression_of(sys_flag) == expected


@pytest.mark.parametrize(
    ("sys_flag", "expected"),
    [(0, "none"), (0xF3, "none"), (0x4, "prepared"), (0x8, "commit"), (0xC, "rollback"), (-1, "rollback")],
)
def test_transaction(sys_flag: int, expected: str) -> None:
    assert cl.transaction_of(sys_flag) == expected


def test_sys_flag_bits() -> None:
    names = ["COMPRESSED", "MULTI_TAGS", "PREPARED", "COMMIT", "ROLLBACK", "BORNHOST_V6", "STOREHOST_V6"]
    assert [cl.SysFlag[name] for name in names] == [1, 2, 4, 8, 0xC, 0x10, 0x20]
    assert (cl.SysFlag.NEED_UNWRAP, cl.SysFlag.INNER_BATCH) == (0x40, 0x80)
