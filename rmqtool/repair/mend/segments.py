"""Changes to the files of the commit log, and the store as it is with them."""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

from rmqtool.repair.content import CHUNK
from rmqtool.repair.mend.overlay import OverlayFile, OverlaySource
from rmqtool.repair.plan import Action, Change, Edit
from rmqtool.store.files import StoreFile
from rmqtool.store.kinds import FileKind
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.repair.mend.log import Mended, MendedLog
    from rmqtool.repair.mend.overlay import Patch
    from rmqtool.repair.mend.placing import Placing, Slab
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


def segment_edits(store: Store, placing: Placing, mended: MendedLog, work: str) -> list[Edit]:
    """All changes to the log, segment after segment, removals last."""
    edits: list[Edit] = []
    put: set[str] = set()
    for slab in mended.slabs:
        there = store.file(slab.path)
        if slab.file is None or slab.moved:
            below = slab.file
            if below is not None and below.path in put:
                below = _aside(below, work)
            edits.append(_put(slab, below, mended))
            put.add(slab.path)
        else:
            edits += _in_place(slab, there, mended)
    kept = {slab.path for slab in mended.slabs}
    return edits + _removals(store, placing, kept, mended)


def _aside(file: StoreFile, work: str) -> StoreFile:
    """A copy of a segment whose place another one takes before its bytes are written elsewhere."""
    location = os.path.join(work, file.name)
    shutil.copyfile(file.location, location)
    return replace(file, location=location)


def _put(slab: Slab, below: StoreFile | None, mended: MendedLog) -> Edit:
    content = Whole(below, slab.size, mended.patches(slab))
    why = "misnamed-segment" if below is not None else "missing-segment"
    what = (
        f"takes the bytes of {below.shown}, whose records belong here"
        if below is not None
        else "has no file: records without content keep the offsets behind it true"
    )
    facts = _facts(mended.of(slab))
    change = Change(
        action=Action.PUT,
        path=slab.path,
        length=slab.size,
        size=slab.size,
        mtime_ns=below.mtime_ns if below is not None else _time(mended, slab),
        why=why,
        message=f"segment {slab.base} {what}",
        facts=facts,
    )
    return Edit(change, content)


def _time(mended: MendedLog, slab: Slab) -> int | None:
    hole = next((one.hole for one in mended.of(slab)), None)
    return None if hole is None or hole.timestamp <= 0 else hole.timestamp * 1_000_000


def _in_place(slab: Slab, there: StoreFile | None, mended: MendedLog) -> Iterator[Edit]:
    if there is not None and there.size != slab.size:
        word = "short" if there.size < slab.size else "long"
        yield Edit(
            Change(
                action=Action.RESIZE,
                path=there.shown,
                size=slab.size,
                why=f"{word}-segment",
                message=f"segment {slab.base} has {there.size} bytes instead of {slab.size}",
            )
        )
    for one in mended.of(slab):
        yield _write(slab, one)


def _write(slab: Slab, one: Mended) -> Edit:
    change = Change(
        action=Action.WRITE,
        path=slab.path,
        position=one.patch.position,
        length=one.patch.content.size,
        why=_why(one),
        message=_message(one),
        facts=_facts([one]),
    )
    return Edit(change, one.patch.content)  # type: ignore[arg-type]


def _why(one: Mended) -> str:
    filled = one.filled
    if one.gift is not None:
        return "donor"
    if filled is None:
        return "stale-tail" if "stale" in one.hole.reasons else "torn-tail"
    if filled.tombstones:
        return "tombstone"
    if filled.restored:
        return "restored-record"
    if filled.fillers:
        return "filler"
    return "lengthened-record" if filled.lengthened is not None else "blank"


def _message(one: Mended) -> str:
    hole, filled = one.hole, one.filled
    where = f"{hole.start} to {hole.end} ({', '.join(sorted(hole.reasons))})"
    if one.gift is not None:
        return f"{one.gift.records} record(s) of {escape_name(one.gift.donor)} for {where}"
    if filled is None:
        return f"what is left behind the end of the log is zeroed, {where}"
    parts = [
        f"{count} {word}"
        for count, word in (
            (filled.tombstones.records, "tombstone(s)"),
            (filled.restored.records, "record(s) put right"),
            (filled.fillers, "filler(s)"),
            (int(filled.blank is not None), "blank to the end of the segment"),
            (int(filled.lengthened is not None), "separators behind the record in front"),
        )
        if count
    ]
    return f"no intact record at {where}: {', '.join(parts)}"


def _facts(mended: list[Mended]) -> dict[str, object]:
    """Every tombstone and every restored record, with its place."""
    filled = [one.filled for one in mended if one.filled is not None]
    facts: dict[str, object] = {"physical_offset": mended[0].hole.start} if mended else {}
    tombstones = [row for one in filled for row in one.tombstones.rows]
    restored = [row for one in filled for row in one.restored.rows]
    fillers = sum(one.fillers for one in filled)
    facts |= {"tombstones": tombstones} if tombstones else {}
    facts |= {"restored": restored} if restored else {}
    return facts | ({"fillers": fillers} if fillers else {})


def _removals(store: Store, placing: Placing, kept: set[str], mended: MendedLog) -> list[Edit]:
    whys = {file.path: why for file, why in placing.strays}
    keep = set(kept)
    behind = mended.slabs[-1].end if mended.slabs else 0
    if placing.ahead is not None and placing.ahead.base_offset == behind:
        keep.add(placing.ahead.path)
    candidates = {file.path: file for file in store.of_kind(FileKind.COMMITLOG)}
    candidates |= {file.path: file for file, _ in placing.strays}
    edits = []
    for path, file in sorted(candidates.items()):
        if path in keep or not file.regular:
            continue
        why = whys.get(path, "behind-end" if (file.base_offset or 0) >= behind else "misnamed-segment")
        edits.append(
            Edit(
                Change(
                    action=Action.REMOVE,
                    path=file.shown,
                    why=why,
                    message=f"{file.shown} is no part of the log ({why})",
                )
            )
        )
    return edits


def with_log(store: Store, placing: Placing, mended: MendedLog) -> Store:
    """The store as it is with the mended log, nothing else changed."""
    gone = {
        edit.change.path for edit in _removals(store, placing, {slab.path for slab in mended.slabs}, mended)
    }
    own = {slab.path for slab in mended.slabs}
    files = [file for file in store.files if file.path not in own and file.shown not in gone]
    files += [_imagined(store, slab, mended.patches(slab)) for slab in mended.slabs]
    files.sort(key=lambda file: (file.root, file.path))
    return replace(store, files=tuple(files))


def _imagined(store: Store, slab: Slab, patches: tuple[Patch, ...]) -> StoreFile:
    model = store.file(slab.path)
    if model is None:
        location = str(store.root / slab.path)
        model = StoreFile(slab.path, location, FileKind.COMMITLOG, slab.size, slab.size, 0, slab.base)
    elif slab.file is model and model.size == slab.size and not patches:
        return model
    values = {one.name: getattr(model, one.name) for one in fields(StoreFile)}
    values |= {"size": slab.size, "disk_bytes": slab.size, "base_offset": slab.base}
    return OverlayFile(**values, below=slab.file, patches=patches)
