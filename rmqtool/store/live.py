"""Whether somebody may be writing in a store while it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.store.lock import LockState, network_filesystem, probe

if TYPE_CHECKING:
    from rmqtool.store.layout import Store


def is_live(store: Store) -> bool:
    """A process holds the store, or it lies where a holder on another host may not be seen.

    A file whose length is another one than when it was listed is taken for live by itself.
    """
    if store.at_rest:
        return False
    return probe(store.lock_path).held is True or network_filesystem(store.root) is not None


def lock_of(store: Store) -> LockState:
    """The state of the broker's lock; of a store at rest nobody else can have it."""
    return LockState(False, None, "at rest") if store.at_rest else probe(store.lock_path)
