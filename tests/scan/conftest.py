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


@pytest.fixture(scope="session", params=[pytest.param("python", marks=pytest.mark.full), "numba"])
def kernels(request: pytest.FixtureRequest) -> ModuleType:
    """Each of the two kernel modules; `both` holds the plain one against the compiled one in every run."""
    if request.param == "numba":
        return numba_kernels()
    return importlib.import_module("rmqtool.scan.kernels_python")


@pytest.fixture(scope="session")
def both() -> tuple[ModuleType, ModuleType]:
    """Both kernel modules at once: (plain Python, compiled)."""
    return importlib.import_module("rmqtool.scan.kernels_python"), numba_kernels()


@pytest.fixture(params=[1, pytest.param(40, marks=pytest.mark.full)], ids=["some", "many"])
def effort(request: pytest.FixtureRequest) -> int:
    """By how much to multiply the number of examples; the large one runs with `-m full` only."""
    return int(request.param)
