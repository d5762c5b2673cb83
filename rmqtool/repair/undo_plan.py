"""What an undo would do to each path, and what has changed since: judged, nothing touched."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from rmqtool.repair.backup import file_path
from rmqtool.repair.digests import sha256_of_file
from rmqtool.repair.facts import Facts, facts_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rmqtool.repair.journal import After, Entry, Piece


class Way(StrEnum):
    """How a path gets back to what it was."""

    BYTES = "bytes"
    """old bytes over those that were written, or behind those that were left"""
    CUT = "cut"
    """what was added at the end goes"""
    TIME = "time"
    PUT_BACK = "put-back"
    """the old file, link or directory comes back"""
    REMOVE = "remove"
    """what the plan made goes"""


@dataclass(frozen=True, slots=True)
class Step:
    """One thing to restore.

    position, length: of BYTES and CUT. changed: why it cannot be, else None. sha256: of the old bytes that
    the journal has for BYTES.
    """

    entry: Entry
    way: Way
    position: int | None = None
    length: int | None = None
    changed: str | None = None
    sha256: str | None = None

    @property
    def key(self) -> str:
        """What a partial undo notes of a step that it leaves."""
        return self.entry.path if self.position is None else f"{self.entry.path}@{self.position}"


class Judge:
    """Compares what undo would restore with what the plan left there, and with nothing else.

    between: the store was left between two states, so that nobody else can have written; all is restored.
    skipped: keys of steps that an undo that was stopped had left out.
    """

    def __init__(
        self, directory: str, after: dict[str, After], *, between: bool, skipped: tuple[str, ...] = ()
    ) -> None:
        self._directory, self._after, self._between = directory, after, between
        self._skipped = frozenset(skipped)

    def steps(self, entry: Entry) -> list[Step]:
        """What must be done for one path: none when it is as it was. Raises `OSError`, `StoreIOError`."""
        found = self._pieces(entry) if entry.pieces is not None else self._whole(entry)
        return [
            replace(one, changed="left by the undo that was stopped")
            if self._between and one.key in self._skipped
            else one
            for one in found
        ]

    def _pieces(self, entry: Entry) -> list[Step]:
        now = facts_of(entry.location)
        if now.kind != "file":
            return [Step(entry, Way.BYTES, changed="the file is gone")]
        after = self._after.get(entry.path)
        steps = []
        for number, piece in enumerate(entry.pieces or ()):
            left = after.pieces[number] if after is not None else None
            size = after.facts.size if after is not None else None
            step = self._piece(entry, piece, now, (size, left))
            if step is not None:
                steps.append(step)
        wrong = any(one.changed for one in steps)
        mtime = after.facts.mtime_ns if after is not None else None
        if not wrong and now.mtime_ns != entry.before.mtime_ns:
            since = None if self._between or now.mtime_ns == mtime else "was written elsewhere since"
            steps.append(Step(entry, Way.TIME, changed=since))
        return steps

    def _piece(
        self, entry: Entry, piece: Piece, now: Facts, left: tuple[int | None, str | None]
    ) -> Step | None:
        size, digest = left
        way = Way.BYTES if piece.before else Way.CUT
        step = Step(entry, way, piece.position, piece.before or piece.after, sha256=piece.sha256 or None)
        if self._between:
            return step
        if self._is_before(entry, piece, now):
            return None
        reason = None
        if piece.before != piece.after and now.size != size:
            more = now.size - (entry.before.size if size is None else size)
            reason = f"{more} bytes were appended since, they stay" if more > 0 else "the file was cut since"
        elif piece.after and sha256_of_file(entry.location, piece.position, piece.after, digest) != digest:
            reason = "was written since"
        return replace(step, changed=reason)

    def _is_before(self, entry: Entry, piece: Piece, now: Facts) -> bool:
        if piece.before != piece.after and now.size != entry.before.size:
            return False
        if not piece.before:
            return True
        now_there = sha256_of_file(entry.location, piece.position, piece.before, piece.sha256)
        return now_there == piece.sha256

    def _whole(self, entry: Entry) -> list[Step]:
        now, before = facts_of(entry.location), entry.before
        if self._is_back(entry, now):
            return []
        way = Way.PUT_BACK if before.exists else Way.REMOVE
        return [Step(entry, way, changed=None if self._between else self._reason(entry, now))]

    def _is_back(self, entry: Entry, now: Facts) -> bool:
        before = entry.before
        if before.kind != now.kind:
            return False
        if before.kind == "directory":
            return (before.mode, before.uid, before.gid) == (now.mode, now.uid, now.gid)
        if before.kind != "file":
            return before.target == now.target
        if self._between and os.path.lexists(file_path(self._directory, entry.path)):
            same = os.path.samefile(file_path(self._directory, entry.path), entry.location)
            if same:
                return True
        same_facts = (before.size, before.mtime_ns) == (now.size, now.mtime_ns)
        return same_facts and sha256_of_file(entry.location, like=entry.sha256) == entry.sha256

    def _reason(self, entry: Entry, now: Facts) -> str | None:
        """What speaks against it: the path is not as the plan left it."""
        after = self._after.get(entry.path)
        was = after.facts if after is not None else Facts()
        if was.kind != now.kind:
            if not now.exists:
                return "is gone since"
            return "something of this name is there again" if not was.exists else "is something else since"
        if now.kind == "file":
            if now.size > was.size:
                return f"{now.size - was.size} bytes were appended since, they stay"
            if after is None or sha256_of_file(entry.location, like=after.sha256) != after.sha256:
                return "was written since"
        return None


def with_hindered(steps: Iterable[Step]) -> list[Step]:
    """The steps, changed those that put back what a directory has the place of in which something stays."""
    found = list(steps)
    going = {one.entry.location for one in found if one.way is Way.REMOVE and one.changed is None}

    def stays(step: Step) -> bool:
        place = step.entry.location
        if step.way is not Way.PUT_BACK or step.entry.before.kind == "directory" or step.changed is not None:
            return False
        inside = ((folder, names + files) for folder, names, files in os.walk(place))
        return any(os.path.join(folder, name) not in going for folder, names in inside for name in names)

    return [replace(one, changed="something was made in it since") if stays(one) else one for one in found]
