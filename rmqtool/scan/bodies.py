"""Bodies of a batch: as stored, decompressed, and their digests."""

from __future__ import annotations

import hashlib
import zlib
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from formats.commitlog import SysFlag, compression_of
from rmqtool.scan.fields import Field

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

PLAIN_LIMIT = 64 << 20
"""bytes to which a body may grow; a broker takes 4 MiB by default (`maxMessageSize`)"""


class BodyError(ValueError):
    """A body that says it is compressed and is not, or that grows without end."""


def decompress(body: bytes, sys_flag: int, limit: int = PLAIN_LIMIT) -> bytes:
    """The body as the producer sent it (`MessageDecoder#decode`, `Compressor`).

    No container records the plain size, so all three are read as streams. Raises BodyError.
    """
    kind = compression_of(sys_flag)
    if kind is None or not body:
        return body
    try:
        plain = _STREAMS[kind](body, limit)
    except KeyError:
        raise BodyError(f"compression type bits 0x{sys_flag & 0x700:x} are not defined") from None
    except (zlib.error, RuntimeError, EOFError, ValueError) as error:
        raise BodyError(f"not a {kind} stream: {error}") from error
    if len(plain) > limit:
        raise BodyError(f"grows beyond {limit} bytes")
    return plain


def _zlib(body: bytes, limit: int) -> bytes:
    stream = zlib.decompressobj()
    plain = stream.decompress(body, limit + 1)
    if not stream.eof and len(plain) <= limit:
        raise EOFError("ends early")
    return plain


def _lz4(body: bytes, limit: int) -> bytes:
    import lz4.frame

    stream = lz4.frame.LZ4FrameDecompressor()
    plain: bytes = stream.decompress(body, max_length=limit + 1)
    if not stream.eof and len(plain) <= limit:
        raise EOFError("ends early")
    return plain


def _zstd(body: bytes, limit: int) -> bytes:
    import zstandard

    stream = zstandard.ZstdDecompressor(max_window_size=limit).decompressobj()
    plain = bytearray()
    try:
        # no bound on the output can be given, so the input goes in by small steps
        for at in range(0, len(body), _ZSTD_STEP):
            plain += stream.decompress(body[at : at + _ZSTD_STEP])
            if stream.eof or len(plain) > limit:
                return bytes(plain)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error
    raise EOFError("ends early")


_ZSTD_STEP = 1024
_STREAMS: dict[str, Callable[[bytes, int], bytes]] = {"zlib": _zlib, "lz4": _lz4, "zstd": _zstd}


class Bodies:
    """Bodies of one batch, decompressed at most once. `positions` are in `window`."""

    def __init__(
        self, window: npt.NDArray[np.uint8], positions: npt.NDArray[np.int64], rows: npt.NDArray[np.int64]
    ) -> None:
        self._window = window
        self._positions = positions
        self._lengths = np.maximum(rows[:, Field.BODY_LENGTH], 0)
        self._flags = rows[:, Field.SYS_FLAG]
        self._as_stored = not (self._flags & SysFlag.COMPRESSED).any()
        """the usual batch, in which no body is compressed: plain bodies are the stored ones"""

    @cached_property
    def _stored(self) -> list[memoryview]:
        view = memoryview(self._window)  # type: ignore[arg-type]
        return [
            view[at : at + n] for at, n in zip(self._positions.tolist(), self._lengths.tolist(), strict=True)
        ]

    @cached_property
    def _joined(self) -> pa.Array:
        """Stored bodies behind each other in one buffer."""
        ends = np.cumsum(self._lengths)
        offsets = np.concatenate(([0], ends)).astype(np.int32)
        data = pa.py_buffer(b"".join(self._stored))
        return pa.Array.from_buffers(pa.binary(), len(ends), [None, pa.py_buffer(offsets), data])

    @cached_property
    def _plain(self) -> list[bytes | memoryview | None]:
        """None where the body cannot be decompressed."""
        plain: list[bytes | memoryview | None] = []
        for body, flag in zip(self._stored, self._flags.tolist(), strict=True):
            if not flag & 1:
                plain.append(body)
                continue
            try:
                plain.append(decompress(bytes(body), flag))
            except BodyError:
                plain.append(None)
        return plain

    def stored(self) -> pa.Array:
        """As it lies in the log."""
        return self._joined

    def plain(self) -> pa.Array:
        """Decompressed; null where that fails."""
        if self._as_stored:
            return self._joined
        return pa.array([None if body is None else bytes(body) for body in self._plain], pa.binary())

    def plain_lengths(self) -> pa.Array:
        """Bytes after decompression; null where that fails."""
        if self._as_stored:
            return pa.array(self._lengths, pa.int32())
        return pa.array([None if body is None else len(body) for body in self._plain], pa.int32())

    def stored_sha256(self) -> pa.Array:
        """Lower-case hex digest of the stored bytes."""
        return pa.array([hashlib.sha256(body).hexdigest() for body in self._stored], pa.string())

    def plain_sha256(self) -> pa.Array:
        """Lower-case hex digest of the decompressed bytes; null where that fails."""
        return pa.array(
            [None if body is None else hashlib.sha256(body).hexdigest() for body in self._plain], pa.string()
        )
