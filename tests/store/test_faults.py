"""A mapped file that is cut under the reader: zeros and a count instead of the end of the process."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from rmqtool.store import faults
from rmqtool.store.access import open_source
from rmqtool.store.bytes import PreadSource
from rmqtool.store.mapped import MappedSource
from tests.helpers import ROOT
from tests.scan.conftest import compiled_kernels

if TYPE_CHECKING:
    from pathlib import Path

    import numpy as np

SIZE = 8 << 20
LEFT = 3 << 20


@pytest.fixture
def file(tmp_path: Path) -> Path:
    assert compiled_kernels().walk
    if not faults.installed():
        pytest.skip("no handler on this system")
    path = tmp_path / "00000000000000000000"
    path.write_bytes(b"\x01" * SIZE)
    return path


def test_many_threads_survive_a_cut_and_see_zeros(file: Path) -> None:
    with open_source(file) as source:
        assert isinstance(source, MappedSource)
        window = source.window(0, SIZE)
        os.truncate(file, LEFT)
        sums: list[int] = []

        def add(part: int) -> None:
            sums.append(int(window[part::5].sum()))

        threads = [threading.Thread(target=add, args=(part,)) for part in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sum(sums) == LEFT
        assert source.had_fault()
        assert not source.had_fault(), "reported once: from then on windows are copies"
        assert not source.zero_copy
        assert source.window(0, SIZE).tobytes() == b"\x01" * LEFT


def test_a_cut_within_the_last_page_is_reported(file: Path) -> None:
    """The rest of the page that a file ends in is zeros to a mapping, without a fault."""
    with open_source(file) as source:
        window = source.window(SIZE - 10, 10)
        assert not source.had_fault()
        os.truncate(file, SIZE - 5)
        assert bytes(window) == b"\x01" * 5 + bytes(5)
        assert source.had_fault()
        assert source.window(SIZE - 10, 10).tobytes() == b"\x01" * 5


def test_in_a_kernel(file: Path) -> None:
    with open_source(file) as source:
        window = source.window(0, SIZE)
        os.truncate(file, 0)
        assert compiled_kernels().first_nonzero(window, 0) == SIZE
        assert source.had_fault()
        assert source.window(0, 10).size == 0


def test_one_file_does_not_spoil_another(file: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"\x02" * SIZE)
    with open_source(file) as cut, open_source(other) as whole:
        window = cut.window(0, SIZE)
        os.truncate(file, 0)
        assert not window.any()
        assert (whole.window(0, SIZE) == 2).all()
        assert not whole.had_fault()
        assert cut.had_fault()


def test_a_window_that_outlives_its_source_is_guarded(file: Path) -> None:
    source = open_source(file)
    window: np.ndarray = source.window(0, SIZE)
    source.close()
    os.truncate(file, 0)
    assert not window.any()


def test_the_collector_may_end_a_mapping_while_another_is_entered(file: Path) -> None:
    source = open_source(file)
    loop: list[object] = [source]
    loop.append(loop)  # only the collector ends it

    def enter() -> None:
        with faults._lock:  # where `guard` is when an allocation starts the collector
            gc.collect()

    thread = threading.Thread(target=enter, daemon=True)
    del source, loop
    thread.start()
    thread.join(30)
    assert not thread.is_alive()


def test_without_room_in_the_table_a_file_is_copied(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(faults, "guard", lambda *_: None)
    with open_source(file) as source:
        assert isinstance(source, PreadSource)
        assert source.window(SIZE - 1, 2).tobytes() == b"\x01"


_FOREIGN = """
import mmap, os, sys
from rmqtool.scan.engine import choose_kernels
choose_kernels()
from rmqtool.store.access import open_source
path = sys.argv[1]
guarded = open_source(path)
with open(path, "r+b") as own:
    foreign = mmap.mmap(own.fileno(), 0, access=mmap.ACCESS_READ)
    own.truncate(0)
assert not guarded.window(0, 1).any()
os.write(1, b"alive")
foreign[100_000]
"""


@pytest.mark.parametrize("kernels", ["auto", pytest.param("numba", marks=pytest.mark.full)])
def test_a_fault_elsewhere_ends_the_process_as_ever(file: Path, kernels: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", _FOREIGN, str(file)],
        capture_output=True,
        check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT), "RMQTOOL_KERNELS": kernels},
    )
    assert (done.returncode, done.stdout) == (-7, b"alive")


def test_without_the_compiler_nothing_is_mapped(file: Path) -> None:
    code = (
        "import sys; from rmqtool.store.access import open_source;"
        "print(type(open_source(sys.argv[1])).__name__)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(file)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.stdout.strip() == "PreadSource"
