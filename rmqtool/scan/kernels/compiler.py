"""The decorator of all kernels: compiled without the GIL, cached on disk.

numba tells a stale cache entry by time and size of the kernel's own file, which an upgrade from a wheel may
leave as they were while a called module changed. The cache directory therefore carries a digest of everything
that is compiled in.
"""

from __future__ import annotations

import os
from pathlib import Path

from numba import cfunc, config, njit
from numba.core import event

from rmqtool.scan import engine
from rmqtool.scan.cache import cache_directory, digest_of_sources
from rmqtool.scan.crc import load_isal_symbol

_PACKAGE = Path(__file__).parent


def _cache_directory() -> str | None:
    base = config.CACHE_DIR or os.environ.get("XDG_CACHE_HOME")  # type: ignore[attr-defined]
    crc = "isal" if load_isal_symbol() else "table"
    own = os.path.join(base or os.path.expanduser("~/.cache"), "rmqtool")
    return cache_directory((own, str(_PACKAGE / "__pycache__")), f"kernels-{digest_of_sources()[:16]}-{crc}")


_DIRECTORY = _cache_directory()


class _Listener(event.Listener):
    """Tells `engine.compiling` what is compiled, which nothing is that the cache has."""

    def on_start(self, event):
        if engine.compiling is not None:
            engine.compiling(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event):  # noqa: ARG002 - numba's
        if engine.compiling is not None:
            engine.compiling("")


event.register("numba:compile", _Listener())


def kernel(**options):
    """`njit` with the disk cache where there is one (`scan.cache`), else compiled in each process."""
    return lambda function: _cached(
        lambda cache: njit(cache=cache, nogil=True, error_model="numpy", **options)(function)
    )


def callback(signature):
    """`cfunc` likewise: a function with an address, for C to call; it must not raise."""
    return lambda function: _cached(lambda cache: cfunc(signature, cache=cache)(function))


def _cached(compiled):
    before = config.CACHE_DIR
    config.CACHE_DIR = _DIRECTORY or before
    try:
        return compiled(_DIRECTORY is not None)
    finally:
        config.CACHE_DIR = before
