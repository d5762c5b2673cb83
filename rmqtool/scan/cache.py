"""Where compiled kernels are kept: machine code, not loaded where another user may have put it."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rmqtool.store.trust import foreign_component

if TYPE_CHECKING:
    from collections.abc import Iterable

_LOG = logging.getLogger(__name__)


def compiled_in() -> list[Path]:
    """The files that compiled kernels depend on.

    Their own, all formats, modules with their constants, and what makes a library of them.
    """
    import formats
    from rmqtool.scan import crc, fields, legal
    from rmqtool.store import faults

    here = Path(__file__).parent
    packages = here / "kernels", here / "ahead", Path(formats.__file__).parent
    others = (Path(str(module.__file__)) for module in (crc, fields, legal, faults))
    return [*(one for package in packages for one in sorted(package.glob("*.py"))), *others]


def digest_of_sources() -> str:
    """SHA-256 of all that is compiled in."""
    return hashlib.sha256(b"".join(one.read_bytes() for one in compiled_in())).hexdigest()


def cache_directory(places: Iterable[str], name: str) -> str | None:
    """Directory `name`, made for this user alone, in the first of `places` that can be written.

    None, which is logged, when another user may change anything on the way to it or in it; None, which is
    said, when no place can be written.
    """
    for place in filter(os.path.isabs, places):
        directory = os.path.join(place, name)
        try:
            foreign = foreign_component(place) or _make(directory)
        except OSError:
            continue
        if foreign is not None:
            _LOG.debug("compiling for this run only: another user may change %s", foreign)
        return directory if foreign is None else None
    sys.stderr.write("rmqtool: no writable cache directory, compiling for this run only\n")
    return None


def _make(directory: str) -> str | None:
    """Makes the directory where it is not there; what in it another user may change."""
    os.makedirs(os.path.dirname(directory), mode=0o700, exist_ok=True)
    with contextlib.suppress(FileExistsError):
        os.mkdir(directory, 0o700)
    if not os.access(directory, os.W_OK):
        raise PermissionError(directory)
    inside = (os.path.join(at, name) for at, folders, files in os.walk(directory) for name in folders + files)
    return next(filter(None, map(foreign_component, (directory, *inside))), None)
