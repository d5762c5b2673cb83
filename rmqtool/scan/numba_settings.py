"""numba, loaded without the settings that lie in the current directory.

numba takes its settings from a `.numba_config.yaml` there, its cache of machine code among them, and looks
again at each compilation. The current directory may be a stranger's store.
"""

from __future__ import annotations

import os

_FILE = ".numba_config.yaml"


def _load() -> None:
    if not os.path.lexists(_FILE):
        import numba

        return
    here = os.open(os.curdir, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.chdir(os.sep)
        import numba  # noqa: F401
    finally:
        os.fchdir(here)
        os.close(here)


_load()

from numba import config  # noqa: E402 - first as above

_reload = config.reload_config


def _reload_if_nothing_lies_here() -> None:
    if not os.path.lexists(_FILE):
        _reload()  # type: ignore[no-untyped-call]


config.reload_config = _reload_if_nothing_lies_here
