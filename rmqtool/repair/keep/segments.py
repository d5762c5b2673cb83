"""Changes to the files of the commit log, and the store as it is with them."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from rmqtool.repair.content import CHUNK
from rmqtool.repair.keep.overlay import OverlayFile, OverlaySource
from rmqtool.repair.plan import FROM_DONOR, Action, Change, Edit
from rmqtool.repair.plan_words import counted
from rmqtool.store.files import StoreFile
from rmqtool.store.kinds import FileKind
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.repair.keep.overlay import Patch
    from rmqtool.repair.keep.placing import PlacedSegment, Placing
    from rmqtool.repair.keep.repaired_log import Repaired, RepairedLog
    from rmqtool.store.layout import Store


@dataclass(frozen=True, slots=True)
class Whole:
    """A whole file as content: the bytes of another one with patches over them."""

    below: StoreFile | None
    size: int
    patches: tuple[Patch, ...]

    def chunks(self) -> Iterator[bytes | memoryview]:
        """See `Content.chunks`."""
        source = self.below.open("pread") if self.below is not None and self.below.size else None
        with OverlaySource(source, self.size, self.patches, "") as whole:
            for start in range(0, self.size, CHUNK):
                yield whole.window(start, min(CHUNK, self.size - start)).tobytes()

    def read(self, position: int, length: int) -> bytes:
        """See `Content.read`."""
        source = self.below.open("pread") if self.below is not None and self.below.size else None
        with OverlaySource(source, self.size, self.patches, "") as whole:
            return whole.window(position, length).tobytes()


def segment_edits(store: Store, placing: Placing, repaired: RepairedLog, work: str) -> list[Edit]:
    """All changes to the log, segment after segment, removals last."""
    edits: list[Edit] = []
    put: set[str] = set()
    for placed in repaired.segments:
        there = store.file(placed.path)
        if placed.file is None or placed.moved:
            below = placed.file
            if below is not None and below.path in put:
                below = _aside(below, work)
            edits.append(_put(placed, below, repaired))
            put.add(placed.path)
        else:
            edits += _in_place(placed, there, repaired)
    kept = {placed.path for placed in repaired.segments}
    return edits + _removals(store, placing, kept, repaired)


def _aside(file: StoreFile, work: str) -> StoreFile:
    """A copy of a segment whose place another one takes before its bytes are written elsewhere."""
    location = os.path.join(work, file.name)
    shutil.copyfile(file.location, location)
    return replace(file, location=location)


def _put(placed: PlacedSegment, below: StoreFile | None, repaired: RepairedLog) -> Edit:
    content = Whole(below, placed.size, repaired.patches(placed))
    why = "misnamed-segment" if below is not None else "missing-segment"
    what = (
        f"takes the bytes of {below.display_path}, whose records belong here"
        if below is not None
        else "has no file: records without content keep the offsets behind it true"
    )
    facts = _facts(repaired.of(placed))
    change = Change(
        action=Action.PUT,
        path=placed.path,
        length=placed.size,
        size=placed.size,
        mtime_ns=below.mtime_ns if below is not None else _time(repaired, placed),
        why=why,
        message=f"segment {placed.base} {what}",
        facts=facts,
    )
    return Edit(change, content)


def _time(repaired: RepairedLog, placed: PlacedSegment) -> int | None:
    hole = next((one.hole for one in repaired.of(placed)), None)
    return None if hole is None or hole.timestamp <= 0 else hole.timestamp * 1_000_000


def _in_place(placed: PlacedSegment, there: StoreFile | None, repaired: RepairedLog) -> Iterator[Edit]:
    if there is not None and there.size != placed.size:
        word = "short" if there.size < placed.size else "long"
        yield Edit(
            Change(
                action=Action.RESIZE,
                path=there.display_path,
                size=placed.size,
                why=f"{word}-segment",
                message=f"segment {placed.base} has {there.size} bytes instead of {placed.size}",
            )
        )
    for one in repaired.of(placed):
        yield _write(placed, one)


def _write(placed: PlacedSegment, one: Repaired) -> Edit:
    change = Change(
        action=Action.WRITE,
        path=placed.path,
        position=one.patch.position,
        length=one.patch.content.size,
        why=_why(one),
        message=_message(one),
        facts=_facts([one]),
    )
    return Edit(change, one.patch.content)


def _why(one: Repaired) -> str:
    filled = one.filled
    if one.donated is not None:
        return FROM_DONOR
    if filled is None:
        return "stale-tail" if "stale" in one.hole.reasons else "torn-tail"
    if filled.tombstones:
        return "tombstone"
    if filled.restored:
        return "restored-record"
    if filled.fillers:
        return "filler"
    return "lengthened-record" if filled.lengthened is not None else "blank"


def _message(one: Repaired) -> str:
    hole, filled = one.hole, one.filled
    reasons = ", ".join(sorted(hole.reasons))
    where = f"{hole.start} to {hole.end} ({reasons})"
    if one.donated is not None:
        start = hole.placed.base + one.patch.position
        where = f"{start} to {start + one.patch.content.size} ({reasons})"
        return f"{counted(one.donated.records, 'record')} of {escape_name(one.donated.donor)} for {where}"
    if filled is None:
        return f"what is left behind the end of the log is zeroed, {where}"
    parts = [
        words
        for count, words in (
            (filled.tombstones.records, counted(filled.tombstones.records, "tombstone")),
            (filled.restored.records, f"{counted(filled.restored.records, 'record')} put right"),
            (filled.fillers, counted(filled.fillers, "filler")),
            (filled.blank is not None, "a blank to the end of the segment"),
            (filled.lengthened is not None, "separators behind the record in front"),
        )
        if count
    ]
    return f"no intact record at {where}: {', '.join(parts)}"


def _facts(repaired: list[Repaired]) -> dict[str, object]:
    """Every tombstone and every restored record, with its place."""
    filled = [one.filled for one in repaired if one.filled is not None]
    facts: dict[str, object] = {"physical_offset": repaired[0].hole.start} if repaired else {}
    tombstones = [row for one in filled for row in one.tombstones.rows]
    restored = [row for one in filled for row in one.restored.rows]
    fillers = sum(one.fillers for one in filled)
    facts |= {"tombstones": tombstones} if tombstones else {}
    facts |= {"restored": restored} if restored else {}
    return facts | ({"fillers": fillers} if fillers else {})


def _removals(store: Store, placing: Placing, kept: set[str], repaired: RepairedLog) -> list[Edit]:
    whys = {file.path: why for file, why in placing.strays}
    keep = set(kept)
    behind = repaired.segments[-1].end if repaired.segments else 0
    if placing.ahead is not None and placing.ahead.base_offset == behind:
        keep.add(placing.ahead.path)
    candidates = {file.path: file for file in store.of_kind(FileKind.COMMITLOG)}
    candidates |= {file.path: file for file, _ in placing.strays}
    candidates |= {one.file.path: one.file for one in repaired.segments if one.file is not None}
    edits = []
    for path, file in sorted(candidates.items()):
        if path in keep or not file.regular:
            continue
        why = whys.get(path, "behind-end" if (file.base_offset or 0) >= behind else "misnamed-segment")
        edits.append(
            Edit(
                Change(
                    action=Action.REMOVE,
                    path=file.display_path,
                    why=why,
                    message=f"{file.display_path} is not part of the log ({why})",
                )
            )
        )
    return edits


def with_log(store: Store, placing: Placing, repaired: RepairedLog) -> Store:
    """The store as it is with the repaired log, nothing else changed."""
    gone = {
        edit.change.path
        for edit in _removals(store, placing, {placed.path for placed in repaired.segments}, repaired)
    }
    own = {placed.path for placed in repaired.segments}
    files = [file for file in store.files if file.path not in own and file.display_path not in gone]
    files += [_imagined(store, placed, repaired.patches(placed)) for placed in repaired.segments]
    files.sort(key=lambda file: (file.root, file.path))
    return replace(store, files=tuple(files))


def _imagined(store: Store, placed: PlacedSegment, patches: tuple[Patch, ...]) -> StoreFile:
    model = store.file(placed.path)
    if model is None:
        location = str(store.root / placed.path)
        model = StoreFile(placed.path, location, FileKind.COMMITLOG, placed.size, placed.size, 0, placed.base)
    elif placed.file is model and model.size == placed.size and not patches:
        return model
    values = {one.name: getattr(model, one.name) for one in fields(StoreFile)}
    values |= {"size": placed.size, "disk_bytes": placed.size, "base_offset": placed.base}
    return OverlayFile(**values, below=placed.file, patches=patches)
