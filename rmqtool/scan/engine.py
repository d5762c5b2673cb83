"""Which kernels answer: those compiled ahead, those that numba compiles, or the plain-Python twin."""

from __future__ import annotations

import logging
import os
from functools import cache, partial
from importlib import import_module
from typing import TYPE_CHECKING, Any

from rmqtool.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from rmqtool.scan.kernel_types import Kernels

WORTH_LOADING = {"ahead": 256 << 10, "numba": 8 << 20, "python": 0}
"""bytes of data from which on loading kernels takes less time than reading the records in plain Python"""

ENVIRONMENT = "RMQTOOL_KERNELS"

MODULES = {
    "ahead": "rmqtool.scan.kernels_ahead",
    "numba": "rmqtool.scan.kernels",
    "python": "rmqtool.scan.kernels_python",
}
"""by name, in the order in which `auto` tries them"""

_LOG = logging.getLogger(__name__)

compiling: Callable[[str], None] | None = None
"""called with the name of each kernel that numba begins to compile, and with "" when it has done; the command
line shows it on a terminal"""


def choose_kernels(data_bytes: int | None = None) -> Kernels:
    """The kernel module for an input of about `data_bytes` bytes of data (None: large).

    `RMQTOOL_KERNELS=auto|ahead|numba|python` overrides. Those compiled ahead come first, where they can be
    used (`kernels_ahead`); without them and without numba, and for little data, the twin answers.
    """
    wanted = os.environ.get(ENVIRONMENT, "auto") or "auto"
    if wanted != "auto" and wanted not in MODULES:
        raise UsageError(
            f"{ENVIRONMENT}={wanted}: use auto, {', '.join(MODULES)}".replace(", python", " or python")
        )
    for name in MODULES if wanted == "auto" else (wanted,):
        if wanted == "auto" and data_bytes is not None and data_bytes < WORTH_LOADING[name]:
            continue
        module, error = _loaded(name)
        if module is not None:
            return module
        if wanted != "auto":
            raise UsageError(f"{ENVIRONMENT}={name}, but {_WITHOUT[name]}: {error}") from error
    raise AssertionError("the twin needs nothing")


def ready_kernels(data_bytes: int) -> Kernels:
    """The same without numba, for what is a few pages unless somebody means ill: no compiler is loaded."""
    return choose_kernels(min(data_bytes, WORTH_LOADING["numba"] - 1))


def prepared(kernel: Callable[..., int], *arrays: npt.NDArray[Any]) -> Callable[[], object]:
    """A kernel whose answer stands in its arrays, for arrays that stay, called without arguments.

    For calls of a microsecond: compiled ahead it costs a third of a call then, and keeps the lock of the
    interpreter. Not for two threads at once.
    """
    made: Callable[..., Callable[[], object]] = getattr(kernel, "prepared", partial(partial, kernel))
    return made(*arrays)


_WITHOUT = {"ahead": "the kernels compiled ahead cannot be used", "numba": "numba cannot be imported"}


@cache
def _loaded(name: str) -> tuple[Kernels | None, ImportError | None]:
    """A module, or why there is none; said once (`--debug`)."""
    try:
        module: Any = import_module(MODULES[name])
    except ImportError as error:
        _LOG.debug("kernels: not %s: %s", name, error)
        return None, error
    _LOG.debug("kernels: %s", name)
    return module, None
