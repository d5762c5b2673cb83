"""Where the paths of a plan lie: in the store itself, or in a copy of it."""

from __future__ import annotations

import os
import posixpath
from typing import TYPE_CHECKING

from rmqtool.store.kinds import FileKind
from rmqtool.store.names import escape_name, unescape_name
from rmqtool.store.opening import relative_to

if TYPE_CHECKING:
    from rmqtool.store.layout import Store


class InStore:
    """Paths of a plan in the store itself; those of further commit-log roots lie where they were found.

    Links are resolved once: what is looked at with one object is what is written with it.
    """

    def __init__(self, store: Store) -> None:
        self._root = os.path.realpath(store.root)
        self._elsewhere = {one.display_path: os.path.abspath(one.location) for one in store.files if one.root}
        self._further = further_roots(store)
        self._folders: dict[str, str] = {}
        self._contents: dict[str, str] = {}

    def of(self, path: str) -> str:
        """Where a path as plans write it (`StoreFile.display_path`) lies; `ValueError` if it leads out.

        Links of its directory are resolved; one at its end is not.
        """
        known = self._elsewhere.get(path) or self._made(path)
        folder, name = os.path.split(known if known is not None else os.path.join(self._root, inside(path)))
        if folder not in self._folders:
            self._folders[folder] = os.path.realpath(folder)
        return os.path.join(self._folders[folder], name)

    def content_of(self, path: str) -> str:
        """The same with a link at its end resolved, too."""
        if path not in self._contents:
            self._contents[path] = os.path.realpath(self.of(path))
        return self._contents[path]

    def _made(self, path: str) -> str | None:
        """Where a new file of a further commit-log root goes."""
        root = self._further.get(posixpath.dirname(path))
        name = unescape_name(posixpath.basename(path))
        return (
            None
            if root is None or name in {"", os.curdir, os.pardir} or os.sep in name
            else os.path.join(root, name)
        )


class InCopy:
    """The same paths in a copy, where segments of further commit-log roots lie in the one `commitlog/`.

    target: absolute, or `Folder.here`. There are no links in a copy but those that lead nowhere.
    """

    def __init__(self, store: Store, target: str) -> None:
        self._target = target
        self._elsewhere = {one.display_path for one in store.files if one.root}
        self._further = further_roots(store)

    def of(self, path: str) -> str:
        """See `InStore.of`."""
        if path in self._elsewhere or posixpath.dirname(path) in self._further:
            return os.path.join(self._target, "commitlog", unescape_name(posixpath.basename(path)))
        return os.path.join(self._target, inside(path))

    def content_of(self, path: str) -> str:
        """See `InStore.content_of`."""
        return self.of(path)


def further_roots(store: Store) -> dict[str, str]:
    """Where each further commit-log root lies, by its path as plans write it."""
    return {
        escape_name("/".join(relative_to(os.fspath(one), os.fspath(store.root)))): os.path.abspath(one)
        for one in store.roots[1:]
    }


def new_segments_in(store: Store) -> str:
    """The directory for new segments: that of the last one where none lies in `commitlog`.

    A broker whose settings name other directories alone does not look there.
    """
    segments = [one for one in store.of_kind(FileKind.COMMITLOG) if one.base_offset is not None]
    if not segments or any(one.root == 0 for one in segments):
        return "commitlog"
    return max(segments, key=lambda one: one.base_offset or 0).path.rpartition("/")[0]


def inside(path: str) -> str:
    """The name behind a path of a plan, when it stays below where it starts. `ValueError` for others."""
    if posixpath.isabs(path) or ".." in path.split("/") or not path:
        raise ValueError(f"{path!r} is not a path inside a store")
    return unescape_name(path)


class Roots:
    """Where a store lies: its root, its `commitlog` also where that is a link, further commit-log roots."""

    def __init__(self, store: Store) -> None:
        root = os.fspath(store.root)
        roots = [root, os.path.join(root, "commitlog"), *map(os.fspath, store.roots[1:])]
        self._roots = frozenset(map(os.path.realpath, roots))

    def have(self, real: str) -> bool:
        """Whether a resolved path is or lies below one of them."""
        return any(real == one or real.startswith(one.rstrip(os.sep) + os.sep) for one in self._roots)


def lies_in(path: str | os.PathLike[str], store: Store) -> bool:
    """Whether `path` is or lies below a directory of the store, also behind a link or `--commitlog`."""
    links = (one.location for one in store.directories if os.path.islink(one.location))
    roots: list[str | os.PathLike[str]] = [store.root, *store.roots, *links]
    return any(is_within(path, one) for one in roots)


def is_within(path: str | os.PathLike[str], directory: str | os.PathLike[str]) -> bool:
    """Whether `path` is `directory` or lies somewhere below it, links followed."""
    inner, outer = os.path.realpath(path), os.path.realpath(directory)
    return inner == outer or inner.startswith(outer.rstrip(os.sep) + os.sep)
