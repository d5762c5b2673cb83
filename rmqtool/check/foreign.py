"""Records that are whole, and hold what a broker or client did not mean to store."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.check.findings import about
from rmqtool.scan.fields import KNOWN_FLAGS, Field, Issue

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import numpy.typing as npt

    from rmqtool.check.findings import Finding
    from rmqtool.store.segments import Segment


def foreign_findings(rows: npt.NDArray[np.int64], segment: Segment) -> Iterator[Finding]:
    """Flags of no known release, lengths below zero, bodies like remoting commands, separators in tags."""
    issues = rows[:, Field.ISSUES]
    for row in rows[issues & int(Issue.SYS_FLAG) != 0]:
        unknown = int(row[Field.SYS_FLAG]) & ~KNOWN_FLAGS & 0xFFFFFFFF
        yield about("CL-SYSFLAG", row, segment, part="sys_flag", found=f"0x{unknown:x}")
    for row in rows[issues & int(Issue.NEGATIVE) != 0]:
        for part, field in (
            ("body_length", Field.BODY_LENGTH),
            ("properties_length", Field.PROPERTIES_LENGTH),
        ):
            if row[field] < 0:
                yield about("CL-NEGATIVE", row, segment, part=part, expected=0, found=int(row[field]))
    for row in rows[issues & int(Issue.COMMAND) != 0]:
        yield about("CL-FRAME", row, segment, part="body")
    for row in rows[issues & int(Issue.SEPARATOR) != 0]:
        yield about("CL-SEPARATOR", row, segment, part="properties")
