"""Stores by path or address, as the jobs take them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.errors import UsageError
from rmqtool.store.layout import Store
from rmqtool.store.remote.address import is_remote

if TYPE_CHECKING:
    from rmqtool.store.config import StoreConfig


def open_any(place: str, config: StoreConfig | None = None) -> Store:
    """Lists a store of this machine (`Store.open`) or of another (`remote.listing`)."""
    if not is_remote(place):
        return Store.open(place, config=config)
    from rmqtool.store.remote.listing import open_remote_store

    return open_remote_store(place, config)


def refuse_remote(place: str, what: str) -> None:
    """Raises `UsageError` for an address where only a path will do; `what` begins the reason."""
    if is_remote(place):
        raise UsageError(f"{place}: {what} takes stores in the file system only")
