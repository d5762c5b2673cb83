"""Executors and drivers that are killed at work: the answer is the same, or there is nothing and then all."""

from __future__ import annotations

import hashlib
import json
import os
import signal
from typing import TYPE_CHECKING

import pytest

from fixtures.derived import write_derived
from tests.bench.data import make_log
from tests.helpers import rmq
from tests.pipeline.processes import descendants, end_group, executors, program, reads, soon

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.pipeline.processes import Process

pytestmark = [pytest.mark.full, pytest.mark.timeout(1800)]

CLUSTER = ("--master", "local-cluster[2,1,1024]")
BYTES, SEGMENTS = 1 << 29, 8
JOBS = {
    "export": ("--format", "ndjson", "--to"),
    "rebuild": ("--output",),
}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that takes seconds to read."""
    made = make_log(tmp_path_factory.mktemp("large"), "1 KiB", BYTES, SEGMENTS)
    write_derived(made.root, made.facts)
    return made.root


def working(process: Process, store: Path) -> int:
    """An executor one of whose workers has a segment of the store open; 0 without one."""
    for one in executors(process.pid):
        if any(reads(worker, store / "commitlog") for worker in descendants(one)):
            return one
    return 0


def kill_executor(process: Process, store: Path) -> None:
    os.kill(soon(process, lambda: working(process, store)), signal.SIGKILL)


def tree(root: Path) -> Iterator[tuple[str, str]]:
    """Path and digest of each file; of the summary what does not depend on the clock."""
    for path in sorted(root.rglob("*")):
        if path.is_file():
            with path.open("rb") as file:
                yield str(path.relative_to(root)), hashlib.file_digest(file, "sha256").hexdigest()


@pytest.fixture(scope="module")
def made(store: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[tuple[str, str]]]:
    """What the jobs make when nobody disturbs them."""
    place = tmp_path_factory.mktemp("undisturbed")
    found = {}
    for job, options in JOBS.items():
        with program("pipeline", job, store, *options, place / job, "--master", "local[2]") as process:
            error = process.communicate()[1]
            assert process.returncode == 0, error
        found[job] = list(tree(place / job))
        assert len(found[job]) >= SEGMENTS
    return found


def test_verify_without_an_executor(store: Path) -> None:
    local = rmq("verify", store, "--format", "ndjson")
    with program("pipeline", "verify", store, "--format", "ndjson", *CLUSTER) as process:
        kill_executor(process, store)
        out, error = process.communicate(timeout=900)
    assert process.returncode == local.exit_code, error
    rows = [json.loads(line) for line in out.splitlines()]
    assert rows[:-1] == local.rows[:-1]
    assert rows[-1] | {"seconds": 0} == local.rows[-1] | {"seconds": 0}


def test_without_java_there_is_one_line(store: Path) -> None:
    with program("pipeline", "verify", store, "--master", "local[2]") as process:
        soon(process, lambda: any(reads(one, store / "commitlog") for one in descendants(process.pid)))
        (java,) = (one for one in descendants(process.pid) if is_java(one))
        os.kill(java, signal.SIGKILL)
        out, error = process.communicate(timeout=300)
    assert (process.returncode, out) == (4, ""), error
    assert error == "rmqtool: Spark has ended: its Java process is gone\n"


def is_java(process: int) -> bool:
    try:
        return os.path.basename(os.readlink(f"/proc/{process}/exe")) == "java"
    except OSError:  # a worker that has gone meanwhile
        return False


@pytest.mark.parametrize("job", list(JOBS))
def test_files_without_an_executor(
    store: Path, made: dict[str, list[tuple[str, str]]], tmp_path: Path, job: str
) -> None:
    with program("pipeline", job, store, *JOBS[job], tmp_path / "out", *CLUSTER) as process:
        kill_executor(process, store)
        error = process.communicate(timeout=900)[1]
    assert process.returncode == 0, error
    assert list(tree(tmp_path / "out")) == made[job]
    assert [one.name for one in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("job", list(JOBS))
def test_files_after_the_driver_was_killed(
    store: Path, made: dict[str, list[tuple[str, str]]], tmp_path: Path, job: str
) -> None:
    words = ("pipeline", job, store, *JOBS[job], tmp_path / "out", "--master", "local[2]")
    with program(*words) as process:
        soon(process, lambda: any(reads(one, store / "commitlog") for one in descendants(process.pid)))
        end_group(process, signal.SIGKILL)
        process.wait()
    assert [one.name for one in tmp_path.iterdir()] == ["out.part"]
    with program(*words) as process:
        error = process.communicate(timeout=900)[1]
    assert process.returncode == 0, error
    assert list(tree(tmp_path / "out")) == made[job]
    assert [one.name for one in tmp_path.iterdir()] == ["out"]
