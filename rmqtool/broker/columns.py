"""Questions about a run of records that are answered for all of them at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rmqtool.scan import text
from rmqtool.scan.fields import Field

if TYPE_CHECKING:
    import numpy.typing as npt

    from rmqtool.scan.events import Records
    from rmqtool.scan.kernel_types import Kernels

    Flags = npt.NDArray[np.bool_]


def of_topic(run: Records, topic: str) -> Flags:
    """Which records have this topic."""
    name = np.frombuffer(topic.encode(), np.uint8)
    found: Flags = run.rows[:, Field.TOPIC_LENGTH] == len(name)
    which = np.flatnonzero(found)
    if len(which):
        places = run.rows[which, Field.TOPIC_POSITION] - run.origin
        # one letter decides for nearly all of them
        which = which[run.window[places + len(name) - 1] == name[-1]]
        places = run.rows[which, Field.TOPIC_POSITION] - run.origin
        found[:] = False
        found[which] = (run.window[places[:, None] + np.arange(len(name))] == name).all(axis=1)
    return found


def properties_match(
    run: Records, kernels: Kernels, wanted: Flags, pattern: str, only: str | None = None
) -> Flags:
    """Which of the wanted records have properties that match a regular expression.

    only: a name that stands in them just once; of equal ones the last counts.
    """
    import pyarrow.compute as pc

    lengths = np.ascontiguousarray(np.maximum(run.rows[:, Field.PROPERTIES_LENGTH], 0))
    places = np.ascontiguousarray(run.rows[:, Field.PROPERTIES_POSITION]) - run.origin
    raw = text.binary(kernels, run.window, places, np.where(wanted, lengths, 0), np.ones(len(wanted), bool))
    found = pc.match_substring_regex(raw, pattern).to_numpy(zero_copy_only=False)
    matched = np.asarray(found, np.bool_)
    if only is not None:
        matched &= pc.count_substring(raw, f"{only}\x01").to_numpy(zero_copy_only=False) == 1
    return matched
