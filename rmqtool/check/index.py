"""Index files: each by itself, and all of them against the keys of the records.

A broker puts the keys of every record into the index in the order of the log, so items and keys are two
columns that are compared side by side (`IndexService#buildIndex`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from formats.index import FIRST_ITEM
from rmqtool.check.finding_limits import FindingLimit
from rmqtool.check.findings import Severity, finding
from rmqtool.check.index_file import FileCheck
from rmqtool.check.index_keys import KeyJoiner, Unindexed
from rmqtool.check.index_known import known_files
from rmqtool.check.index_match import Matcher
from rmqtool.check.index_reading import CHUNK, items_from, open_patched
from rmqtool.check.index_stream import ItemStream
from rmqtool.check.not_copied import NotCopied
from rmqtool.check.state import is_unclean
from rmqtool.errors import RmqtoolError, VanishedError
from rmqtool.store.kinds import FileKind
from rmqtool.store.layout import StoreForm

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.check.findings import Finding
    from rmqtool.check.index_keys import Keys
    from rmqtool.check.index_match import OrphanItems
    from rmqtool.check.index_reading import IndexFile
    from rmqtool.check.ranges import Ranges
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.store.access import OpenMode
    from rmqtool.store.layout import Store


@dataclass(frozen=True, slots=True)
class LogRange:
    """The part of the log that was read: base of its first segment, end of its last record."""

    start: int
    end: int


class IndexCheck:
    """Feed `match` with the keys of every run of the log in physical order, then take `finish`.

    Without a log only the files themselves are checked: `finish(None, Ranges())`. until: of a live store, the
    offset from which on items are not looked at (`check.live`). unclean: whether files may lag behind, as
    after a crash; complete: whether an index belongs to the store, as it does unless only segments were sent;
    both are asked of the store when they are None.
    """

    def __init__(
        self,
        store: Store,
        kernels: Kernels,
        mode: OpenMode = "auto",
        until: int | None = None,
        *,
        not_copied: NotCopied | None = None,
        unclean: bool | None = None,
        complete: bool | None = None,
    ) -> None:
        self._store = store
        self._not_copied = NotCopied.of(store.segments) if not_copied is None else not_copied
        self._complete = not _only_log(store) if complete is None else complete
        self._hashes = kernels.hashes
        self._mode: OpenMode = mode
        self._until = until
        self._unclean = is_unclean(store) if unclean is None else unclean
        self._files, self._remarks = known_files(store)
        if until is not None and self._files:
            self._files[-1].moving = True
        self._heads: list[Finding] = []
        self._unreadable: set[str] = set()
        for index in self._files:
            self._heads += self._guarded(index, self._check(index).head())
        readable = [one for one in self._files if one.path not in self._unreadable]
        self._stream = ItemStream(readable, self._mode)
        self._matcher = Matcher(self._stream, self._hashes.agree)
        self._joined = KeyJoiner()
        self._limits = FindingLimit("IDX-MORE")
        self._reported: set[tuple[str | None, int | None]] = set()
        self._wrong_hashes: set[tuple[str | None, int | None]] = set()

    def _check(self, index: IndexFile) -> FileCheck:
        mild = Severity.NOTE if self._unclean else None
        end = self._store.segments.end_offset
        return FileCheck(index, self._hashes, self._mode, mild, end, self._until)

    def _guarded(self, index: IndexFile, findings: Iterator[Finding]) -> list[Finding]:
        """All findings, or the one that the file cannot be read."""
        try:
            return list(findings)
        except VanishedError as error:
            self._unreadable.add(index.path)
            if self._until is not None:  # expired since it was listed
                return []
            return [_unread(index, error)]
        except RmqtoolError as error:
            self._unreadable.add(index.path)
            return [_unread(index, error)]

    def heads(self) -> Iterator[Finding]:
        """Sizes and headers only: for a check that reads neither slots nor records."""
        yield from self._remarks
        yield from self._heads

    @property
    def without_files(self) -> bool:
        """Whether there is no item to compare keys with; `match` then takes `Unindexed`, too."""
        return not self._files

    def match(self, keys: Keys | Unindexed) -> Iterator[Finding]:
        """Compares the keys of one run of records with their items, together with those of its neighbours."""
        if isinstance(keys, Unindexed):
            self._matcher.lacking(keys)
            return
        for joined in self._joined.add(keys):
            yield from self._match(joined)

    def _match(self, keys: Keys) -> Iterator[Finding]:
        if self._not_copied:
            self._matcher.skip(self._not_copied.holds)
        for one in self._matcher.run(keys):
            if not self._limits.passes(one):
                continue
            self._reported.add((one.path, one.position))
            if one.code == "IDX-HASH":
                self._wrong_hashes.add((one.path, one.position))
            yield one

    def finish(self, log: LogRange | None, damaged: Ranges) -> Iterator[Finding]:
        """What is to be said when all records have passed. damaged: ranges of the log without records."""
        for joined in self._joined.rest():
            yield from self._match(joined)
        if log is not None:
            self._matcher.rest()
        yield from self._remarks
        yield from self._stream.unreadable
        yield from self._heads_of(log)
        for index in self._files:
            if index.path not in self._unreadable:
                slots = self._guarded(index, self._check(index).chains())
                yield from (self._with_cause(index, one) for one in slots if not self._explained(index, one))
        yield from self._lost()
        if log is not None:
            for orphans in self._matcher.orphans:
                yield from self._orphans(orphans, log, damaged)
            yield from self._missing()
        for index in self._files:
            for number, one in sorted(index.damaged_items.items()):
                known = (index.path, index.position(number)) in self._reported
                if not known and not self._explained(index, one):
                    yield self._with_cause(index, one)
        for path, count in sorted(self._matcher.more_loose.items()):
            yield finding("IDX-MORE", path=path, part="IDX-DANGLING", found=count)
        yield from self._limits.closing()

    def _lost(self) -> Iterator[Finding]:
        """Ranges that could not be read; everything around them has been checked."""
        for index in self._files:
            for bad in index.lost:
                yield finding(
                    "IDX-UNREADABLE",
                    path=index.path,
                    position=bad.start,
                    length=bad.length,
                    found=bad.reason,
                )

    def _explained(self, index: IndexFile, one: Finding) -> bool:
        """Whether a slot or chain disagrees only because an item in it has a wrong hash, said already."""
        if one.code not in ("IDX-CHAIN", "IDX-SLOT"):
            return False
        places = {index.position(number) for number in (one.expected, one.found) if number > 0}
        return any((index.path, place) in self._wrong_hashes for place in places)

    def _with_cause(self, index: IndexFile, one: Finding) -> Finding:
        """The same finding; a slot or chain that leads over an item without a record comes from that."""
        if one.code not in ("IDX-CHAIN", "IDX-SLOT"):
            return one
        own = [each for each in self._matcher.orphans if each.index is index]
        orphans = [range(each.first, each.first + each.count) for each in own]
        led = any(one.expected in each or one.found in each for each in orphans)
        return replace(one, caused_by="IDX-DANGLING") if led else one

    def stats(self) -> list[dict[str, Any]]:
        """Facts about every file: use and the longest chains (those after `finish`)."""
        return [
            {
                "path": one.path,
                "items": one.count - 1,
                "capacity": one.items - 1,
                "fill": round((one.count - 1) / max(one.items - 1, 1), 4),
                "slots": one.slots,
                **one.facts,
            }
            for one in self._files
        ]

    def _heads_of(self, log: LogRange | None) -> Iterator[Finding]:
        for one in self._heads:
            if one.part is None or (one.path, one.position) not in self._reported:
                yield one
        last = self._files[-1] if self._files else None
        if log is None or last is None or last.header is None or self._unclean:
            return
        if last.count > FIRST_ITEM and last.header.end_physical_offset > log.end:
            yield last.head(
                "IDX-AHEAD",
                "end_physical_offset",
                physical_offset=last.header.end_physical_offset,
                caused_by="IDX-HEADER" if any(one.path == last.path for one in self._heads) else None,
                expected=log.end,
                found=last.header.end_physical_offset,
            )

    def _orphans(self, orphans: OrphanItems, log: LogRange, damaged: Ranges) -> Iterator[Finding]:
        """Items without a record, neighbours of the same kind in one finding."""
        index = orphans.index
        with open_patched(index, self._mode) as source:
            end = orphans.first + orphans.count
            for first in range(orphans.first, end, CHUNK):
                items = items_from(source, index, first, min(CHUNK, end - first))
                offsets = items["physical_offset"].astype(np.int64)
                yield from self._classified(orphans, first, offsets, log, damaged)

    def _classified(
        self,
        orphans: OrphanItems,
        first: int,
        offsets: Any,
        log: LogRange,
        damaged: Ranges,
    ) -> Iterator[Finding]:
        kinds = damaged.find(offsets)
        if not orphans.out_of_order:
            kinds[(offsets < log.start) & (kinds < 0)] = -2
            kinds[(offsets >= log.end) & (kinds < 0)] = -3
            nowhere = self._not_copied.holds(offsets)
            kinds[nowhere] = -2
            self._not_copied.index_entries += int(nowhere.sum())
        for span in np.split(np.arange(len(offsets)), np.flatnonzero(np.diff(kinds)) + 1):
            kind, number = int(kinds[span[0]]), first + int(span[0])
            facts: dict[str, Any] = {
                "count": len(span),
                "physical_offset": int(offsets[span[0]]),
                "found": len(span),
                "part": "physical_offset",
            }
            known, own = orphans.index.damaged_items, range(number, number + len(span))
            for k in own if len(own) < len(known) else [k for k in known if k in own]:
                known.pop(k, None)
            if kind >= 0:
                facts |= {"caused_by": damaged[kind].code, "severity": Severity.WARNING}
                yield orphans.index.item("IDX-DANGLING", number, **facts)
            elif kind == -3:
                yield orphans.index.item("IDX-BEYOND-LOG", number, **facts)
            elif kind == -1:
                yield orphans.index.item("IDX-DANGLING", number, **facts)

    def _missing(self) -> Iterator[Finding]:
        config = self._store.config
        if config is not None and not config.message_index_enable:
            return
        if self._store.form is not StoreForm.STORE or not self._complete:
            return
        if any(one.code == "IDX-GEOMETRY" for one in self._remarks):
            return  # what a file that cannot be checked holds is not missing
        matcher = self._matcher
        if matcher.more_missing:
            yield finding("IDX-MORE", path="index", part="IDX-MISSING", found=matcher.more_missing)
        lost = self._unreadable or any(index.lost for index in self._files)
        for one in matcher.missing:
            yield finding(
                "IDX-MISSING",
                path="index",
                caused_by="IDX-UNREADABLE" if lost else None,
                physical_offset=one.start,
                length=one.end - one.start,
                found=one.records,
            )
        tail = matcher.still_missing
        if tail is None:
            return
        code = "IDX-BEHIND" if matcher.matched else "IDX-ABSENT"
        yield finding(
            code,
            path="index",
            caused_by="IDX-UNREADABLE" if lost else None,
            severity=Severity.NOTE if self._unclean else None,
            physical_offset=tail.start,
            length=tail.end - tail.start,
            found=tail.records,
        )


def _only_log(store: Store) -> bool:
    """Segments that somebody sent in a folder: what is not with them was not deleted."""
    return not any(file.kind not in (FileKind.COMMITLOG, FileKind.UNKNOWN) for file in store.files)


def _unread(index: IndexFile, error: RmqtoolError) -> Finding:
    return finding("IDX-UNREADABLE", path=index.path, position=0, length=index.file.size, found=str(error))
