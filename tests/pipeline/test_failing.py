"""What fails is named, everything else is finished."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from rmqtool.cli.main import run
from rmqtool.errors import ExitCode
from rmqtool.output.messages import MessageShape
from rmqtool.pipeline.options import SourceOptions
from rmqtool.pipeline.runner import Lost, over_log, run_each
from rmqtool.pipeline.session import first_line
from rmqtool.store.layout import Store
from tests.helpers import rmq
from tests.pipeline.failing import work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession

    import fixtures


def test_workers_that_die(spark: SparkSession, tmp_path: Path) -> None:
    once = f"once:{tmp_path / 'marker'}"
    groups = {"a": ["x", "dies", "y"], "b": [once, "refused:/etc/store"], "c": ["z"]}
    found = dict(run_each(spark, groups, work))
    assert found["a"][0] == "X"
    assert found["a"][2] == "Y"
    assert isinstance(found["a"][1], Lost)
    assert found["a"][1].error
    assert "\n" not in found["a"][1].error
    assert found["b"] == [once.upper(), Lost("/etc/store: Permission denied")]
    assert found["c"] == ["Z"]


def test_store_that_disappears(
    spark: SparkSession, goldens: dict[str, Path], fresh_golden: Callable[[str], fixtures.Golden]
) -> None:
    from rmqtool.pipeline.verify import summary_of, verify

    gone = fresh_golden("v498-basic").path
    options = SourceOptions((str(gone), str(goldens["v533-compressed"])))
    shutil.rmtree(gone)
    verdicts = list(verify(spark, options))
    assert [one.exit_code() for one in verdicts] == [ExitCode.INCOMPLETE, ExitCode.OK]
    (row,) = verdicts[0].not_covered
    assert "no such file" in row["error"]
    summary = summary_of(verdicts)
    assert (summary["complete"], summary["not_covered"]) == (False, [row | {"store": str(gone)}])
    assert verdicts[1].summary["records"] > 0


def test_segment_that_disappears(
    spark: SparkSession, fresh_golden: Callable[[str], fixtures.Golden], tmp_path: Path
) -> None:
    from rmqtool.pipeline.export import ExportForm, ExportJob
    from rmqtool.pipeline.stats import stats

    path = fresh_golden("v498-basic").path
    store = Store.open(path)
    second = store.segments[1]
    options = SourceOptions((str(path),), part_bytes=8192)
    second.file.absolute.unlink()
    job = ExportJob(
        spark,
        options,
        ExportForm("ndjson", MessageShape("auto", False, frozenset())),
        tmp_path / "to",
        force=False,
    )
    job.begin()
    (done,) = job.run({str(path): store}, {})
    job.publish()
    assert job.exit_code() == ExitCode.INCOMPLETE
    assert {row["path"] for row in done.not_covered} == {second.file.display_path}
    rows = [
        json.loads(line)
        for file in sorted((tmp_path / "to").glob("*.ndjson"))
        for line in file.read_text().splitlines()
    ]
    assert {row["segment"] for row in rows} == {one.base for one in store.segments} - {second.base}
    ((_, found),) = stats(spark, replace(options, part_bytes=0), {str(path): store})
    assert found.summary()["messages"] == len(rows) == done.summary["messages"]
    assert {row["reason"] for row in found.not_covered} == {"unreadable"}


def losing(over_log: Callable[..., Any]) -> Callable[..., Any]:
    """As if the task of the second part had died again and again."""

    def second_lost(*given: Any) -> Iterator[Any]:
        for store, results in over_log(*given):
            lost = [
                (part, Lost("died") if number == 1 else one) for number, (part, one) in enumerate(results)
            ]
            yield store, lost

    return second_lost


@pytest.mark.parametrize(
    ("command", "option"), [("export", "--to"), ("rebuild", "--output"), ("stats", None)]
)
def test_a_part_whose_task_dies_is_named(
    spark: SparkSession,
    goldens: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    option: str | None,
) -> None:
    monkeypatch.setattr(f"rmqtool.pipeline.{command}.over_log", losing(over_log))
    to = [] if option is None else [option, tmp_path / "new"]
    done = rmq("pipeline", command, goldens["v498-basic"], *to, "--json", "--part-size", "20000")
    assert done.exit_code == ExitCode.INCOMPLETE, done.stderr
    summary = json.loads(done.stdout)
    summary = summary.get("summary", summary)
    assert summary["complete"] is False
    assert ["died" in row["error"] for row in summary["not_covered"]] == [True]
    assert (tmp_path / "new").exists() is (command == "export")


def test_export_that_fails_leaves_nothing(
    spark: SparkSession, goldens: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from rmqtool.pipeline.export import ExportJob

    def interrupted(self: ExportJob) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(ExportJob, "publish", interrupted)
    assert rmq("pipeline", "export", goldens["v498-basic"], "--to", tmp_path / "to").exit_code == 130
    assert not list(tmp_path.iterdir())


def test_without_java_there_is_one_line(
    goldens: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    from rmqtool.pipeline.session import check_java
    from tests.helpers import rmq_process

    done = rmq_process("pipeline", "verify", goldens["v498-basic"], PATH=str(tmp_path), JAVA_HOME="")
    assert (done.exit_code, done.stdout) == (2, "")
    assert done.stderr.startswith("rmqtool: Spark needs Java 17")
    assert done.stderr.count("\n") == 1
    check_java()
    assert run(["pipeline", "verify", str(goldens["v498-basic"]), "--conf", "no"]) == 2
    assert "--conf" in capsys.readouterr().err


def test_a_wrong_master_is_one_line(goldens: dict[str, Path]) -> None:
    from tests.helpers import rmq_process

    done = rmq_process("pipeline", "verify", goldens["v498-basic"], "--master", "bogus")
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("rmqtool: --master bogus: Master must")


def test_what_spark_says_is_told_without_stacks() -> None:
    text = (
        "An error occurred while calling x.\n: org.apache.spark.SparkException: Job aborted\n\tat a.b(C:1)\n"
    )
    assert first_line(Exception(text)) == "Job aborted"
    cause = "Caused by: org.apache.PythonException: Traceback:\n  File\na.b.StoreIOError: /x: no\n"
    assert first_line(Exception(text + cause)) == "/x: no"
    parsing = "[PARSE_SYNTAX_ERROR] Syntax error at or near 'x'. SQLSTATE: 42601 (line 1, pos 0)\n\n== SQL =="
    assert first_line(Exception(parsing)) == "Syntax error at or near 'x'"
    assert first_line(ValueError()) == "ValueError"


@pytest.mark.full
def test_query_key_and_sql_go_on_without_a_store_whose_tasks_die(
    spark: SparkSession, goldens: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from rmqtool.pipeline import source
    from tests.pipeline.failing import DYING, DyingKeys, DyingSource

    assert DyingSource.name() == source.FORMAT
    monkeypatch.setattr("rmqtool.pipeline.keys.broadcast.KeyTask", DyingKeys)
    monkeypatch.setattr("rmqtool.pipeline.sql.RocketMQSource", DyingSource)
    stores = [goldens["v533-batchcq"], goldens[DYING]]
    reported = []
    try:
        for words in (
            ("query-key", *stores, "--key", "key-1", "--source", "index"),
            ("sql", *stores, "select store, count(*) as n from messages group by store"),
        ):
            done = rmq("pipeline", *words, "--format", "ndjson", "--part-size", "0")
            assert done.exit_code == 3, done.stderr
            reported.append(done.rows)
    finally:
        spark.dataSource.register(source.RocketMQSource)
    for rows in reported:
        assert rows[-1]["complete"] is False
        assert {row["store"] for row in rows[-1]["not_covered"] if row["reason"] == "unreadable"} == {
            str(stores[1])
        }
    assert [row["store"] for row in reported[1][:-1]] == [str(stores[0])]


def test_interrupted_verify_names_the_stores_that_it_did_not_reach(
    spark: SparkSession, goldens: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    from rmqtool.pipeline import verify

    every = verify.verify

    def interrupted(*given: object) -> Iterator[verify.StoreVerdict]:
        yield next(every(*given))
        raise KeyboardInterrupt

    monkeypatch.setattr(verify, "verify", interrupted)
    stores = list(goldens.values())[:3]
    done = rmq("pipeline", "verify", *stores, "--format", "ndjson")
    summary = done.rows[-1]
    assert (done.exit_code, summary["incomplete_reason"]) == (130, "interrupted")
    assert [row["path"] for row in summary["not_covered"]] == [str(one) for one in stores[1:]]
    assert [part["store"] for part in summary.get("stores", ())] in ([], [str(stores[0])])
