"""CRC-32 inside kernels: ISA-L where its symbol is there, else a table."""

from __future__ import annotations

import numpy as np
from numba import types

from rmqtool.scan.crc import CRC_MASK, ISAL_SYMBOL, load_isal_symbol
from rmqtool.scan.kernels.compiler import kernel
from rmqtool.scan.kernels.intrinsics import u8

HAVE_ISAL = load_isal_symbol()
"""before any kernel is compiled or loaded from the cache: one that calls the symbol needs it in the
process"""

if HAVE_ISAL:
    isal = types.ExternalFunction(ISAL_SYMBOL, types.uint32(types.uint32, types.int64, types.uint64))

    @kernel(forceinline=True)
    def crc32_at(address, length):
        """CRC-32 of `length` bytes at `address`, all 32 bits."""
        return np.int64(isal(np.uint32(0), address, np.uint64(length)))

else:
    _table = np.zeros(256, np.uint32)
    for _i in range(256):
        _value = _i
        for _ in range(8):
            _value = (_value >> 1) ^ (0xEDB88320 if _value & 1 else 0)
        _table[_i] = _value
    CRC_TABLE = _table

    @kernel()
    def crc32_at(address, length):
        """CRC-32 of `length` bytes at `address`, all 32 bits."""
        crc = np.uint32(0xFFFFFFFF)
        for i in range(length):
            crc = CRC_TABLE[(crc ^ np.uint32(u8(address + i))) & np.uint32(0xFF)] ^ (crc >> np.uint32(8))
        return np.int64(crc ^ np.uint32(0xFFFFFFFF))


@kernel(forceinline=True)
def crc_at(address, length):
    """Masked CRC-32 of `length` bytes at `address`."""
    return crc32_at(address, length) & CRC_MASK
