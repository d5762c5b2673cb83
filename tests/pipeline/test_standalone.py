"""A standalone master with two workers on the loopback, and the recipe of docs/pipeline.md, word for word."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.helpers import ROOT, free_port, rmq

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

pytestmark = [pytest.mark.full, pytest.mark.timeout(3600)]

WORKERS = 2
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}


def recipe() -> list[str]:
    """The blocks of commands of the section on clusters: an environment, then a job in two ways."""
    text = (ROOT / "docs" / "pipeline.md").read_text().split("## On a cluster")[1]
    return [block for block in re.findall(r"(?:^    .*\n|^\n(?=    ))+", text, re.MULTILINE) if block.strip()]


def shell(block: str, place: Path, *, check: bool = True) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        ["bash", "-e", "-c", block],
        cwd=place,
        env=CLEAN | {"PATH": f"{place / 'env' / 'bin'}:{CLEAN['PATH']}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert not check or done.returncode == 0, f"{block}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the first step of the recipe was done, with a wheel of this tree."""
    place = tmp_path_factory.mktemp("recipe")
    built = [sys.executable, "-m", "build", "--wheel", "--outdir", str(place), str(ROOT)]
    assert subprocess.run(built, env=CLEAN, capture_output=True, check=False).returncode == 0
    (wheel,) = place.glob("*.whl")
    block = recipe()[0]
    assert "'rmqtool[spark]'" in block
    block = block.replace("'rmqtool[spark]'", f"'{wheel}[spark]'").replace(
        "python -m", f"{sys.executable} -m"
    )
    done = shell(block, place, check=False)
    if "No matching distribution" in done.stderr or "Connection" in done.stderr:
        pytest.skip("no package registry to install from")
    assert done.returncode == 0, done.stderr[-2000:]
    return place


@contextmanager
def deployed(place: Path, kind: str, words: Sequence[str], before: Sequence[str] = ()) -> Iterator[Path]:
    """A master or worker; its log."""
    (home,) = place.glob("env/lib/python*/site-packages/pyspark")
    log = place / f"{kind}-{time.monotonic_ns()}.log"
    with log.open("wb") as out:
        process = subprocess.Popen(
            [*before, str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{kind}", *words],
            cwd=place,
            env=CLEAN | {"SPARK_HOME": str(home), "SPARK_LOCAL_IP": "127.0.0.1"},
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        yield log
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


@contextmanager
def cluster(place: Path, before: Sequence[str] = ()) -> Iterator[str]:
    """A master and its workers; the master's address. before: what the workers are started with."""
    port = free_port()
    address = f"spark://127.0.0.1:{port}"
    master = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", "0"]
    one = ["--host", "127.0.0.1", "--cores", "1", "--memory", "1g", "--webui-port", "0", address]
    with ExitStack() as stack:
        stack.enter_context(deployed(place, "master.Master", master))
        logs = [
            stack.enter_context(
                deployed(place, "worker.Worker", ["--work-dir", f"{place}/work{number}", *one], before)
            )
            for number in range(WORKERS)
        ]
        until = time.monotonic() + 180
        while not all("Successfully registered" in log.read_text() for log in logs):
            assert time.monotonic() < until, [log.read_text()[-1000:] for log in logs]
            time.sleep(0.2)
        yield address


def test_recipe(place: Path, goldens: dict[str, Path]) -> None:
    stores = place / "backup"
    for name in ("v498-basic", "v533-compressed"):
        shutil.copytree(goldens[name], stores / name / "store")
    listed = [str(one) for one in sorted(stores.glob("*/store"))]
    expected = [
        row | {"store": one} for one in listed for row in rmq("verify", one, "--format", "ndjson").rows
    ]
    findings = [row for row in expected if row["type"] == "finding"]
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    blocks = recipe()[1:3]
    assert ["spark-submit" in block for block in blocks] == [False, True]
    with cluster(place) as address:
        for block in blocks:
            words = block.rstrip().replace("spark://host:7077", address).replace("python3.11", version)
            words = words.replace("/backup/", f"{stores}/") + " --format ndjson"
            done = shell(words, place)
            rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
            assert rows[:-1] == findings
            assert [part["records"] for part in rows[-1]["stores"]] == [
                row["records"] for row in expected if row["type"] == "summary"
            ]
    assert len(list(place.glob("work*/*/*"))) >= 2 * WORKERS  # an executor each, twice


def test_output_that_only_the_driver_sees(place: Path, goldens: dict[str, Path]) -> None:
    hidden = place / "hidden"
    hidden.mkdir()
    alone = ["unshare", "--mount", "bash", "-c", f'mount -t tmpfs none {hidden} && exec "$0" "$@"']
    if subprocess.run([*alone, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no mount namespaces for this user")
    store = goldens["v498-basic"]
    settings = "--conf spark.archives=rmqtool-env.tar.gz#environment"
    jobs = {
        "export": f"--to {hidden}/out",
        "rebuild": f"--output {hidden}/out",
        "stream": f"--once --to {hidden}/out",
    }
    with cluster(place, alone) as address:
        for job, to in jobs.items():
            command = f"env/bin/rmqtool pipeline {job} {store} {to} --master {address} {settings}"
            done = shell(f"PYSPARK_PYTHON=./environment/bin/python {command}", place, check=False)
            assert (done.returncode, done.stderr.count("\n")) == (4, 1), done.stderr
            assert "is not there where tasks run" in done.stderr
            assert not [path for path in hidden.rglob("*") if path.is_file()]
            shutil.rmtree(hidden / "out", ignore_errors=True)
