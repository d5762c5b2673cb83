"""The directory that an apply fills: nobody else's until it is whole, empty or gone when that fails."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from rmqtool.errors import UsageError
from rmqtool.repair.facts import Facts, facts_at, give_owner
from rmqtool.repair.regions import make_parents
from rmqtool.store.names import escape_name
from rmqtool.store.writing import Folder, way_to

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from rmqtool.repair.disk import Disk


class Output:
    """A directory, new or empty, held. A context manager: what is in it goes when it ends with an error.

    path: resolved. here: into it, for steps of a disk. left: after an error, what became of it, in words.
    Until `set_owner_and_mode`, or what the caller gives it, it is this user's alone, a directory that was
    there before too. Raises `UsageError` as `way_to`, and where something lies in it.
    """

    def __init__(self, disk: Disk, path: str, option: str) -> None:
        self._disk, self._given, self._option = disk, path, option
        self._before: Facts | None = None
        self._foreign = False
        self.left = "nothing was written"
        self._held: list[Folder] = []

    def __enter__(self) -> Self:
        try:
            self._open()
        except BaseException as error:
            self.__exit__(type(error), error, None)
            raise
        return self

    def _open(self) -> None:
        folder, missing = way_to(self._given, self._option)
        self._held.append(folder)
        if missing:
            place = os.path.join(folder.here, *missing)
            make_parents(self._disk, place, folder.here, mode=0o777)
            self._disk.make_directory(place)
            self._held.append(Folder.open(os.path.dirname(place)))
            self._held.append(self._held[-1].enter(missing[-1]))
        else:
            self._before = facts_at(folder.descriptor)
            mine = self._before.model_copy(update={"uid": os.geteuid(), "gid": os.getegid(), "mode": 0o700})
            with suppress(PermissionError):  # not its owner, and not root either
                give_owner(self._disk, folder.descriptor, mine, folder.here)
        self.here, self.path = self._held[-1].here, self._held[-1].path
        if os.listdir(self.here):
            self._foreign = True
            raise UsageError(f"{self._option} {escape_name(self._given)}: exists and is not empty")

    def set_owner_and_mode(self) -> None:
        """The mode of a new directory, or owner and mode that it had: for one that gets no others."""
        if self._before is None:
            self._held[-1].show()
        else:
            give_owner(self._disk, self._held[-1].descriptor, self._before, self.here)

    def sync_name(self) -> None:
        """The name of a new one is on the medium."""
        self._disk.sync_directory(self._held[-2].here if self._before is None else self.here)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self._clear()
        for one in self._held[::-1]:
            one.__exit__(kind, error, trace)

    def _clear(self) -> None:
        if self._before is None and len(self._held) < 3:
            return
        top, shown = self._held[-1], escape_name(self._held[-1].path)
        try:
            if not self._foreign:
                top.clear()
            if self._before is None:
                os.rmdir(os.path.basename(top.path), dir_fd=self._held[-2].descriptor)
                self.left = f"the unfinished {shown} was removed"
            else:
                self.set_owner_and_mode()
                self.left = f"what was written into {shown} was removed"
        except OSError:
            self.left = f"{shown} is unfinished: remove it"
