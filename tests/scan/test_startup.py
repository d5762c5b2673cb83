"""Processes of their own: cold caches, none at all, no compiler, and stores too small to need one."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from fixtures.builder import HandmadeLog
from rmqtool.scan import engine
from tests.helpers import ROOT, Result, rmq_process
from tests.scan.conftest import ahead_kernels, numba_kernels

if TYPE_CHECKING:
    from pathlib import Path

NO_CACHE_NOTE = "rmqtool: no writable cache directory, compiling for this run only\n"
WITHOUT_HOME = {name: value for name, value in os.environ.items() if name not in {"HOME", "NUMBA_CACHE_DIR"}}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    log = HandmadeLog(segment_size=8192)
    for number in range(30):
        log.put("TopicTest", b"hello %d" % number, {"TAGS": "A", "UNIQ_KEY": f"ID{number}"})
    log.write(tmp_path / "store" / "commitlog")
    return tmp_path / "store"


def dump(store: Path, **environment: str) -> Result:
    return rmq_process("dump", store, "--format", "ndjson", **environment)


def python(code: str, source: Path, environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code],
        cwd=source,
        env={**environment, "PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        timeout=250,
        check=False,
    )


WALK = """
import numpy as np
from formats.commitlog import encode_message
from rmqtool.scan import kernels
from rmqtool.scan.fields import ROW_WIDTH, STATUS_WIDTH, Field
rows, status = np.empty((4, ROW_WIDTH), np.int64), np.zeros(STATUS_WIDTH, np.int64)
log = np.frombuffer(encode_message("T", b"body" * 99, b"TAGS\\x01A"), np.uint8)
kernels.walk(log, 0, 0, log.size, 0, 3, rows, status)
print(*status.tolist()[:3], rows[0, Field.CRC_STATE], rows[0, Field.TAGS_LENGTH])
"""
WALKED = "1 494 2 1 1\n"
SMALL = """
import numpy as np
from rmqtool.scan import kernels
data = np.frombuffer(b"123456789" + bytes(100) + b"x", np.uint8)
at = data.ctypes.data
print(kernels.crc_at(at, 9), kernels.utf8_ok(at, 9), kernels.first_nonzero(data, 9))
"""
SMALL_ANSWER = f"{0xCBF43926 & 0x7FFFFFFF} True 109\n"


@pytest.mark.skipif(sys.platform != "linux", reason="needs a file system that root cannot write")
def test_nowhere_to_write_a_cache(tmp_path: Path) -> None:
    """Installed read-only, no home: works, and says why it takes longer."""
    numba_kernels()
    source = tmp_path / "installed"
    for package in ("rmqtool", "formats"):
        shutil.copytree(ROOT / package, source / package, ignore=shutil.ignore_patterns("__pycache__"))
    before = {path: path.stat().st_mtime_ns for path in source.rglob("*")}
    # root may write anywhere but in /proc; what stands in the way of a cache below the source is a file
    for directory in {path.parent for path in before if path.is_file()}:
        (directory / "__pycache__").write_bytes(b"")
    environment = {**WITHOUT_HOME, "HOME": "/proc/none", "XDG_CACHE_HOME": "/proc/none"}
    done = python(SMALL, source, environment)
    assert (done.returncode, done.stdout, done.stderr) == (0, SMALL_ANSWER, NO_CACHE_NOTE)
    after = {path for path in source.rglob("*") if path.name != "__pycache__"}
    assert after == set(before)


@pytest.mark.full
@pytest.mark.parametrize(
    ("code", "answer"),
    [
        pytest.param(SMALL, SMALL_ANSWER, id="small kernels"),
        pytest.param(WALK, WALKED, id="walk"),
    ],
)
def test_eight_processes_start_cold_at_once(tmp_path: Path, code: str, answer: str) -> None:
    numba_kernels()
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: python(code, ROOT, environment), range(8)))
    assert [(done.returncode, done.stdout, done.stderr) for done in answers] == [(0, answer, "")] * 8
    assert any((tmp_path / "cache").rglob("*.nbi"))


BLOCKED = (
    "import sys\n"
    "for name in ('numba', 'llvmlite', 'rmqtool.scan.kernels_ahead'):\n"
    "    sys.modules[name] = None\n"
)
RUN = (
    "import sys\nfrom rmqtool.cli.main import run\nsys.exit(run(['dump', {store!r}, '--format', 'ndjson']))\n"
)


def test_without_numba(store: Path) -> None:
    usual = dump(store)
    assert len(usual.of_type("message")) == 30
    for kernels in ("", "python", "auto"):
        environment = {**os.environ, "RMQTOOL_KERNELS": kernels}
        done = python(BLOCKED + RUN.format(store=str(store)), ROOT, environment)
        assert (done.returncode, done.stderr, done.stdout) == (0, "", usual.stdout)


def test_numba_demanded_and_missing(store: Path) -> None:
    done = python(BLOCKED + RUN.format(store=str(store)), ROOT, {**os.environ, "RMQTOOL_KERNELS": "numba"})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("rmqtool: RMQTOOL_KERNELS=numba, but numba cannot be imported")
    assert done.stderr.count("\n") == 1


def test_large_logs_without_numba() -> None:
    code = BLOCKED + "from rmqtool.scan.engine import choose_kernels\nprint(choose_kernels(1 << 40).__name__)"
    assert python(code, ROOT, dict(os.environ)).stdout == "rmqtool.scan.kernels_python\n"


def test_kernels_are_loaded_where_that_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(engine.ENVIRONMENT, raising=False)
    least = engine.WORTH_LOADING["ahead"]
    assert engine.choose_kernels(least) is ahead_kernels()
    assert engine.choose_kernels(least - 1).__name__ == "rmqtool.scan.kernels_python"


def test_an_unknown_choice_of_kernels(store: Path) -> None:
    result = dump(store, RMQTOOL_KERNELS="bogus")
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr == "rmqtool: RMQTOOL_KERNELS=bogus: use auto, ahead, numba or python\n"


@pytest.mark.full
def test_all_kernels_dump_the_same(store: Path) -> None:
    numba_kernels()
    ahead_kernels()
    digests = {
        hashlib.sha256(dump(store, RMQTOOL_KERNELS=kernels).stdout.encode()).hexdigest()
        for kernels in ("python", "numba", "ahead", "auto")
    }
    assert len(digests) == 1


def test_which_kernels_answer_is_said(store: Path) -> None:
    ahead_kernels()
    done = rmq_process("dump", store, "--debug", "--quiet", RMQTOOL_KERNELS="ahead")
    assert (done.exit_code, done.stderr) == (0, "rmqtool: kernels: ahead\n")
    done = rmq_process("dump", store, "--debug", "--quiet")
    assert (done.exit_code, done.stderr) == (0, "rmqtool: kernels: python\n")


def test_a_large_input_needs_no_compiler(store: Path) -> None:
    ahead_kernels()
    code = "import os\nos.environ['RMQTOOL_KERNELS'] = 'ahead'\n" + LOADED.format(store=str(store))
    done = python(code, ROOT, dict(os.environ))
    assert done.stdout.splitlines()[-1] == "['isal'] 0"


LOADED = """
import sys
from rmqtool.cli.main import run
code = run(['dump', {store!r}, '--limit', '1', '--quiet'])
heavy = ('numba', 'llvmlite', 'isal', 'pandas', 'duckdb', 'pyspark')
print(sorted(name for name in heavy if name in sys.modules), code)
"""


def test_a_small_store_never_loads_the_compiler(store: Path) -> None:
    done = python(LOADED.format(store=str(store)), ROOT, dict(os.environ))
    assert done.stdout.splitlines()[-1] == "[] 0"


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="needs /proc")
def test_a_command_starts_no_threads_that_it_has_no_work_for(store: Path) -> None:
    code = (
        "import os, sys\nfrom contextlib import suppress\nfrom rmqtool.cli.main import main\n"
        f"sys.argv = ['rmqtool', 'dump', {str(store)!r}, '--limit', '1', '--quiet', '--jobs', '1']\n"
        "with suppress(SystemExit):\n    main()\n"
        "names = [open(f'/proc/self/task/{one}/comm').read() for one in os.listdir('/proc/self/task')]\n"
        "print('numpy' in sys.modules, sum('jemalloc' not in name for name in names))\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = python(code, ROOT, environment)
    assert done.stdout.splitlines()[-1] == "True 1"


def test_a_large_file_with_little_in_it_is_small(store: Path) -> None:
    """A broker's segment has 1 GiB from the start; most of it is a hole."""
    with (store / "commitlog" / f"{0:020d}").open("r+b") as file:
        file.truncate(1 << 30)
    done = python(LOADED.format(store=str(store)), ROOT, dict(os.environ))
    assert done.stdout.splitlines()[-1] == "[] 0"


AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user, which only root may")
SAYING = "import logging\nlogging.basicConfig(level=10, format='%(message)s')\n"


@AS_ROOT
@pytest.mark.full
def test_nothing_is_loaded_from_a_cache_of_another_user(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    (cache / "rmqtool").mkdir(parents=True)
    os.chown(cache, 65534, 65534)
    environment = {**WITHOUT_HOME, "HOME": str(tmp_path), "XDG_CACHE_HOME": str(cache)}
    done = python(SAYING + SMALL, ROOT, environment)
    assert (done.returncode, done.stdout) == (0, SMALL_ANSWER)
    assert f"compiling for this run only: another user may change {cache}" in done.stderr
    assert not list((cache / "rmqtool").iterdir())
