"""Mapped files as recovery moves them: three positions in memory that are one here, and deletions.

`MappedFileQueue`, `DefaultMappedFile`. Bytes are never cleared: truncating moves `wrote` or deletes files.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rmqtool.broker.java import rem
from rmqtool.store.names import file_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from rmqtool.broker.appended_units import AppendedUnits
    from rmqtool.broker.files import Bytes, Disk
    from rmqtool.store.files import StoreFile


@dataclass(eq=False, slots=True)
class MappedFile:
    """One file. wrote: bytes of it that count as data; a loaded file is full until recovery lowers that.

    file: what lies on disk, None for one that the start makes. appended: units that the start appended.
    """

    base: int
    wrote: int
    path: str
    file: StoreFile | None = None
    first_in_queue: bool = False
    appended: AppendedUnits | None = None


@dataclass(eq=False, slots=True)
class MappedFiles:
    """The files of one directory in the order of their names; `size` is the length of each in bytes.

    deleted: paths of those that are gone. disk: where files that are made or deleted here are so at once.
    directory_for: where the file of a base is made, in the place of `directory`.
    """

    size: int
    directory: str
    files: list[MappedFile] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    disk: Disk | None = None
    directory_for: Callable[[int], str] | None = None

    def write_to(self, disk: Disk) -> None:
        """From now on changes are made there, in files by their true names instead of printable ones."""
        self.disk = disk
        for one in self.files:
            if one.file is not None:
                one.path = one.file.path

    def path_of(self, base: int) -> str:
        """Of a file that is to be made."""
        directory = self.directory if self.directory_for is None else self.directory_for(base)
        return f"{directory}/{file_name(base)}"

    @property
    def min_offset(self) -> int:
        """`MappedFileQueue#getMinOffset`: base of the first file, -1 without one."""
        return self.files[0].base if self.files else -1

    @property
    def max_offset(self) -> int:
        """`MappedFileQueue#getMaxOffset`: end of the data, 0 without a file."""
        return self.files[-1].base + self.files[-1].wrote if self.files else 0

    def truncate(self, offset: int) -> None:
        """`#truncateDirtyFiles`: files behind `offset` go, the position in the one around it is lowered."""
        kept = []
        for one in self.files:
            if one.base + self.size > offset:
                if offset < one.base:
                    self.delete(one.path)
                    continue
                one.wrote = rem(offset, self.size)
            kept.append(one)
        self.files = kept

    def delete_last(self) -> None:
        """`#deleteLastMappedFile`."""
        self.delete(self.files.pop().path)

    def destroy(self) -> None:
        """`#destroy`: every file goes."""
        for one in self.files:
            self.delete(one.path)
        self.files = []

    def delete(self, path: str) -> None:
        """`MappedFile#destroy`."""
        self.deleted.append(path)
        if self.disk is not None:
            self.disk.remove(path)

    def last_for(self, start: int) -> MappedFile:
        """`#getLastMappedFile(startOffset)`: the last file, or a new one when there is none or it is full."""
        if not self.files:
            return self._create(start - rem(start, self.size), first=True)
        last = self.files[-1]
        return self._create(last.base + self.size, first=False) if last.wrote == self.size else last

    def _create(self, base: int, *, first: bool) -> MappedFile:
        made = MappedFile(base, 0, self.path_of(base), None, first)
        if self.disk is not None:
            self.disk.write(made.path, self.size, 0, b"")
        self.files.append(made)
        return made

    def write(self, file: MappedFile, data: Bytes, time: int | None = None) -> None:
        """Bytes behind those of a file (`MappedFile#appendMessage`); time: see `FileWriter.write`."""
        if self.disk is not None:
            self.disk.write(file.path, self.size, file.wrote, data, time)
        file.wrote += len(data)

    def at(self, offset: int, *, or_first: bool = False) -> MappedFile | None:
        """`#findMappedFileByOffset`."""
        files, size = self.files, self.size  # a writer's expiry may put another list in its place meanwhile
        if not files:
            return None
        first, last = files[0], files[-1]
        if first.base <= offset < last.base + size:
            index = offset // size - first.base // size
            if 0 <= index < len(files) and 0 <= offset - (one := files[index]).base < size:
                return one
            for one in files:
                if 0 <= offset - one.base < size:
                    return one
        return first if or_first else None
