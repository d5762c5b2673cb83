"""What a command that reads stores also writes: beside them, never into them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rmqtool.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rmqtool.output.export.target import Target
    from rmqtool.store.layout import Store


def file_beside(given: str, stores: Iterable[Store], option: str, *, force: bool) -> Target:
    """The file that `option` names, claimed.

    Raises `UsageError` where it lies in one of the stores, or exists without `force`.
    """
    from rmqtool.output.export.target import Target

    path = Path(given)
    if not path.name or path.name in {".", ".."}:
        raise UsageError(f"{option}: '{given}' is not a valid file name")
    refuse_inside(path, stores, option)
    target = Target(path, directory=False, option=option)
    target.begin(force=force, resume=False, options={})
    return target


def refuse_inside(path: Path, stores: Iterable[Store], option: str) -> None:
    """Raises `UsageError` where a path leads into one of the stores, or is a link that lies in one."""
    from rmqtool.repair.places import lies_in

    if any(lies_in(place, store) for store in stores for place in (path, path.parent)):
        raise UsageError(f"{option}: {path} lies in the store, where nothing is written")
