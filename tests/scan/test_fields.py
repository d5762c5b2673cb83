"""Byte offsets of fields against the four declared headers, and the CRC providers against crcmod."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import zlib
from typing import TYPE_CHECKING

import pytest

from formats.commitlog import HEADERS, overhead
from formats.commitlog import MESSAGE_MAGIC_CODE as V1
from formats.commitlog import MESSAGE_MAGIC_CODE_V2 as V2
from formats.primitives import crc32_masked, offset_of, sizeof
from rmqtool.scan import fields as f
from rmqtool.scan.crc import crc32, fastest_crc32
from tests.helpers import ROOT
from tests.scan.conftest import numba_kernels
from tests.scan.tools import array

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

BEFORE_HOSTS = {
    "total_size": f.OFF_TOTAL_SIZE,
    "magic": f.OFF_MAGIC,
    "body_crc": f.OFF_BODY_CRC,
    "queue_id": f.OFF_QUEUE_ID,
    "flag": f.OFF_FLAG,
    "queue_offset": f.OFF_QUEUE_OFFSET,
    "physical_offset": f.OFF_PHYSICAL_OFFSET,
    "sys_flag": f.OFF_SYS_FLAG,
    "born_timestamp": f.OFF_BORN_TIMESTAMP,
    "born_host": f.OFF_BORN_HOST,
}
BEHIND_BORN_HOST = {"store_timestamp": f.OFF_STORE_TIMESTAMP, "store_host": f.OFF_STORE_HOST}
BEHIND_HOSTS = {
    "reconsume_times": f.OFF_RECONSUME_TIMES,
    "prepared_transaction_offset": f.OFF_PREPARED_TRANSACTION_OFFSET,
    "body_length": f.OFF_BODY_LENGTH,
}


@pytest.mark.parametrize(("born_v6", "store_v6"), HEADERS)
def test_offsets_in_all_layouts(born_v6: bool, store_v6: bool) -> None:
    header = HEADERS[born_v6, store_v6]
    born = f.HOST_V6_EXTRA * born_v6
    store = f.HOST_V6_EXTRA * store_v6
    expected = dict(BEFORE_HOSTS.items())
    expected |= {name: at + born for name, at in BEHIND_BORN_HOST.items()}
    expected |= {name: at + born + store for name, at in BEHIND_HOSTS.items()}
    assert {name: offset_of(header, name) for name in expected} == expected
    assert sizeof(header) == f.HEADER_SIZE + born + store


def test_the_numbers_of_the_format() -> None:
    """Those that every reader of the format writes down, here once by hand."""
    assert (f.OFF_MAGIC, f.OFF_QUEUE_OFFSET, f.OFF_PHYSICAL_OFFSET, f.OFF_SYS_FLAG) == (4, 20, 28, 36)
    assert (f.OFF_STORE_TIMESTAMP, f.OFF_BODY_LENGTH, f.HEADER_SIZE) == (56, 84, 88)
    assert (f.HOST_V4_SIZE, f.HOST_V6_EXTRA) == (8, 12)
    assert (overhead(V1, 0), overhead(V2, 0x30)) == (91, 116)


def crc_inputs() -> list[bytes]:
    rng = random.Random(7)
    lengths = [*range(301), 4095, 4096, 65537, 1 << 20]
    return [rng.randbytes(length) for length in lengths] + [bytes(n) for n in (1, 64, 4096)]


@pytest.mark.parametrize("provider", [crc32, fastest_crc32()])
def test_the_twin_s_crc_is_crcmod_s(provider: Callable[[bytes | memoryview], int]) -> None:
    for data in crc_inputs():
        assert provider(data) == provider(memoryview(data)) == crc32_masked(data)


def test_the_fastest_crc_without_isa_l(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fastest_crc32() is not crc32
    monkeypatch.setitem(sys.modules, "isal", None)
    monkeypatch.delitem(sys.modules, "isal.isal_zlib", raising=False)
    assert fastest_crc32() is crc32


def test_the_kernels_crc_is_crcmod_s() -> None:
    kernels = numba_kernels()
    assert kernels.HAVE_ISAL
    for data in crc_inputs():
        buffer = array(data)
        assert kernels.crc_at(buffer.ctypes.data, buffer.size) == crc32_masked(data)


WITHOUT_ISAL = """
import random, sys, zlib
import numpy as np
sys.modules["isal"] = None
from rmqtool.scan import kernels
assert not kernels.HAVE_ISAL
rng = random.Random(8)
for data in [rng.randbytes(n) for n in [*range(301), 4096, 65537]]:
    buffer = np.frombuffer(data, np.uint8)
    assert kernels.crc_at(buffer.ctypes.data, buffer.size) == zlib.crc32(data) & 0x7FFFFFFF, len(data)
from formats.commitlog import encode_message
from rmqtool.scan.fields import ROW_WIDTH, STATUS_WIDTH, Field
rows, status = np.empty((4, ROW_WIDTH), np.int64), np.zeros(STATUS_WIDTH, np.int64)
log = np.frombuffer(encode_message("T", b"body" * 99), np.uint8)
kernels.walk(log, 0, 0, log.size, 0, 3, rows, status)
print(status[0], rows[0, Field.CRC_STATE])
"""


@pytest.mark.full
def test_a_table_answers_without_isa_l_also_with_the_cache_of_a_run_that_had_it(tmp_path: Path) -> None:
    numba_kernels()
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "NUMBA_CACHE_DIR": str(tmp_path)}

    def run(code: str) -> tuple[int, list[str], str]:
        command = [sys.executable, "-c", code]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=200, check=False
        )
        return done.returncode, done.stdout.split(), done.stderr

    usual = WITHOUT_ISAL.replace('sys.modules["isal"] = None\n', "").replace("assert not", "assert")
    assert run(usual) == (0, ["1", "1"], "")
    assert run(WITHOUT_ISAL) == (0, ["1", "1"], "")


def test_zlib_s_crc_is_masked() -> None:
    raw = b"123456789"
    assert crc32_masked(raw) == crc32(raw) == zlib.crc32(raw) & 0x7FFFFFFF == 0x4BF43926
