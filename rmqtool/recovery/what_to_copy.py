"""Which files of a store `doctor` needs elsewhere: all but the log in front of where a start reads."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from rmqtool.broker.load import RefusedError
from rmqtool.broker.settings import settings_of
from rmqtool.broker.start import Start
from rmqtool.broker.traits import behaviours, traits_of
from rmqtool.errors import RmqtoolError, UsageError
from rmqtool.recovery.simulation import reading_for
from rmqtool.store.kinds import FileKind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store

    Row = dict[str, Any]

LOGS = (FileKind.COMMITLOG, FileKind.DLEDGER_DATA)
FRONT = "in front of where a start reads the log"
OTHER_LOG = "a log that is not decoded"
SPECIAL = "not a regular file"


@dataclass
class Sum:
    """Of some files. disk_bytes: what really takes space of their size."""

    files: int = 0
    size: int = 0
    disk_bytes: int = 0

    def add(self, files: int, size: int, disk_bytes: int) -> None:
        """More of them."""
        self.files += files
        self.size += size
        self.disk_bytes += disk_bytes


@dataclass
class WhatToCopy:
    """Of one store, whose files all lie below its root. Raises `UsageError` where they do not."""

    store: Store
    sums: dict[tuple[str, bool], Sum] = field(default_factory=dict)
    """(kind, copied) → their files, as `rows` comes past them"""

    def __post_init__(self) -> None:
        if len(self.store.roots) > 1:
            raise UsageError("the commit log lies in several directories, and a copy has one root")

    @cached_property
    def begins(self) -> int | None:
        """Physical offset from which on a start of any release in question reads; None: from the first on.

        Where every release refuses before it reads the log, that is the last segment.
        """
        found = []
        reading, settings = reading_for(self.store), settings_of(self.store)
        for release in behaviours(self.store.release.releases):
            start = Start(self.store, traits_of(release), settings, reading)
            try:
                start.load()
            except RefusedError:
                pass
            except RmqtoolError:
                return None
            if start.plan is not None and start.plan.start_segment is not None:
                found.append(start.plan.start_segment)
        last = self.store.segments[-1].base if len(self.store.segments) else None
        return min(found, default=last)

    def left_out(self, file: StoreFile) -> str | None:
        """Why a file need not be copied, None for one that is."""
        if not file.regular:
            return SPECIAL
        if file.kind not in LOGS:
            return None
        if file.kind is not FileKind.COMMITLOG:
            return OTHER_LOG
        before = self.begins is not None and file.base_offset is not None and file.base_offset < self.begins
        return FRONT if before else None

    def copied(self) -> Iterator[StoreFile]:
        """The files that are."""
        return (one for one in self.store.files if self.left_out(one) is None)

    def rows(self) -> Iterator[Row]:
        """A row for each file."""
        for one in self.store.files:
            why = self.left_out(one)
            total = self.sums.setdefault((one.kind.value, why is None), Sum())
            total.add(1, one.size, min(one.size, one.disk_bytes))
            yield {
                "type": "file",
                "path": one.display_path,
                "kind": one.kind.value,
                "size": one.size,
                "disk_bytes": one.disk_bytes,
                "copy": why is None,
                "why": why,
            }

    def summary(self) -> Row:
        """Of what `rows` gave."""
        taken, left = Sum(), Sum()
        for (_, copied), one in self.sums.items():
            (taken if copied else left).add(one.files, one.size, one.disk_bytes)
        return {
            "files": taken.files,
            "bytes": taken.size,
            "disk_bytes": taken.disk_bytes,
            "left_out_files": left.files,
            "left_out_bytes": left.size,
            "left_out_disk_bytes": left.disk_bytes,
            "reads_from": self.begins,
        }
