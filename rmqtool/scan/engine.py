"""Which kernels answer: numba, or the plain-Python twin."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rmqtool.errors import UsageError

if TYPE_CHECKING:
    from types import ModuleType

SMALL_INPUT = 8 << 20
"""bytes below which loading the compiler takes longer than reading the records in plain Python"""

ENVIRONMENT = "RMQTOOL_KERNELS"


def choose_kernels(data_bytes: int | None = None) -> ModuleType:
    """The kernel module for an input of about `data_bytes` bytes of data (None: large).

    `RMQTOOL_KERNELS=auto|numba|python` overrides. Without numba the twin answers, whatever the size.
    """
    wanted = os.environ.get(ENVIRONMENT, "auto") or "auto"
    if wanted not in ("auto", "numba", "python"):
        raise UsageError(f"{ENVIRONMENT}={wanted}: use auto, numba or python")
    small = data_bytes is not None and data_bytes < SMALL_INPUT
    if wanted == "python" or (wanted == "auto" and small):
        return _twin()
    try:
        from rmqtool.scan import kernels
    except ImportError as error:
        if wanted == "numba":
            raise UsageError(f"{ENVIRONMENT}=numba, but numba cannot be imported: {error}") from error
        return _twin()
    return kernels


def _twin() -> ModuleType:
    from rmqtool.scan import kernels_python

    return kernels_python
