"""SQL92 filters. The vectors are answers of RocketMQ 5.3.3: expression → [[properties, answer], …] or null.

An answer is true, false, null (unknown) or "fails" (an exception); null instead of a list: it is refused.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from rmqtool.errors import UsageError
from rmqtool.query.sql92 import Sql92Filter
from rmqtool.query.subscription import FilterType, Subscription

VECTORS = json.loads((Path(__file__).parent / "sql92_java.json").read_text(encoding="utf-8"))
CODES = {False: 0, True: 1, None: 2, "fails": 3}
MAPS = pa.map_(pa.string(), pa.string())


def codes(expression, rows):
    compiled = Sql92Filter(expression)
    columns = {name: pa.array([row.get(name) for row in rows], pa.string()) for name in compiled.names}
    return compiled.codes(columns, len(rows)).tolist()


@pytest.mark.parametrize(("expression", "answers"), [one for one in VECTORS if one[1] is not None])
def test_answers_are_those_of_the_broker(expression, answers):
    rows = [row for row, _ in answers]
    assert codes(expression, rows) == [CODES[answer] for _, answer in answers]
    assert [codes(expression, [row]) for row in rows] == [[CODES[answer]] for _, answer in answers]


@pytest.mark.parametrize("expression", [one for one, answers in VECTORS if answers is None])
def test_what_the_broker_refuses_is_refused_in_one_line(expression):
    with pytest.raises(UsageError) as refused:
        Subscription.of(expression, FilterType.SQL92)
    assert "\n" not in str(refused.value)


def test_only_true_passes():
    properties = pa.array([{"a": "6"}, {"a": "5"}, {}, {"a": "x"}], MAPS)
    batch = pa.RecordBatch.from_arrays([properties], ["properties"])
    assert Subscription.of("a > 5", FilterType.SQL92).passes(batch).tolist() == [True, False, False, False]


def test_the_last_of_several_properties_of_one_name_counts():
    properties = pa.array([[("a", "1"), ("a", "9")], [("a", "9"), ("a", "1")]], MAPS)
    assert Sql92Filter("a > 5").passes(properties).tolist() == [True, False]


def test_a_filter_is_used_batch_after_batch():
    compiled = Sql92Filter("a IN ('x', 'y') AND b > 3")
    rng = np.random.default_rng(5)
    for _ in range(4):
        a, b = rng.choice(["x", "y", "z"], 500), rng.integers(0, 8, 500)
        rows = [{"a": one, "b": str(other)} for one, other in zip(a, b, strict=True)]
        wanted = [one in "xy" and other > 3 for one, other in zip(a, b, strict=True)]
        assert compiled.passes(pa.array(rows, MAPS)).tolist() == wanted
        assert compiled.passes(pa.array(rows, MAPS)[100:200]).tolist() == wanted[100:200]


def test_an_empty_batch():
    assert Sql92Filter("a > 5").passes(pa.array([], MAPS)).tolist() == []
