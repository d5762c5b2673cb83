"""Workers of Spark that cannot run at all end a command with one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from rmqtool.errors import UsageError
from rmqtool.pipeline.workers import refuse_workers
from tests.helpers import rmq_process

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("said", "reported"),
    [
        ("java.io.IOException: Cannot run program \"./env/python\": error=13, Permission denied\n\tat java",
         "./env/python: Permission denied"),
        ("SparkException: EOFException occurred while reading the port number from pyspark.daemon's stdout.",
         "it does not answer as Python does"),
        ("  File \"x.py\"\nModuleNotFoundError: No module named 'rmqtool'\n",
         "its Python has no module rmqtool"),
        ("[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.12 than that in driver: 3.11,",
         "its Python is 3.12, that of the driver 3.11"),
        ("StoreIOError: /data: Permission denied", None),
    ],
)  # fmt: skip
def test_workers_that_cannot_run_are_told_from_tasks_that_fail(said: str, reported: str | None) -> None:
    error = RuntimeError(said)
    if reported is None:
        refuse_workers(error)
        return
    with pytest.raises(UsageError) as refused:
        refuse_workers(error)
    assert str(refused.value).endswith(f": {reported}")


@pytest.mark.parametrize(
    "job",
    [
        pytest.param(("verify",), marks=pytest.mark.full),
        pytest.param(("sql", "select count(*) from messages"), marks=pytest.mark.full),
        pytest.param(("query-key", "--key", "a"), marks=pytest.mark.full),
        pytest.param(("stream", "--once", "--to", "{}/lake"), marks=pytest.mark.full),
        pytest.param(("export", "--to", "{}/out"), marks=pytest.mark.full),
    ],
)
def test_without_a_python_for_workers_there_is_one_line(
    goldens: dict[str, Path], tmp_path: Path, job: tuple[str, ...]
) -> None:
    command, *words = job
    filled = [word.format(tmp_path) for word in words]
    done = rmq_process(
        "pipeline", command, goldens["v498-basic"], *filled, "--master", "local[1]",
        PYSPARK_PYTHON="/nowhere/python",
    )  # fmt: skip
    assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert "/nowhere/python: No such file or directory" in done.stderr
    assert not (tmp_path / "out").exists()
