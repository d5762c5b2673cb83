"""Power cuts, simulated: what a run wrote and flushed is recorded, and states are made that a disk may be in.

Of each page (4 KiB) a disk has what the last flush of its file left there, or what any write since then did.
Names and lengths come in the order in which they were made, up to some moment behind the last flush of the
file or directory, as file systems with a journal keep them.
"""

from __future__ import annotations

import os
import stat
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tests.disks import BLOCK, replace

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

    import pytest

_LIKELY = (0.0, 0.1, 0.5, 0.9, 1.0)
"""how many pages reached the disk without a flush, of one state"""


class _Write(NamedTuple):
    """A page has this content from here on."""

    inode: int
    page: int
    data: bytes


class _Named(NamedTuple):
    """A name or a length changed: `mkdir`, `link`, `rename`, `unlink`, `length`. about: what its flush keeps.

    name: below the root; inode: the file's, for `length` with the bytes that it has.
    """

    call: str
    name: str
    inode: int
    value: Any
    about: tuple[Any, ...]


class _Flush(NamedTuple):
    """A file (inode) or a directory (name) is on the medium as it was when that began."""

    what: Any
    began: int


class _Ack(NamedTuple):
    what: Any


class Recording:
    """What the system is asked for below `root`, from now on. The root is there and empty.

    Inodes are numbered as files are made: the system gives the number of one that went to another.
    """

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self._root, self._guard = f"{root}/", threading.RLock()
        self.events: list[Any] = []
        self._inodes: dict[int, int] = {}
        self._files: list[tuple[int, bytearray]] = []
        """of each inode a descriptor of our own, and what is known to be in it"""
        self._really_open = os.open
        for call in (
            "open",
            "pwrite",
            "ftruncate",
            "mkdir",
            "link",
            "rename",
            "unlink",
            "fsync",
            "fdatasync",
        ):
            replace(patch, call, self._recorded(call, getattr(os, call)))

    def _recorded(self, call: str, real: Callable[..., Any]) -> Callable[..., Any]:
        watched = getattr(self, f"_{call}")

        def calling(*given: Any, **more: Any) -> Any:
            return watched(real, *given, **more)

        return calling

    def acknowledged(self, what: Any) -> None:
        """The store said so."""
        with self._guard:
            for inode in range(max(len(self._files) - 8, 0), len(self._files)):
                self._look(inode)
            self.events.append(_Ack(what))

    def end(self) -> None:
        """Nothing more is recorded."""
        for descriptor, _ in self._files:
            os.close(descriptor)

    def _inode(self, descriptor: int) -> int | None:
        return self._inodes.get(os.fstat(descriptor).st_ino)

    def _name(self, path: Any, folder: int | None = None) -> str | None:
        """Below the root; None for what lies elsewhere."""
        text = os.fspath(path)
        if folder is not None:
            text = f"{os.readlink(f'/proc/self/fd/{folder}')}/{text}"
        elif text.startswith("/proc/self/fd/"):
            number, _, rest = text[len("/proc/self/fd/") :].partition("/")
            text = os.readlink(f"/proc/self/fd/{number}") + (f"/{rest}" if rest else "")
        return text[len(self._root) :] if text.startswith(self._root) else None

    def _look(self, inode: int) -> None:
        """Notes what is in a file and was not seen to be written: through a mapping, or a stream."""
        descriptor, known = self._files[inode]
        length = os.fstat(descriptor).st_size
        self._lengthen(inode, length)
        found = np.frombuffer(os.pread(descriptor, length, 0), np.uint8)
        before = np.frombuffer(known, np.uint8)[: len(found)]
        pages = np.unique(np.flatnonzero(found != before) // BLOCK)
        del before
        for page in pages.tolist():
            self._note(inode, page * BLOCK, found[page * BLOCK : (page + 1) * BLOCK].tobytes())

    def _note(self, inode: int, position: int, data: bytes) -> None:
        known = self._files[inode][1]
        self._lengthen(inode, position + len(data))
        known[position : position + len(data)] = data
        for page in range(position // BLOCK, -(-(position + len(data)) // BLOCK)):
            self.events.append(_Write(inode, page, bytes(known[page * BLOCK : (page + 1) * BLOCK])))

    def _lengthen(self, inode: int, length: int) -> None:
        known = self._files[inode][1]
        if len(known) < length:
            known += bytes(length - len(known))
            self.events.append(_Named("length", "", inode, length, (inode,)))

    def _made(self, descriptor: int) -> int:
        inode = len(self._files)
        own = self._really_open(f"/proc/self/fd/{descriptor}", os.O_RDONLY | os.O_CLOEXEC)
        self._files.append((own, bytearray()))
        self._inodes[os.fstat(descriptor).st_ino] = inode
        return inode

    def _open(self, real: Any, path: Any, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if not flags & os.O_CREAT and flags & os.O_TMPFILE != os.O_TMPFILE:
            return int(real(path, flags, mode, dir_fd=dir_fd))
        with self._guard:
            name = self._name(path, dir_fd)
            old = (
                name is not None
                and os.path.exists(self._root + name)
                and not os.path.isdir(self._root + name)
            )
            descriptor = int(real(path, flags, mode, dir_fd=dir_fd))
            if name is not None and not old:
                inode = self._made(descriptor)
                if flags & os.O_TMPFILE != os.O_TMPFILE:
                    self.events.append(_Named("link", name, inode, None, (inode, os.path.dirname(name))))
            return descriptor

    def _pwrite(self, real: Any, descriptor: int, data: Any, position: int) -> int:
        inode = self._inode(descriptor)
        done = int(real(descriptor, data, position))
        if inode is not None:
            with self._guard:
                self._note(inode, position, bytes(memoryview(data).cast("B")[:done]))
        return done

    def _ftruncate(self, real: Any, descriptor: int, length: int) -> None:
        with self._guard:
            real(descriptor, length)
            inode = self._inode(descriptor)
            if inode is not None:
                known = self._files[inode][1]
                known[:] = known[:length].ljust(length, b"\0")
                self.events.append(_Named("length", "", inode, length, (inode,)))

    def _mkdir(self, real: Any, path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
        with self._guard:
            real(path, mode, dir_fd=dir_fd)
            name = self._name(path, dir_fd)
            if name is not None:
                self.events.append(_Named("mkdir", name, -1, None, (os.path.dirname(name),)))

    def _link(self, real: Any, source: Any, target: Any, **more: Any) -> None:
        with self._guard:
            inode = self._inodes.get(os.stat(source).st_ino)
            real(source, target, **more)
            name = self._name(target, more.get("dst_dir_fd"))
            if inode is not None and name is not None:
                self.events.append(_Named("link", name, inode, None, (inode, os.path.dirname(name))))

    def _rename(self, real: Any, source: Any, target: Any, **more: Any) -> None:
        with self._guard:
            real(source, target, **more)
            first, second = (
                self._name(source, more.get("src_dir_fd")),
                self._name(target, more.get("dst_dir_fd")),
            )
            if first is not None and second is not None:
                about = (os.path.dirname(first), os.path.dirname(second))
                self.events.append(_Named("rename", first, -1, second, about))

    def _unlink(self, real: Any, path: Any, *, dir_fd: int | None = None) -> None:
        with self._guard:
            name = self._name(path, dir_fd)
            real(path, dir_fd=dir_fd)
            if name is not None:
                self.events.append(_Named("unlink", name, -1, None, (os.path.dirname(name),)))

    def _fsync(self, real: Any, descriptor: int) -> None:
        with self._guard:
            what: Any = self._inode(descriptor)
            if stat.S_ISDIR(os.fstat(descriptor).st_mode):
                name = self._name(os.readlink(f"/proc/self/fd/{descriptor}") + "/")
                what = None if name is None else name.rstrip("/")
            if isinstance(what, int):
                self._look(what)
            began = len(self.events)
        real(descriptor)
        if what is not None:
            with self._guard:
                self.events.append(_Flush(what, began))

    _fdatasync = _fsync

    def acks(self, cut: int) -> list[Any]:
        """What was acknowledged in front of an event."""
        return [one.what for one in self.events[:cut] if isinstance(one, _Ack)]

    def state(self, target: Path, cut: int, chance: random.Random, likely: float | None = None) -> None:
        """A new directory with what a disk may have that lost its power in front of an event.

        likely: how many pages reached it without a flush; 1 gives what was written.
        """
        events = self.events[:cut]
        share = chance.choice(_LIKELY) if likely is None else likely
        began = {one.what: one.began for one in events if isinstance(one, _Flush)}
        kept = [
            number
            for number, one in enumerate(events)
            if isinstance(one, _Named) and any(number < began.get(what, -1) for what in one.about)
        ]
        until = cut if share == 1 else chance.randint(kept[-1] + 1 if kept else 0, cut)
        names, folders, lengths = self._names(events[:until])
        written: dict[tuple[int, int], list[bytes]] = {}
        for number, one in enumerate(events):
            if isinstance(one, _Write):
                versions = written.setdefault((one.inode, one.page), [b""])
                if number < began.get(one.inode, -1):
                    versions.clear()
                versions.append(one.data)
        target.mkdir()
        for name in sorted(folders):
            (target / name).mkdir()
        for name, inode in names.items():
            pages = {page: versions for (of, page), versions in written.items() if of == inode}
            with (target / name).open("xb") as file:
                for page, versions in sorted(pages.items()):
                    file.seek(page * BLOCK)
                    file.write(_survivor(versions, share, chance))
                file.truncate(lengths.get(inode, 0))

    def _names(self, events: list[Any]) -> tuple[dict[str, int], set[str], dict[int, int]]:
        names: dict[str, int] = {}
        folders: set[str] = set()
        lengths: dict[int, int] = {}
        for one in (one for one in events if isinstance(one, _Named)):
            if one.call == "mkdir":
                folders.add(one.name)
            elif one.call == "link":
                names[one.name] = one.inode
            elif one.call == "rename":
                with suppress(KeyError):
                    names[one.value] = names.pop(one.name)
            elif one.call == "unlink":
                names.pop(one.name, None)
            else:
                lengths[one.inode] = one.value
        return names, folders, lengths


def _survivor(versions: list[bytes], share: float, chance: random.Random) -> bytes:
    """The first of them is on the medium for sure."""
    if share == 1 or chance.random() < share:
        return versions[-1]
    return versions[0] if chance.random() < 0.8 else chance.choice(versions)
