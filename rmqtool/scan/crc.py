"""Where the fast CRC-32 comes from.

ISA-L's `crc32_gzip_refl` is exported by the shared object of the `isal` wheel. LLVM resolves it by name once
the object is loaded, so a kernel that calls it can be cached on disk. The library must be loaded *before* any
kernel module: a cached kernel that is loaded earlier jumps to address zero.

The definition of the checksum is `formats.primitives.crc32_masked` (crcmod); tests hold every provider
against it.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

CRC_MASK = 0x7FFFFFFF
"""`UtilAll#crc32` drops the sign bit."""

ISAL_SYMBOL = "crc32_gzip_refl"


def isal_address() -> int | None:
    """Address of ISA-L's CRC. None where the wheel is missing or built without the symbol."""
    import ctypes

    try:
        from isal import isal_zlib

        function = ctypes.CDLL(isal_zlib.__file__)[ISAL_SYMBOL]
    except (ImportError, OSError, AttributeError):
        return None
    return ctypes.cast(function, ctypes.c_void_p).value


def load_isal_symbol() -> bool:
    """Make ISA-L's CRC visible to LLVM, where there is one."""
    import llvmlite.binding as llvm

    address = isal_address()
    if address is not None:
        llvm.add_symbol(ISAL_SYMBOL, address)
    return address is not None


def crc32(data: bytes | memoryview) -> int:
    """Masked CRC-32 of one buffer, as the commit log stores it."""
    return zlib.crc32(data) & CRC_MASK


def fastest_crc32() -> Callable[[bytes], int]:
    """As `crc32`, of ISA-L where it is there: for who has many buffers, as it is a library more."""
    try:
        from isal.isal_zlib import crc32 as found
    except ImportError:
        return crc32
    return lambda data: found(data) & CRC_MASK
