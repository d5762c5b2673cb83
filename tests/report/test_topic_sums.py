"""Sums by topic: run by run they are those of all records."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from rmqtool.query.stats.groups import Groups
from rmqtool.report.topic_sums import TopicSums
from rmqtool.scan.fields import TopicSum

RUN = st.dictionaries(st.sampled_from(["a", "b", "c", "d", None]), st.integers(-9, 9), min_size=1)
"""one number for each topic, of which its sums are made"""


@given(st.lists(RUN, max_size=6))
def test_runs_add_up_as_groups_do(runs):
    found, groups = TopicSums(), Groups(("topic",))
    for run in runs:
        sums = np.array(
            [[1, abs(one), abs(one), 0, abs(one), one, one + 2] for one in run.values()], np.int64
        )
        found.add(list(run), sums)
        names = pa.array(list(run), pa.string())
        columns = {one.name.lower(): sums[:, one].copy() for one in TopicSum}
        groups.add_partial(groups.part(topic=names, **columns))
    again = Groups(("topic",))
    again.add_partial(found.table())
    assert again.rows() == groups.rows()
