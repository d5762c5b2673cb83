"""What is shipped: two packages, what Spark looks for, and a program that runs where no checkout is."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import fixtures
from rmqtool.scan.ahead import target
from tests.project.files import ROOT

pytestmark = [pytest.mark.packaging, pytest.mark.timeout(900)]


def run(*command: str | Path, cwd: Path) -> str:
    clean = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))
    }
    done = subprocess.run(
        list(map(str, command)), cwd=cwd, env=clean, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution and the wheel, built with what is installed here."""
    place = tmp_path_factory.mktemp("dist")
    kinds = ("--sdist", "--wheel", "--no-isolation")
    run(sys.executable, "-m", "build", *kinds, "--outdir", place, ROOT, cwd=place)
    return place


def test_wheel_holds_exactly_two_packages_and_what_spark_looks_for(built: Path) -> None:
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith((".dist-info", ".data"))} == {
        "rmqtool",
        "formats",
        "pyspark_rocketmq",
    }
    modules = {
        str(path.relative_to(ROOT)) for room in ("rmqtool", "formats") for path in (ROOT / room).rglob("*.py")
    }
    assert modules - set(names) == {"rmqtool/pipeline/pyspark_rocketmq.py"}  # it becomes the module below
    assert [name for name in names if name.startswith("pyspark_")] == ["pyspark_rocketmq/__init__.py"]
    assert {"rmqtool/py.typed", "formats/py.typed"} <= set(names)
    manual = {Path(name).name for name in names if ".data/data/share/man/man1/" in name}
    assert manual == {path.name for path in (ROOT / "docs" / "man").iterdir()}


def test_wheel_has_the_kernels_of_its_sources(built: Path, tmp_path: Path) -> None:
    """Compiled when it is built, and used from where it is installed, with no compiler there."""
    if not target.supported():
        pytest.skip("kernels are compiled ahead on 64-bit Linux on x86 only")
    (wheel,) = built.glob("*.whl")
    assert "manylinux_2_17_x86_64" in wheel.name
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    code = "import sys, rmqtool.scan.kernels_ahead as k; print(k.__file__, 'numba' in sys.modules)"
    done = run("/usr/bin/env", f"PYTHONPATH={tmp_path}", sys.executable, "-c", code, cwd=tmp_path)
    assert done.split() == [str(tmp_path / "rmqtool" / "scan" / "kernels_ahead.py"), "False"]


def test_source_distribution_has_licence_and_no_fixtures(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml"} <= names
    assert not [name for name in names if name.startswith(("fixtures", "tests"))]


@pytest.mark.full
def test_source_runs_in_a_fresh_environment(built: Path, tmp_path: Path) -> None:
    golden = fixtures.open_golden("v498-basic", tmp_path)
    (sdist,) = built.glob("*.tar.gz")
    venv.create(tmp_path / "env", with_pip=True)
    run(tmp_path / "env/bin/python", "-m", "pip", "install", "-q", sdist, cwd=tmp_path)
    rmqtool = tmp_path / "env/bin/rmqtool"
    assert "dump" in run(rmqtool, "--help", cwd=tmp_path)
    assert run(rmqtool, "--version", cwd=tmp_path).startswith("rmqtool ")
    lines = run(rmqtool, "dump", golden.path, "--format", "ndjson", cwd=tmp_path).splitlines()
    assert len([line for line in lines if '"type":"message"' in line]) == len(golden.expected["records"])
    if target.supported():
        code = "import rmqtool.scan.kernels_ahead"
        run(tmp_path / "env/bin/python", "-c", code, cwd=tmp_path)
