"""Bodies of a batch: as stored, decompressed, and their digests."""

from __future__ import annotations

import hashlib
import zlib
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from formats.commitlog import compression_of
from rmqtool.scan.fields import Field

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

PLAIN_LIMIT = 256 << 20
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
        view = memoryview(window)  # type: ignore[arg-type]
        lengths = np.maximum(rows[:, Field.BODY_LENGTH], 0).tolist()
        self._stored = [view[at : at + n] for at, n in zip(positions.tolist(), lengths, strict=True)]
        self._flags = rows[:, Field.SYS_FLAG].tolist()

    @cached_property
    def _plain(self) -> list[bytes | memoryview | None]:
        """None where the body cannot be decompressed."""
        plain: list[bytes | memoryview | None] = []
        for body, flag in zip(self._stored, self._flags, strict=True):
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
        return pa.array([bytes(body) for body in self._stored], pa.binary())

    def plain(self) -> pa.Array:
        """Decompressed; null where that fails."""
        return pa.array([None if body is None else bytes(body) for body in self._plain], pa.binary())

    def plain_lengths(self) -> pa.Array:
        """Bytes after decompression; null where that fails."""
        return pa.array([None if body is None else len(body) for body in self._plain], pa.int32())

    def stored_sha256(self) -> pa.Array:
        """Lower-case hex digest of the stored bytes."""
        return pa.array([hashlib.sha256(body).hexdigest() for body in self._stored], pa.string())

    def plain_sha256(self) -> pa.Array:
        """Lower-case hex digest of the decompressed bytes; null where that fails."""
        return pa.array(
            [None if body is None else hashlib.sha256(body).hexdigest() for body in self._plain], pa.string()
        )
