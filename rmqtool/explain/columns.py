"""A block of lines at once: lines that differ in digits only are looked at together.

Digits become 0, equal lines get one code, and the table is asked once for each code. A log repeats itself,
so a block of megabytes has some hundred codes; where it does not, each line is a code of its own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rmqtool.explain.header import HEADER

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MASK = bytes.maketrans(b"123456789", b"000000000")
_ALARM = HEADER.replace(r"\d", "0") + r".{0,120}?\b(WARN|ERROR|FATAL)"
_OPENS = HEADER.replace(r"\d", "0")
_EXCEPTION = r"^\s*(Caused by: )?([a-zA-Z_$][\w$]*\.)+[\w$]*(Exception|Error)"
_TRACE = r"^(\s+at |\s*\.\.\. 0+ (more|common)|\s*(Caused by|Suppressed): )"


@dataclass(frozen=True)
class Block:
    """Whole lines, and for every code of them what the masked line alone tells.

    data: the bytes. starts: where each line begins, with one entry more for the end. codes: a number for each
    line. opens, alarms, traces, candidates, exceptions: by code, whether the line has a header, has one of
    level WARN or above, goes on with a stack trace, could be in the table, names an exception.
    """

    data: bytes
    starts: NDArray[np.int64]
    codes: NDArray[np.int64]
    opens: NDArray[np.bool_]
    alarms: NDArray[np.bool_]
    traces: NDArray[np.bool_]
    candidates: NDArray[np.bool_]
    exceptions: NDArray[np.bool_]

    def line(self, number: int) -> bytes:
        """One line without its end."""
        return self.data[self.starts[number] : self.starts[number + 1]].rstrip(b"\r\n")

    def text(self, number: int) -> str:
        """One line as text; bytes that are not UTF-8 are shown as escapes."""
        return self.line(number).decode("utf-8", "backslashreplace")


def block_of(data: bytes, prefilter: str) -> Block:
    """A block of whole lines. `prefilter`: see `Table.prefilter`."""
    starts = _starts(data)
    masked = pa.py_buffer(data.translate(_MASK))
    offsets = pa.py_buffer(starts.astype(np.int32))
    lines = pa.Array.from_buffers(pa.binary(), len(starts) - 1, [None, offsets, masked])
    encoded = lines.dictionary_encode()
    unique = encoded.dictionary

    def fits(pattern: str) -> NDArray[np.bool_]:
        return np.asarray(pc.match_substring_regex(unique, pattern).to_numpy(zero_copy_only=False), bool)

    return Block(
        data,
        starts,
        encoded.indices.to_numpy().astype(np.int64),
        opens=fits(_OPENS),
        alarms=fits(_ALARM),
        traces=fits(_TRACE),
        candidates=fits(prefilter),
        exceptions=fits(_EXCEPTION),
    )


def _starts(data: bytes) -> NDArray[np.int64]:
    ends = np.flatnonzero(np.frombuffer(data, np.uint8) == 0x0A) + 1
    if not len(ends) or ends[-1] != len(data):
        ends = np.append(ends, len(data))
    return np.concatenate([np.zeros(1, np.int64), ends])
