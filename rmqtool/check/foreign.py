"""Records that are whole, and hold what a broker or client did not mean to store. Never more than a note."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formats.commitlog import SysFlag
from rmqtool.check.findings import about
from rmqtool.scan.fields import Field

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy.typing as npt

    from rmqtool.check.findings import Finding
    from rmqtool.scan.events import Records
    from rmqtool.store.segments import Segment

_KNOWN_FLAGS = int(np.bitwise_or.reduce([int(flag) for flag in SysFlag]))

_HEADER = np.frombuffer(b'{"code":', np.uint8).view(np.int64)[0]
_HEADER_AT = 8
"""behind the two lengths of a remoting command (`RemotingCommand#encode`)"""

_NAME_SEPARATOR = 1


def foreign_findings(run: Records, segment: Segment) -> Iterator[Finding]:
    """Flags of no known release, bodies that begin with a remoting command, tags with a separator in them."""
    rows = run.rows
    for row in rows[(rows[:, Field.SYS_FLAG] & ~_KNOWN_FLAGS) != 0]:
        unknown = int(row[Field.SYS_FLAG]) & ~_KNOWN_FLAGS & 0xFFFFFFFF
        yield about("CL-SYSFLAG", row, segment, part="sys_flag", found=f"0x{unknown:x}")
    for index in _commands(run):
        yield about("CL-FRAME", rows[index], segment, part="body")
    for index in _separators(run):
        yield about("CL-SEPARATOR", rows[index], segment, part="properties")


def _commands(run: Records) -> npt.NDArray[np.intp]:
    rows = run.rows
    long = np.flatnonzero(rows[:, Field.BODY_LENGTH] >= _HEADER_AT + 8)
    starts = rows[long, Field.BODY_POSITION] - run.origin + _HEADER_AT
    heads = np.lib.stride_tricks.sliding_window_view(run.window, 8)[starts]
    chosen: npt.NDArray[np.intp] = long[np.ascontiguousarray(heads).view(np.int64).ravel() == _HEADER]
    return chosen


def _separators(run: Records) -> npt.NDArray[np.intp]:
    """Records whose TAGS value holds the separator that follows a name: the next property ran into it."""
    rows = run.rows
    lengths = rows[:, Field.TAGS_LENGTH]
    chosen = np.flatnonzero(lengths > 0)
    starts, lengths = rows[chosen, Field.TAGS_POSITION] - run.origin, lengths[chosen]
    total = int(lengths.sum())
    if not total:
        return chosen[:0]
    ends = np.cumsum(lengths)
    places = np.repeat(starts - (ends - lengths), lengths) + np.arange(total)
    hits = np.flatnonzero(run.window[places] == _NAME_SEPARATOR)
    return chosen[np.unique(np.searchsorted(ends, hits, side="right"))]
