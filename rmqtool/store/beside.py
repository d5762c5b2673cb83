"""Other folders of the store that some files were taken from."""

from __future__ import annotations

from rmqtool.store.kinds import TOP_DIRECTORIES
from rmqtool.store.layout import Store, StoreForm


def folder_beside(store: Store, *parts: str) -> Store | None:
    """A folder of the store that `store` is, or lies in; None when there is none."""
    if store.form is StoreForm.STORE:
        return store
    place = store.root.joinpath(*parts)
    inside = "/" in store.scope or store.scope in TOP_DIRECTORIES
    return Store.open(place, config=store.config) if inside and place.is_dir() else None
