"""The decorator of all kernels: compiled without the GIL, cached on disk.

numba tells a stale cache entry by time and size of the kernel's own file, which an upgrade from a wheel may
leave as they were while a called module changed. The cache directory therefore carries a digest of everything
that is compiled in.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from numba import cfunc, config, njit

from rmqtool.scan.cache import cache_directory

_PACKAGE = Path(__file__).parent


def _digest() -> str:
    """Of the kernels and of the modules whose constants they contain."""
    from rmqtool.scan import crc

    loaded = b"isal" if crc.load_isal_symbol() else b"table"
    return hashlib.sha256(b"".join([loaded, *(one.read_bytes() for one in compiled_in())])).hexdigest()[:16]


def compiled_in() -> list[Path]:
    """The files that compiled kernels depend on: their own, all formats, modules with their constants."""
    import formats
    from rmqtool.scan import crc, fields, legal
    from rmqtool.store import faults

    packages = _PACKAGE, Path(formats.__file__).parent
    others = (Path(str(module.__file__)) for module in (crc, fields, legal, faults))
    return [*(one for package in packages for one in sorted(package.glob("*.py"))), *others]


def _cache_directory() -> str | None:
    base = config.CACHE_DIR or os.environ.get("XDG_CACHE_HOME")  # type: ignore[attr-defined]
    own = os.path.join(base or os.path.expanduser("~/.cache"), "rmqtool")
    return cache_directory((own, str(_PACKAGE / "__pycache__")), f"kernels-{_digest()}")


_DIRECTORY = _cache_directory()


def kernel(**options):
    """`njit` with the disk cache where there is one (`scan.cache`), else compiled in each process."""
    return lambda function: _cached(lambda cache: njit(cache=cache, nogil=True, **options)(function))


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
