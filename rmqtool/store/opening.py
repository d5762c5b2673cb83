"""Steps of `Store.open`: the kind given by `--as`, more commit-log roots, a lone file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from rmqtool.errors import StoreIOError, UsageError
from rmqtool.store.files import StoreFile
from rmqtool.store.kinds import TOP_DIRECTORIES, FileKind, Placement, Role, role_of
from rmqtool.store.names import escape_name, parse_base_offset
from rmqtool.store.recognise import by_content, quiet_names
from rmqtool.store.resolve import StoreForm

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rmqtool.store.config import StoreConfig
    from rmqtool.store.inventory import Inventory
    from rmqtool.store.resolve import Target


def kind_of(given: FileKind | str | None) -> FileKind | None:
    """The kind that `--as` names; raises `UsageError` with the known ones."""
    if given is None:
        return None
    try:
        kind = FileKind(given)
    except ValueError:
        known = ", ".join(kind for kind in FileKind if kind is not FileKind.UNKNOWN)
        raise UsageError(f"unknown kind {escape_name(str(given))}; known are {known}") from None
    if kind is FileKind.UNKNOWN:
        raise UsageError("unknown is not a kind that a file can be opened as")
    return kind


def relative_to(place: str, root: str) -> tuple[str, ...]:
    """Path components that lead from `root` to `place`."""
    return tuple(os.path.relpath(place, root).split(os.sep))


def is_listed(inventory: Inventory, place: str) -> bool:
    """Whether a directory is in the inventory already."""
    return any(directory.location == place for directory in inventory.directories)


def extra_roots(
    target: Target, given: Iterable[str | os.PathLike[str]], config: StoreConfig | None
) -> list[str]:
    """Absolute commit-log directories besides `commitlog/` of the root, without repetitions.

    One that the settings name and that is not there counts, as a directory that cannot be listed: on a disk
    that is not mounted it may hold what would look expired.
    """
    own = os.path.join(target.root, "commitlog")
    wanted = [os.path.abspath(place) for place in given]
    single = target.form is StoreForm.FILE
    if wanted and (single or (target.form is StoreForm.FOLDER and target.kind is not FileKind.COMMITLOG)):
        what = "a single file" if single else "a folder inside a store"
        raise UsageError(f"--commitlog adds roots to a whole store or commitlog directory, not to {what}")
    for place in wanted:
        problem = _no_log(place)
        if problem is not None:
            raise UsageError(f"--commitlog {escape_name(place)}: {problem}")
    if config is not None and target.form is StoreForm.STORE and _is_for(config, target.root, own):
        wanted += config.commit_log_roots()
    for place in wanted:
        inside = os.path.relpath(os.path.realpath(place), os.path.realpath(target.root)).split(os.sep)
        if inside[0] in TOP_DIRECTORIES and inside[0] != "commitlog":
            shown = escape_name(place)
            raise UsageError(
                f"the commit log {shown} lies in {inside[0]}, which is for other files of the store"
            )
    result: list[str] = []
    seen = {os.path.realpath(own)} if target.form in (StoreForm.STORE, StoreForm.COMMITLOG) else set()
    if target.form is StoreForm.COMMITLOG:
        seen.add(os.path.realpath(os.path.join(target.root, *target.scope)))
    for place in wanted:
        inner = os.path.join(place, "commitlog")
        chosen = inner if os.path.isdir(inner) else place
        if os.path.realpath(chosen) not in seen:
            seen.add(os.path.realpath(chosen))
            result.append(chosen)
    return result


def named_roots(target: Target, extra: Iterable[str], config: StoreConfig | None) -> tuple[str, ...]:
    """Those of `extra_roots`, with `commitlog/` of the root where the settings name it beside them."""
    own, more = os.path.join(target.root, "commitlog"), tuple(extra)
    named = config.commit_log_roots() if config is not None and more else ()
    return (own, *more) if os.path.realpath(own) in map(os.path.realpath, named) else more


def _is_for(config: StoreConfig, root: str, own: str) -> bool:
    """Whether the settings are those of this store: they name its root, or no root and its `commitlog`."""
    if config.root is not None:
        return config.is_root(root)
    return os.path.realpath(own) in map(os.path.realpath, config.commit_log_roots())


def _no_log(place: str) -> str | None:
    """Why a directory given as a commit-log root cannot be one; an empty one can."""
    if not os.path.exists(place):
        return "no such directory"
    if not os.path.isdir(place):
        return "is a file; give the directory that holds the segments"
    inner = os.path.join(place, "commitlog")
    chosen = inner if os.path.isdir(inner) else place
    names = quiet_names(chosen)
    found = by_content(chosen, names)
    if found is not None and found[0] is not FileKind.COMMITLOG:
        return f"holds {found[0]} files, no commit log"
    if names and not any(parse_base_offset(name) is not None for name in names):
        return "holds no segment: no name in it is a number"
    return None


def add_file(inventory: Inventory, target: Target, location: str) -> None:
    """The inventory of a single file, with topic and queue when its path tells them."""
    try:
        found = os.stat(location)
    except OSError as error:
        raise StoreIOError(f"{escape_name(location)}: {error.strerror}") from error
    role = role_of(target.parts[:-1]) if len(target.parts) > 1 else Role()
    placed = role.place(target.parts[-1]).of_size(found.st_size)
    kind = target.kind or placed.kind
    base = placed.base_offset
    if base is None and kind in _OFFSET_NAMED:
        base = Placement(kind, parse_base_offset(target.parts[-1])).of_size(found.st_size).base_offset
    inventory.files.append(
        StoreFile(
            "/".join(target.scope),
            location,
            kind,
            found.st_size,
            found.st_blocks * 512,
            found.st_mtime_ns,
            base,
            role.topic,
            role.queue_id,
            note=placed.note if placed.kind is kind else None,
        )
    )


_OFFSET_NAMED = frozenset(
    {
        FileKind.COMMITLOG,
        FileKind.CONSUMEQUEUE,
        FileKind.BATCHCONSUMEQUEUE,
        FileKind.CONSUMEQUEUE_EXT,
        FileKind.TIMERLOG,
        FileKind.COMPACTION_LOG,
        FileKind.COMPACTION_CQ,
        FileKind.DLEDGER_DATA,
        FileKind.DLEDGER_INDEX,
    }
)
