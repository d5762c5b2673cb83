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
from rmqtool.scan.text import validity

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rmqtool.scan.events import Records

    Plain = bytes | memoryview | None

PLAIN_LIMIT = 32 << 20
"""bytes to which a body may grow; a broker takes 4 MiB by default (`maxMessageSize`)"""


class BodyError(ValueError):
    """A body that says it is compressed and is not, or that grows without end."""


class BodyTooLongError(BodyError):
    """A body that grows beyond the limit given."""


def decompress(body: bytes, sys_flag: int, limit: int = PLAIN_LIMIT) -> bytes:
    """The body as the producer sent it (`MessageDecoder#decode`, `Compressor`).

    No container records the plain size, so all three are read as streams. Raises `BodyError`, and
    `BodyTooLongError` when there is more than `limit` bytes of it.
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
        raise BodyTooLongError(f"grows beyond {limit} bytes")
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


_ZSTD_STEP = 256
"""bytes; a block of zeros needs four and gives 128 KiB, so a step gives at most 8 MiB"""

_STREAMS: dict[str, Callable[[bytes, int], bytes]] = {"zlib": _zlib, "lz4": _lz4, "zstd": _zstd}


def stored_bodies(records: Records) -> list[memoryview]:
    """Bodies as they lie in the window, not copied."""
    rows = records.rows
    view = memoryview(records.window)  # type: ignore[arg-type]
    starts = rows[:, Field.BODY_POSITION] - records.origin
    ends = starts + np.maximum(rows[:, Field.BODY_LENGTH], 0)
    return [view[start:end] for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


def inflate(stored: memoryview, sys_flag: int, limit: int = PLAIN_LIMIT) -> tuple[Plain, bool]:
    """(the body as the producer sent it, True); (None, True) where that cannot be known.

    (None, False) where it has more than `limit` bytes.
    """
    if not sys_flag & SysFlag.COMPRESSED:
        return stored, True
    try:
        return decompress(bytes(stored), sys_flag, limit), True
    except BodyTooLongError:
        return None, False
    except BodyError:
        return None, True


class Bodies:
    """Bodies of one batch.

    plain: what they inflate to (`inflate`); without it that is found out here. compressed: whether some body
    may be.
    """

    def __init__(
        self,
        records: Records,
        plain: Sequence[Plain] | None,
        *,
        compressed: bool,
    ) -> None:
        self._records, self._given = records, plain
        self.as_stored = plain is None and not compressed
        """the usual batch: plain bodies are the stored ones"""

    @cached_property
    def _stored(self) -> list[memoryview]:
        return stored_bodies(self._records)

    @cached_property
    def _plain(self) -> Sequence[Plain]:
        if self._given is not None:
            return self._given
        flags = self._records.rows[:, Field.SYS_FLAG].tolist()
        return [inflate(body, flag)[0] for body, flag in zip(self._stored, flags, strict=True)]

    def plain(self) -> pa.Array:
        """Decompressed; null where that fails."""
        return _binary(self._plain)

    def plain_lengths(self) -> pa.Array:
        """Bytes after decompression; null where that fails."""
        if self.as_stored:
            return pa.array(np.maximum(self._records.rows[:, Field.BODY_LENGTH], 0), pa.int32())
        return pa.array([None if body is None else len(body) for body in self._plain], pa.int32())

    def stored_sha256(self) -> pa.Array:
        """Lower-case hex digest of the stored bytes."""
        return pa.array([hashlib.sha256(body).hexdigest() for body in self._stored], pa.string())

    def plain_sha256(self) -> pa.Array:
        """Lower-case hex digest of the decompressed bytes; null where that fails."""
        return pa.array(
            [None if body is None else hashlib.sha256(body).hexdigest() for body in self._plain], pa.string()
        )


def _binary(bodies: Sequence[Plain]) -> pa.Array:
    """Bodies behind each other in one buffer of just their size."""
    present = np.array([body is not None for body in bodies], bool)
    ends = np.cumsum([0, *(len(body or b"") for body in bodies)])
    data = pa.py_buffer(b"".join(body or b"" for body in bodies))
    offsets = pa.py_buffer(ends.astype(np.int32))
    return pa.Array.from_buffers(pa.binary(), len(bodies), [validity(present), offsets, data])
