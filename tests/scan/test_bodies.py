"""Compressed bodies: the three containers, broken ones, and those that grow without end."""

from __future__ import annotations

import random
import tracemalloc
import zlib
from typing import TYPE_CHECKING

import lz4.frame
import pytest
import zstandard
from hypothesis import strategies as st

from formats.commitlog import encode_message
from rmqtool.scan.bodies import PLAIN_LIMIT, BodyError, decompress
from tests.scan.test_table import rows_of
from tests.scan.tools import check_property

if TYPE_CHECKING:
    from types import ModuleType

ZLIB, LZ4, ZSTD = 0x301, 0x101, 0x201
PLAIN = b"Hello RocketMQ " * 400


def zstd_stream(data: bytes) -> bytes:
    """As zstd-jni's stream: no content size in the frame header."""
    stream = zstandard.ZstdCompressor(write_content_size=False).compressobj()
    return stream.compress(data) + stream.flush()


def lz4_stream(data: bytes) -> bytes:
    """As lz4-java's frame stream: independent blocks, no sizes, no checksums."""
    return lz4.frame.compress(data, block_linked=False, store_size=False)


COMPRESS = {ZLIB: zlib.compress, LZ4: lz4_stream, ZSTD: zstd_stream, 0x001: zlib.compress}


@pytest.mark.parametrize("flags", COMPRESS)
@pytest.mark.parametrize("plain", [PLAIN, b"", b"x", random.Random(3).randbytes(100_000)])
def test_containers(flags: int, plain: bytes) -> None:
    assert decompress(COMPRESS[flags](plain), flags) == plain


@pytest.mark.parametrize("flags", [0, 0x300, 0x100, 0x700])
def test_type_bits_alone_mean_nothing(flags: int) -> None:
    assert decompress(b"anything", flags) == b"anything"


@pytest.mark.parametrize("flags", [0x401, 0x501, 0x601, 0x701])
def test_undefined_types(flags: int) -> None:
    with pytest.raises(BodyError, match="not defined"):
        decompress(zlib.compress(PLAIN), flags)


@pytest.mark.parametrize("flags", [ZLIB, LZ4, ZSTD])
def test_broken_streams(flags: int) -> None:
    whole = COMPRESS[flags](PLAIN)
    for cut in (1, 2, len(whole) // 2, len(whole) - 1):
        with pytest.raises(BodyError):
            decompress(whole[:cut], flags)
    with pytest.raises(BodyError):
        decompress(b"\0" + whole, flags)
    with pytest.raises(BodyError):
        decompress(PLAIN, flags)


@pytest.mark.parametrize("flags", [ZLIB, LZ4, ZSTD])
def test_any_bytes(flags: int, effort: int) -> None:
    def prop(data: bytes, at: int, value: int) -> None:
        stream = bytearray(COMPRESS[flags](data))
        stream[at % len(stream)] = value
        for body in (bytes(stream), data):
            try:
                decompress(body, flags)
            except BodyError:
                continue

    check_property(
        prop, st.binary(max_size=300), st.integers(0, 400), st.integers(0, 255), examples=60 * effort
    )


@pytest.mark.parametrize("flags", [ZLIB, LZ4, ZSTD])
@pytest.mark.parametrize("extra", [-1, 0, 1, 5000])
def test_the_limit(flags: int, extra: int) -> None:
    limit = 3 << 20
    body = COMPRESS[flags](bytes(limit + extra))
    if extra <= 0:
        assert len(decompress(body, flags, limit)) == limit + extra
    else:
        with pytest.raises(BodyError, match="grows beyond"):
            decompress(body, flags, limit)


@pytest.mark.share
@pytest.mark.parametrize("flags", [ZLIB, LZ4, ZSTD])
def test_a_bomb_takes_no_more_memory_than_the_limit(flags: int) -> None:
    """192 MiB of zeros, a limit of four; Zstandard may overshoot by what 256 bytes of input hold."""
    body = COMPRESS[flags](bytes(192 << 20))
    limit = 4 << 20
    tracemalloc.start()
    try:
        with pytest.raises(BodyError, match="grows beyond"):
            decompress(body, flags, limit)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 32 << 20


def test_the_limit_is_far_above_what_brokers_take() -> None:
    assert PLAIN_LIMIT >= 8 * (4 << 20)


def test_columns_of_compressed_bodies(kernels: ModuleType) -> None:
    import hashlib

    stored = [COMPRESS[ZLIB](PLAIN), COMPRESS[LZ4](PLAIN), COMPRESS[ZSTD](PLAIN), PLAIN, b"broken", b""]
    flags = [ZLIB, LZ4, ZSTD, 0, ZLIB, ZLIB]
    data = b"".join(
        encode_message("T", body, sys_flag=flag) for body, flag in zip(stored, flags, strict=True)
    )
    rows = rows_of(data, kernels)
    plain = [PLAIN, PLAIN, PLAIN, PLAIN, None, b""]
    assert [row["body"] for row in rows] == stored
    assert [row["plain_body"] for row in rows] == plain
    assert [row["plain_length"] for row in rows] == [None if body is None else len(body) for body in plain]
    assert [row["body_length"] for row in rows] == [len(body) for body in stored]
    digests = [None if body is None else hashlib.sha256(body).hexdigest() for body in plain]
    assert [row["plain_body_sha256"] for row in rows] == digests
    assert [row["body_sha256"] for row in rows] == [hashlib.sha256(body).hexdigest() for body in stored]
    assert [row["crc"] for row in rows] == ["ok"] * 5 + ["absent"]
