"""`verify` cut by segments finds what `verify` finds, in the same order."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import PySparkException

import fixtures
from rmqtool.check.further import FurtherRules
from rmqtool.check.levels import Level
from rmqtool.check.verify import Verification
from rmqtool.errors import RmqtoolError
from rmqtool.pipeline import accounts
from rmqtool.pipeline.accounts import packages
from rmqtool.pipeline.options import SourceOptions
from rmqtool.pipeline.parts import log_parts
from rmqtool.pipeline.runner import Lost
from rmqtool.pipeline.segment_job import Check, SegmentJob, Unsplittable
from rmqtool.pipeline.session import first_line
from rmqtool.pipeline.verify import verify
from rmqtool.scan.options import ReadOptions, data_bytes
from rmqtool.store.layout import Store

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from pyspark.sql import SparkSession

CASES = 15


def by_segment(path: Path, level: Level) -> Any:
    """What the two stages answer, without Spark: packages come in any order."""
    store = Store.open(path)
    parts = log_parts(store, 0)
    size = data_bytes(store.segments)
    further = FurtherRules.of(store)
    sent = [one for numbered in enumerate(parts) for one in packages(numbered, level, size, further)]
    random.Random(1).shuffle(sent)
    check = Check(str(path), SourceOptions((str(path),)), level, tuple(part.segment for part in parts))
    (found,) = check(sorted(sent))
    return found


def at_once(path: Path, level: Level) -> Any:
    opened = Store.open(path)
    run = Verification(opened, ReadOptions.of(opened), level)
    return [one.row() for one in run.findings()], run.summary()


def compare(paths: Iterable[Path], level: Level) -> None:
    for path in paths:
        try:
            expected = at_once(path, level)
        except RmqtoolError:
            continue
        found = by_segment(path, level)
        assert found[0] == expected[0], path
        for one in (found, expected):
            del one[1]["seconds"]
        assert found[1] == expected[1], path


@pytest.mark.parametrize("level", [Level.DEFAULT, Level.DEEP])
def test_goldens(goldens: dict[str, Path], level: Level, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(accounts, "PACKAGE_BYTES", 1)
    compare(goldens.values(), level)


def test_damaged(tmp_path: Path) -> None:
    cases = list(fixtures.damage_cases())
    chosen = cases[:: len(cases) // CASES]
    compare((fixtures.apply_case(case, tmp_path / case.id) for case in chosen), Level.DEFAULT)


def test_a_light_queue_that_lacks_messages(tmp_path: Path) -> None:
    path = fixtures.open_golden("v533-lmq", tmp_path).path
    queue = path / "consumequeue/%LMQ%alpha/0"
    last = max(queue.iterdir())
    last.write_bytes(bytes(len(last.read_bytes())))
    assert any(
        row["code"] == "CQ-BEHIND" and "%LMQ%" in row["path"] for row in at_once(path, Level.DEFAULT)[0]
    )
    compare([path], Level.DEFAULT)


@pytest.mark.full
@pytest.mark.timeout(3600)
def test_everything(tmp_path: Path) -> None:
    compare((fixtures.open_golden(name, tmp_path).path for name in fixtures.golden_names()), Level.DEEP)
    compare((fixtures.apply_case(case, tmp_path / case.id) for case in fixtures.damage_cases()), Level.DEEP)


def test_on_spark(spark: SparkSession, goldens: dict[str, Path], damaged_stores: dict[str, Path]) -> None:
    stores = [goldens["v498-basic"], *damaged_stores.values()]
    options = SourceOptions(tuple(map(str, stores)))
    for one, path in zip(verify(spark, options, by_segment=True), stores, strict=True):
        rows, summary = at_once(path, Level.DEFAULT)
        assert one.findings == rows
        assert one.summary | {"seconds": 0} == summary | {"seconds": 0}


@pytest.mark.parametrize(
    ("reported", "kind"),
    [
        ("Python worker exited unexpectedly (crashed)", Unsplittable),
        ("Traceback (most recent call last):\nrmqtool.errors.VanishedError: s: no such file", Unsplittable),
        ("Traceback (most recent call last):\nMemoryError", Unsplittable),
        ("Traceback (most recent call last):\nValueError: a defect", Lost),
    ],
)
def test_a_defect_is_no_reason_to_read_a_store_again(
    goldens: dict[str, Path], reported: str, kind: type[Unsplittable | Lost]
) -> None:
    class Fails:
        """A session whose job ends with this error."""

        @property
        def sparkContext(self) -> Any:  # noqa: N802 - Spark's name
            raise PySparkException(reported)

    path = str(goldens["v498-basic"])
    session: Any = Fails()
    found = SegmentJob(session, path, SourceOptions((path,)), Level.DEFAULT).run()
    assert type(found) is kind
    assert found == (
        Lost("a defect") if kind is Lost else Unsplittable(first_line(PySparkException(reported)))
    )
