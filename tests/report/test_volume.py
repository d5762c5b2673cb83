"""Volume over time: every message is in one interval or counted as outside, and intervals are bounded."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rmqtool.report import volume
from rmqtool.report.shape import Volume
from rmqtool.report.volume import BARS, Timeline

TIMES = st.lists(
    st.lists(st.integers(-(1 << 53), 1 << 53) | st.integers(1_700_000_000, 1_700_000_500), min_size=1),
    max_size=6,
)
"""of runs of records, seconds"""


def run_of(seconds):
    at, counts = np.unique(np.array(seconds, np.int64), return_counts=True)
    return Volume(at, counts.astype(np.int64), counts.astype(np.int64) * 10)


@given(TIMES)
def test_no_message_is_lost(runs):
    timeline = Timeline()
    for seconds in runs:
        timeline.add(run_of(seconds))
    found = timeline.document()
    every = [second for seconds in runs for second in seconds]
    assert len(found["messages"]) == len(found["bytes"]) <= BARS
    assert sum(found["messages"]) + found["outside"] == len(every)
    assert sum(found["bytes"]) == 10 * sum(found["messages"])
    assert found["outside"] <= len(every) // 500
    if every:
        start, step = found["from_timestamp"], found["interval_ms"]
        for number, count in enumerate(found["messages"]):
            low = start + number * step
            assert count == sum(low <= 1000 * second < low + step for second in every)


@given(st.sets(st.integers(0, 100_000), min_size=1, max_size=400))
def test_many_intervals_get_longer(seconds):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(volume, "MOST", 16)
        timeline = Timeline()
        timeline.add(run_of(sorted(seconds)))
        timeline.document()
        timeline.add(run_of(sorted(seconds)))
        found = timeline.document()
    assert sum(found["messages"]) == 2 * len(seconds)
    assert timeline.seconds & (timeline.seconds - 1) == 0
