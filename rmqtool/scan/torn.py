"""Properties that hold zeros: those of a torn page or of a lost block, and those of a client that sent them.

A release puts no zero byte in between properties, and none stands at the end of a client's text. A few zeros
inside of a value, with text on both sides, are what a client may have sent: no release refuses them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from formats.properties import NAME_SEPARATOR, Segment, decode_pairs
from rmqtool.scan.fields import Field, Issue

if TYPE_CHECKING:
    import numpy.typing as npt

    from rmqtool.scan.events import Records

_RUN = bytes(8)
"""so many zeros are not text of a client"""


def is_torn(properties: bytes) -> bool:
    """Whether zeros stand where no client puts them: in a name, at the end of a value, in long runs."""
    return b"\0" in properties and any(is_lost(one) for one in decode_pairs(properties))


def is_lost(segment: Segment) -> bool:
    """Whether such zeros are in this property."""
    raw = segment.raw
    if b"\0" not in raw:
        return False
    name, separator, value = raw.partition(bytes([NAME_SEPARATOR]))
    if not segment.is_pair or b"\0" in name or separator in value or _RUN in raw:
        return True
    return value.startswith(b"\0") or value.endswith(b"\0")


def torn_records(run: Records) -> npt.NDArray[np.bool_]:
    """Which records of a run are torn: in their properties, or by a topic that none can have."""
    found: npt.NDArray[np.bool_] = (run.rows[:, Field.ISSUES] & int(Issue.TOPIC_NUL | Issue.TOPIC_UTF8)) != 0
    found |= torn_properties(run)
    return found


def torn_properties(run: Records) -> npt.NDArray[np.bool_]:
    """Which records of a run have torn properties."""
    found: npt.NDArray[np.bool_] = (run.rows[:, Field.ISSUES] & int(Issue.PROPERTIES_NUL)) != 0
    for number in np.flatnonzero(found).tolist():
        start, length = run.rows[number, [Field.PROPERTIES_POSITION, Field.PROPERTIES_LENGTH]].tolist()
        start -= run.origin
        found[number] = is_torn(run.window[start : start + length].tobytes())
    return found
