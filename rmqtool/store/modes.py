"""Who may read a store, so that nothing that is made of it is open to more."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rmqtool.store.remote.address import is_remote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from rmqtool.store.layout import Store

_READ_BY = ((0o040, 0o070), (0o004, 0o007))
"""bit that lets group or others read, and all that they get then"""


def readers_of(*stores: Store) -> int:
    """Permissions that what is made of stores may have: for others only where each path lets them read.

    Paths are the stores' roots, directories and files; of addresses, which have no permissions, all.
    """
    return common_readers(place for store in stores for place in _places(store))


def readers_below(*roots: str) -> int:
    """The same of directories and all that lies in them, which nobody has listed."""
    return common_readers(
        os.path.join(above, name)
        for root in roots
        for above, folders, files in os.walk(root)
        for name in (os.curdir, *folders, *files)
    )


def _places(store: Store) -> Iterator[str]:
    yield from map(os.fspath, store.roots)
    yield from (one.location for one in store.directories)
    yield from (one.location for one in store.files)


def common_readers(places: Iterable[str]) -> int:
    """The same of any paths, links followed; what cannot be looked at does not count."""
    common = 0o777
    for place in places:
        if is_remote(place):
            continue
        try:
            common &= os.stat(place).st_mode
        except OSError:
            continue
    return 0o700 | sum(given for bit, given in _READ_BY if common & bit)


def only_for(readers: int) -> None:
    """All files that this process makes from now on, and those that it starts, have no other permissions."""
    os.umask(mask() | ~readers & 0o077)


def mask() -> int:
    """Permissions that no file gets which this process makes."""
    found = os.umask(0o077)
    os.umask(found)
    return found
