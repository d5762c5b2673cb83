"""Subscriptions: tags at the broker and at the consumer."""

from __future__ import annotations

import pyarrow as pa
import pytest

from rmqtool.errors import UsageError
from rmqtool.query.subscription import FilterType, Subscription

HASH_OF_AA, HASH_OF_TAGA = 2112, 2598919
"""Java's hash of "Aa" (and of "BB"), and of "TagA" """


def batch(*tags):
    return pa.RecordBatch.from_arrays([pa.array(tags, pa.string())], ["tags"])


def test_tags_with_one_hash_pass_the_broker_but_not_the_consumer():
    wanted = Subscription.of("Aa || TagB")
    assert wanted.passes_unit(HASH_OF_AA)
    assert not wanted.passes_unit(HASH_OF_TAGA)
    assert wanted.passes(batch("Aa", "BB", "TagB", "TagA", None)).tolist() == [
        True,
        False,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("expression", ["*", "", " * "])
def test_all(expression):
    wanted = Subscription.of(expression)
    assert wanted.takes_all
    assert wanted.columns == ()
    assert wanted.passes_unit(7)
    assert wanted.passes(batch("x", None)).tolist() == [True, True]


@pytest.mark.parametrize("expression", ["||", " || || "])
def test_nothing_but_bars_is_refused(expression):
    with pytest.raises(UsageError, match="names no tag"):
        Subscription.of(expression)


def test_spaces_and_empty_parts_are_dropped():
    assert Subscription.of(" TagA ||  || TagB||").tags == {"TagA", "TagB"}


def test_the_whole_of_the_tags_code_decides():
    """A queue unit holds 64 bits of which Java compares the lower 32 as an int."""
    wanted = Subscription.of("TagA")
    assert wanted.passes_unit(HASH_OF_TAGA)
    negative = Subscription.of("polygenelubricants")  # hash is the smallest int
    assert negative.passes_unit(-(1 << 31))


def test_sql92_is_not_judged_by_the_unit():
    assert Subscription.of("a > 5", FilterType.SQL92).passes_unit(0)
