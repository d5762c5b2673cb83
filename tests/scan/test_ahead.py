"""The kernels compiled ahead are loaded only where they are right; everything else means numba, as before."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import numpy as np
import pytest

from rmqtool.scan.ahead import build, signatures, target
from rmqtool.scan.cache import compiled_in
from tests.helpers import ROOT
from tests.scan.conftest import ahead_kernels, numba_kernels

if TYPE_CHECKING:
    from pathlib import Path

NOBODY = 65534
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user, which only root may")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A library of this checkout in a place of its own."""
    ahead_kernels()
    for name in (target.LIBRARY, target.MANIFEST):
        shutil.copy(target.PLACE / name, tmp_path)
    assert target.usable(tmp_path) == tmp_path / target.LIBRARY
    return tmp_path


def test_a_changed_library_is_not_loaded(place: Path) -> None:
    with (place / target.LIBRARY).open("r+b") as file:
        file.seek(5000)
        byte = file.read(1)
        file.seek(5000)
        file.write(bytes([byte[0] ^ 1]))
    with pytest.raises(ImportError, match="is not what was built"):
        target.usable(place)


@pytest.mark.parametrize("name", [target.LIBRARY, target.MANIFEST])
def test_half_of_it_is_nothing(place: Path, name: str) -> None:
    (place / name).unlink()
    with pytest.raises(ImportError, match="not built in"):
        target.usable(place)


@as_root
@pytest.mark.parametrize("name", [target.LIBRARY, target.MANIFEST, "."])
@pytest.mark.parametrize("how", ["owned", "writable"])
def test_nothing_is_loaded_that_another_user_may_change(place: Path, name: str, how: str) -> None:
    if how == "owned":
        os.chown(place / name, NOBODY, NOBODY)
    else:
        (place / name).chmod(0o777)
    with pytest.raises(ImportError, match="another user may change"):
        target.usable(place)


def test_a_processor_that_has_less_gets_none(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text(f"processor\t: 0\nflags\t\t: fpu {' '.join(sorted(target.FEATURES))} avx512f\n")
    assert target.has_features(str(cpuinfo))
    cpuinfo.write_text(f"processor\t: 0\nflags\t\t: fpu {' '.join(sorted(target.FEATURES - {'avx2'}))}\n")
    assert not target.has_features(str(cpuinfo))
    assert not target.has_features(str(tmp_path / "none"))


CHOSEN = (
    "import logging, sys\nlogging.basicConfig(level=10, format='%(message)s')\n"
    "from rmqtool.scan.engine import choose_kernels\n"
    "print(choose_kernels().__name__, 'numba' in sys.modules)"
)


def test_other_sources_mean_numba(tmp_path: Path) -> None:
    """A checkout whose kernels were changed after they were built: never what they were before."""
    ahead_kernels()
    for package in ("rmqtool", "formats"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))

    def chosen() -> tuple[str, str]:
        done = subprocess.run(
            [sys.executable, "-c", CHOSEN],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(tmp_path)},
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout, done.stderr

    assert chosen() == ("rmqtool.scan.kernels_ahead False\n", "kernels: ahead\n")
    changed = tmp_path / "formats" / "properties.py"
    changed.write_text(changed.read_text() + "\n")
    answer, said = chosen()
    assert answer == "rmqtool.scan.kernels True\n"
    assert "kernels: not ahead: built of other sources\n" in said
    assert "kernels: numba\n" in said


def test_all_that_is_compiled_in_counts() -> None:
    names = {str(path.relative_to(ROOT)) for path in compiled_in()}
    assert {
        "formats/properties.py",
        "rmqtool/scan/kernels/walk.py",
        "rmqtool/scan/ahead/signatures.py",
    } <= names


def test_arrays_with_gaps_are_read_and_written() -> None:
    kernels = ahead_kernels()
    wide = np.zeros((4, 4), np.int64)
    wide[:, 1] = [1 << 32, 9, 2 << 32, 9]
    kernels.hashes.longest_chains(wide[::2, 1], 1, wide[:, 2])
    assert (wide[:, 2] >> 32).tolist() == [1, 2, 0, 0]
    starts, order = np.zeros(3, np.int64), np.zeros(4, np.int64)
    kernels.dispatch.by_partition(np.asfortranarray([[1, 0, 1, 0]] * 7), 4, starts, order)
    assert (starts.tolist(), order.tolist()) == ([0, 2, 4], [1, 3, 0, 2])


def test_arrays_of_another_type_are_refused() -> None:
    kernels = ahead_kernels()
    longs = np.zeros(8, np.int64)
    kernels.hashes.longest_chains(longs, 1, longs)
    for wrong in (longs.astype(np.int32), longs.reshape(2, 4)):
        with pytest.raises(TypeError, match="longest_chains"):
            kernels.hashes.longest_chains(wrong, 1, longs)
    with pytest.raises(ValueError, match="argument"):
        kernels.hashes.longest_chains(longs, 1)


def test_a_kernel_that_raises_or_allocates_is_not_built() -> None:
    """What numba needs at run time for either is left in the code, and is found there."""
    numba_kernels()
    from rmqtool.scan.kernels.compiler import kernel

    @kernel()
    def calm(longs):
        return longs.size

    @kernel()
    def raising(longs):
        if longs[0] == 7:
            raise ValueError
        return 0

    @kernel()
    def allocating(longs):
        return np.zeros(longs[0]).sum() > 0

    import llvmlite.binding as llvm

    found = {}
    for one in (calm, raising, allocating):
        module = llvm.parse_assembly("")
        module.triple = llvm.get_process_triple()
        names: dict[str, str] = {}
        compiled = build.callable_from_c(one, signatures.Signature((signatures.LONGS,), 1))
        build.add(module, compiled, "one", names)
        build.hide(module, names)
        build.optimise(module)
        found[one.py_func.__name__] = build.needs(module)
    assert found.pop("calm") == set()
    assert all(found.values())


def test_what_numba_compiles_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    numba_kernels()
    from numba import njit

    from rmqtool.scan import engine

    said: list[str] = []
    monkeypatch.setattr(engine, "compiling", said.append)

    @njit
    def inner(number):
        return number + 1

    @njit
    def outer(number):
        return inner(number)

    assert (outer(1), outer(2)) == (2, 3)
    assert said == ["outer", "inner", "", ""]


@pytest.mark.full
def test_a_build_gives_the_same_bytes_again(tmp_path: Path) -> None:
    ahead_kernels()
    for package in ("rmqtool", "formats"):
        shutil.copytree(
            ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__", "kernels.*")
        )
    command = [sys.executable, "-m", build.MODULE]
    subprocess.run(command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(tmp_path)}, check=True)
    for name in (target.LIBRARY, target.MANIFEST):
        built = tmp_path / "rmqtool" / "scan" / "ahead" / name
        assert built.read_bytes() == (target.PLACE / name).read_bytes()
