"""Both kernel modules, and how many examples a run is worth."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType


def numba_kernels() -> ModuleType:
    """The compiled kernels; skips, and says so, where numba is missing."""
    pytest.importorskip("numba", reason="numba is not installed: the compiled kernels are not tested")
    return importlib.import_module("rmqtool.scan.kernels")


def ahead_kernels() -> ModuleType:
    """The kernels compiled ahead; skips, and says why, where they cannot be used."""
    try:
        return importlib.import_module("rmqtool.scan.kernels_ahead")
    except ImportError as error:
        pytest.skip(f"no kernels compiled ahead (python -m rmqtool.scan.ahead.build): {error}")


def compiled_choice() -> str:
    """What `RMQTOOL_KERNELS` calls those."""
    return "numba" if compiled_kernels().__name__ == "rmqtool.scan.kernels" else "ahead"


def python_kernels() -> ModuleType:
    """The plain-Python twin."""
    return importlib.import_module("rmqtool.scan.kernels_python")


def compiled_kernels() -> ModuleType:
    """Those compiled ahead, else numba's: what a command takes for a large input."""
    try:
        return importlib.import_module("rmqtool.scan.kernels_ahead")
    except ImportError:
        return numba_kernels()


KERNELS = {"compiled": compiled_kernels, "numba": numba_kernels, "python": python_kernels}
FULL = pytest.mark.full


@pytest.fixture(
    scope="session",
    params=["compiled", pytest.param("numba", marks=FULL), pytest.param("python", marks=FULL)],
)
def kernels(request: pytest.FixtureRequest) -> ModuleType:
    """Each of the kernel modules; `both` holds the plain one against a compiled one in every run."""
    return KERNELS[request.param]()


@pytest.fixture(scope="session", params=["compiled", pytest.param("numba", marks=FULL)])
def both(request: pytest.FixtureRequest) -> tuple[ModuleType, ModuleType]:
    """Two kernel modules at once: (plain Python, compiled)."""
    return python_kernels(), KERNELS[request.param]()


@pytest.fixture(params=[1, pytest.param(40, marks=pytest.mark.full)], ids=["some", "many"])
def effort(request: pytest.FixtureRequest) -> int:
    """By how much to multiply the number of examples; the large one runs with `-m full` only."""
    return int(request.param)
