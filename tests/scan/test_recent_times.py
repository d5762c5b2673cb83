"""Which records tell how old what follows a gap may be, in whatever parts they were read."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from rmqtool.scan.earlier_life import FRONT, Times
from rmqtool.scan.recent_times import Earlier, RecentTimes

RECORDS = st.lists(
    st.builds(Earlier, st.booleans(), st.booleans(), st.builds(Times, st.integers(0, 99), st.just(1))),
    min_size=1,
    max_size=150,
)


@given(st.lists(RECORDS, max_size=4), st.none() | st.integers(0, 99), st.integers(1, 70))
def test_parts_make_no_difference(runs: list[list[Earlier]], before: int | None, size: int) -> None:
    whole, parts = RecentTimes(before), RecentTimes(before)
    for run in runs:
        whole.add(run)
        for at in range(0, len(run), size):
            parts.add(run[at : at + size])
        assert (parts.front, parts.newest) == (whole.front, whole.newest)
        whole.end_run()
        parts.end_run()


def of(*records: str) -> list[Earlier]:
    """By letters: d is damaged, e elsewhere; and store time."""
    return [Earlier("e" not in one, "d" not in one, Times(int(one.strip("de")), None)) for one in records]


def times(recent: RecentTimes) -> list[int]:
    return [one.store for _, one in recent.front]


def test_one_damaged_record_is_not_believed() -> None:
    recent = RecentTimes(None)
    recent.add(of("1", "2", "d9"))
    assert (times(recent), recent.newest) == ([1, 2], 2)
    recent.end_run()
    recent.add(of("e9"))
    assert (times(recent), recent.newest) == ([1, 2], 2)


def test_records_of_another_place_are_where_there_are_no_others() -> None:
    recent = RecentTimes(3)
    recent.add(of("e4", "e5", "e6"))
    assert (times(recent), recent.newest) == ([4, 5, 6], 6)
    assert len(recent.front) == FRONT
    recent.restart(8, [])
    assert (times(recent), recent.newest) == ([], 8)
