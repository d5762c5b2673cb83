"""The schema wrapper, and what is derived from schemas."""

from __future__ import annotations

import zlib
from typing import Any

import construct as cs
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import consumequeue
from formats.commitlog import HEADERS, Message
from formats.errors import FormatError
from formats.primitives import HostV4, Require, Schema, crc32_masked, dtype_of, host_text, offset_of, sizeof
from tests.formats.catalogue import FIXED, VARIABLE, bytes_for

INTEGERS = Schema(
    cs.Struct(
        "a" / cs.Int8sb,
        "b" / cs.Int16ub,
        "c" / cs.Int32sb,
        cs.Padding(3),
        "d" / cs.Int32ub,
        "e" / cs.Int64sb,
        "f" / cs.Int64ub,
        "hosts" / cs.Array(2, HostV4),
        "rest" / cs.Bytes(5),
    )
)


@pytest.mark.parametrize(
    ("data", "expected"),
    [(b"", 0), (b"123456789", 0x4BF43926), (b"Hello RocketMQ", 0x69C865ED), (b"Store Msg 1", 0x16DFFB70)],
)
def test_masked_crc(data: bytes, expected: int) -> None:
    assert crc32_masked(data) == expected


@given(st.binary(max_size=300))
def test_masked_crc_is_zlibs_without_the_top_bit(data: bytes) -> None:
    assert crc32_masked(data) == zlib.crc32(data) & 0x7FFFFFFF


def test_dtype_has_the_widths_of_the_format() -> None:
    dtype = dtype_of(INTEGERS)
    assert dtype.itemsize == sizeof(INTEGERS) == 51
    widths = {name: dtype[name].str for name in ("a", "b", "c", "d", "e", "f")}
    assert widths == {"a": "|i1", "b": ">u2", "c": ">i4", "d": ">u4", "e": ">i8", "f": ">u8"}
    assert dtype["hosts"].shape == (2,)
    assert dtype["rest"] == np.dtype("V5")


def test_offsets_of_nested_fields() -> None:
    expected = {"a": 0, "c": 3, "d": 10, "hosts.0": 30, "hosts.1.port": 42, "rest": 46}
    assert {path: offset_of(INTEGERS, path) for path in expected} == expected


@pytest.mark.parametrize("path", ["z", "a.b", "hosts.2", "hosts.x", "hosts.0.z"])
def test_offset_of_a_field_that_is_not_there(path: str) -> None:
    with pytest.raises(FormatError, match=path):
        offset_of(INTEGERS, path)


def test_offset_behind_a_variable_field() -> None:
    assert offset_of(Message, "born_host") == offset_of(HEADERS[(False, False)], "born_host") == 48
    with pytest.raises(FormatError, match="no fixed length"):
        offset_of(Message, "store_timestamp")


@pytest.mark.parametrize("name", VARIABLE)
def test_variable_schemas_have_no_size_and_no_dtype(name: str) -> None:
    with pytest.raises(FormatError):
        sizeof(VARIABLE[name])
    with pytest.raises(FormatError):
        dtype_of(VARIABLE[name])


def test_an_array_of_unknown_length_has_no_dtype() -> None:
    with pytest.raises(FormatError):
        dtype_of(cs.Array(lambda context: context.n, cs.Int8ub))


def flat(value: Any) -> Any:
    """A parsed or NumPy value as plain tuples of numbers and bytes."""
    if isinstance(value, cs.Container):
        return tuple(flat(item) for key, item in value.items() if key != "_io")
    if isinstance(value, list | tuple):
        return tuple(flat(item) for item in value)
    if isinstance(value, np.void) and value.dtype.names:
        return tuple(flat(value[name]) for name in value.dtype.names)
    if isinstance(value, np.ndarray):
        return tuple(flat(item) for item in value)
    return (
        value.tobytes()
        if isinstance(value, np.void)
        else value.item()
        if isinstance(value, np.generic)
        else value
    )


@pytest.mark.share
@pytest.mark.parametrize("name", FIXED)
@given(data=st.data())
def test_numpy_and_construct_read_the_same(name: str, data: st.DataObject) -> None:
    raw = data.draw(bytes_for(name))
    dtype = dtype_of(FIXED[name])
    assert dtype.itemsize == sizeof(FIXED[name]) == len(raw)
    assert flat(np.frombuffer(raw, dtype)[0]) == flat(FIXED[name].parse_exact(raw))


def test_errors_carry_the_path() -> None:
    with pytest.raises(FormatError) as caught:
        HEADERS[(False, False)].parse(bytes(50))
    assert caught.value.path == "born_host.ip"
    with pytest.raises(FormatError) as caught:
        HostV4.build({"ip": bytes(4), "port": 1 << 31})
    assert caught.value.path == "port"
    with pytest.raises(FormatError) as caught:
        INTEGERS.parse_exact(bytes(50))
    assert caught.value.path == "rest"


@pytest.mark.parametrize(
    "value", [{}, None, 5, {"ip": b"1234"}, {"ip": 3, "port": "x"}, {"ip": b"", "port": 0}]
)
def test_values_that_cannot_be_built(value: object) -> None:
    with pytest.raises(FormatError):
        HostV4.build(value)


def test_parse_ignores_what_follows_and_parse_exact_does_not() -> None:
    raw = consumequeue.PRE_BLANK + b"x"
    assert consumequeue.Unit.parse(raw).size == consumequeue.PRE_BLANK_SIZE
    with pytest.raises(FormatError, match="1 bytes are left behind 20"):
        consumequeue.Unit.parse_exact(raw)


@pytest.mark.parametrize("buffer", [bytearray(20), memoryview(bytes(20)), np.zeros(20, np.uint8)])
def test_any_buffer_can_be_parsed(buffer: Any) -> None:
    assert consumequeue.Unit.parse(buffer).size == 0


def test_require_holds_in_both_directions() -> None:
    schema = Schema(cs.Struct("n" / cs.Int8ub, Require("n", lambda c: "odd" if c.n % 2 else None)))
    assert schema.build({"n": 2}) == b"\2"
    assert schema.parse(b"\2").n == 2
    assert sizeof(schema) == 1
    for call in (lambda: schema.build({"n": 3}), lambda: schema.parse(b"\3")):
        with pytest.raises(FormatError, match="n: odd"):
            call()


def test_error_under_a_parent() -> None:
    assert FormatError("bad", "port").under("host").path == "host.port"
    assert str(FormatError("bad").under("host")) == "host: bad"


@pytest.mark.parametrize(
    ("ip", "expected"),
    [("0a000001", "10.0.0.1:10911"), ("20010db8000000000000000000000001", "[2001:db8::1]:10911")],
)
def test_host_text(ip: str, expected: str) -> None:
    assert host_text(bytes.fromhex(ip), 10911) == expected


def test_host_text_of_another_width() -> None:
    with pytest.raises(FormatError):
        host_text(bytes(5), 1)
