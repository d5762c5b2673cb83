"""Data frames of pandas and polars, put and got; either is left out where it is not installed.

Neither is part of the environment: nothing of rmqtool asks for pandas, and that shows only without it.
What is Arrow's alone about them is in `test_columns`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rmqtool.errors import UsageError
from tests.messagestore.helpers import open_small

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROWS = {
    "topic": ["T", "U", "T", "T"],
    "body": [b"\0\xff", b"", b"three", b"4"],
    "queue_id": [0, 1, None, 2],
    "tags": ["TagA", None, "\N{SNOWMAN}", None],
    "keys": [["one", "two"], None, [], ["three"]],
    "flag": [1, -1, 0, 2],
    "born_timestamp": [1, 2, 3, 4],
}
SEEN = [
    (0, b"\0\xff", "TagA", ["one", "two"], 1, 1),
    (1, b"", None, [], -1, 2),
    (0, b"three", "\N{SNOWMAN}", [], 0, 3),
    (2, b"4", None, ["three"], 2, 4),
]


@pytest.fixture(params=["pandas", "polars"])
def library(request: pytest.FixtureRequest) -> Any:
    return pytest.importorskip(request.param, reason=f"{request.param} is not installed")


@pytest.fixture
def polars() -> Any:
    return pytest.importorskip("polars", reason="polars is not installed")


@pytest.fixture
def pandas() -> Any:
    return pytest.importorskip("pandas", reason="pandas is not installed")


def stored(root: Path, frame: Any) -> list[tuple[Any, ...]]:
    """What the log says of the messages of a frame, all of which are stored."""
    with open_small(root) as store:
        answer = store.put_many(frame)
        assert isinstance(answer, pa.Table)
        assert answer["status"].to_pylist() == ["PUT_OK"] * len(frame)
        found = [store.message_at(offset) for offset in answer["physical_offset"].to_pylist()]
    return [
        (one.queue_id, one.body, one.tags, one.keys, one.flag, one.born_timestamp)
        for one in found
        if one is not None
    ]


def test_a_frame_is_stored_as_its_rows(library: Any, tmp_path: Path) -> None:
    """Whole numbers with a null are fractions in pandas."""
    assert stored(tmp_path / "whole", library.DataFrame(ROWS)) == SEEN
    assert stored(tmp_path / "part", library.DataFrame(ROWS)[1:3]) == [SEEN[1], (0, *SEEN[2][1:])]
    assert stored(tmp_path / "none", library.DataFrame(ROWS)[:0]) == []
    assert stored(tmp_path / "untyped", library.DataFrame({"topic": [], "body": []})) == []


@pytest.mark.parametrize(
    "of", [lambda pl: pl.Categorical, lambda pl: pl.Enum(["T", "U", "TagA", "\N{SNOWMAN}"])]
)
def test_categories_of_polars(polars: Any, tmp_path: Path, of: Callable[[Any], Any]) -> None:
    frame = polars.DataFrame(ROWS).with_columns(polars.col("topic", "tags").cast(of(polars)))
    assert stored(tmp_path / "store", frame) == SEEN


def test_rows_that_were_chosen_and_categories_of_pandas(pandas: Any, tmp_path: Path) -> None:
    """Which have an index that has no name."""
    frame = pandas.DataFrame(ROWS).astype({"topic": "category", "tags": "category"})
    assert stored(tmp_path / "store", frame[frame["queue_id"] != 1].sort_values("flag")) == [
        (0, *SEEN[2][1:]),
        SEEN[0],
        SEEN[3],
    ]


def test_an_index_with_a_name_is_a_column_of_pandas(pandas: Any, tmp_path: Path) -> None:
    assert stored(tmp_path / "store", pandas.DataFrame(ROWS).set_index("topic")) == SEEN


def test_what_is_no_frame_of_messages(library: Any, tmp_path: Path) -> None:
    frames = [
        library.DataFrame({"topic": ["T"], "tag": ["x"], "body": [b""]}),
        library.DataFrame({"topic": ["T"], "body": [1.5]}),
        library.DataFrame({"topic": ["T"], "body": [b""], "queue_id": [0.5]}),
        library.Series(["T"]),
    ]
    with open_small(tmp_path / "store") as store:
        for frame in frames:
            with pytest.raises(UsageError):
                store.put_many(frame)
        assert not store.queues()


def test_odd_frames_of_pandas(pandas: Any, tmp_path: Path) -> None:
    twice = pandas.DataFrame([["T", "U", b""]], columns=["topic", "topic", "body"])
    mixed = pandas.DataFrame({"topic": ["T", 1], "body": [b"", b""]})
    with open_small(tmp_path / "store") as store:
        for frame in (twice, mixed):
            with pytest.raises(UsageError, match="messages are no table"):
                store.put_many(frame)


def test_a_lazy_frame_is_refused(polars: Any, tmp_path: Path) -> None:
    with open_small(tmp_path / "store") as store:
        with pytest.raises(UsageError, match="LazyFrame"):
            store.put_many(polars.DataFrame(ROWS).lazy())
        assert not store.queues()


def test_a_table_becomes_a_frame_of_polars(polars: Any, tmp_path: Path) -> None:
    with open_small(tmp_path / "store") as store:
        store.put_many(polars.DataFrame(ROWS))
        found = polars.from_arrow(store.get_table("T", 0))
        assert found["body"].to_list() == [b"\0\xff", b"three"]
        assert found["keys"].to_list() == [["one", "two"], None]
        again = found.select("topic", "body", "queue_id", "tags", "keys", "flag", "properties")
        with pytest.raises(UsageError, match="are not given there"):
            store.put_many(again)
        assert store.put_many(again.drop("properties"))["queue_offset"].to_pylist() == [2, 3]


def test_a_table_becomes_a_frame_of_pandas(pandas: Any, tmp_path: Path) -> None:
    with open_small(tmp_path / "store") as store:
        store.put_many(pandas.DataFrame(ROWS))
        found = store.get_table("T", 0).to_pandas()
        assert found["body"].tolist() == [b"\0\xff", b"three"]
        assert list(found["keys"][0]) == ["one", "two"]
        again = found[["topic", "body", "queue_id", "tags", "keys", "flag"]]
        assert store.put_many(again)["queue_offset"].to_pylist() == [2, 3]
