"""The directory itself: what lies where it should not, what is missing, which sizes disagree."""

from __future__ import annotations

import itertools
import posixpath
from collections import Counter
from typing import TYPE_CHECKING

from rmqtool.broker.load import TIMER_FILES
from rmqtool.check.findings import Severity, finding
from rmqtool.store.geometry import Source
from rmqtool.store.kinds import COMPACTION_KINDS, OWN_FILES, QUEUE_KINDS, TOP_DIRECTORIES, FileKind, role_of
from rmqtool.store.layout import StoreForm
from rmqtool.store.log_gone import witnesses_of_lost_log
from rmqtool.store.names import escape_name, file_name
from rmqtool.store.rocksdb import rocksdb_queue_files

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from rmqtool.check.findings import Finding
    from rmqtool.store.files import StoreFile
    from rmqtool.store.geometry import FileSize
    from rmqtool.store.layout import Store
    from rmqtool.store.segments import SegmentSet

_SIZED = (
    FileKind.COMMITLOG,
    *QUEUE_KINDS,
    FileKind.TIMERLOG,
    FileKind.DLEDGER_DATA,
    FileKind.DLEDGER_INDEX,
)
_MAPPED = frozenset(_SIZED)
_LISTED = 10


def check_layout(store: Store) -> Iterator[Finding]:
    """Findings about names, kinds and sizes of files; no content is read."""
    for directory in store.directories:
        if directory.error:
            yield finding("DIR-UNREADABLE", path=escape_name(directory.path) or ".", found=directory.error)
    blocked = _blocked(store, store.topics)
    for path in sorted(blocked):
        yield finding("DIR-BLOCKED", path=path)
    yield from _strangers(store, blocked)
    yield from _stray_directories(store)
    yield from _empty_files(store)
    for kind in (*_SIZED, *COMPACTION_KINDS):
        files = store.of_kind(kind)
        if files:
            yield from _sizes(files, store.sizes[kind])
    yield from _names(store)
    yield from _order(store, store.segments, FileKind.COMMITLOG)
    yield from _order(store, store.dledger_segments, FileKind.DLEDGER_DATA)
    yield from _timer_gaps(store)
    yield from _no_log(store)


def blocked_topics(store: Store, topics: Collection[str]) -> Iterator[Finding]:
    """The same of topics that only the log knows: something else in the place of their directory."""
    for path in sorted(_blocked(store, topics) - _blocked(store, store.topics)):
        yield finding("DIR-BLOCKED", path=path)


def _blocked(store: Store, topics: Collection[str]) -> set[str]:
    return (
        {one.display_path for one in store.listing.blocked(topics)}
        if store.form is StoreForm.STORE
        else set()
    )


def _strangers(store: Store, reported: Collection[str]) -> Iterator[Finding]:
    """Files of no known kind; those below a directory of no known kind are counted with it.

    reported: paths with another finding.
    """
    inside: Counter[str] = Counter()
    for file in store.of_kind(FileKind.UNKNOWN):
        parts = tuple(file.path.split("/")[:-1])
        among = file.root > 0 and posixpath.dirname(file.location) == str(store.roots[file.root])
        role = role_of(("commitlog",) if among else parts)
        if store.form is StoreForm.STORE and _foreign(parts) and not among:
            inside["/".join(parts[: _foreign(parts)])] += 1
        elif role.numbered in (*_SIZED, *COMPACTION_KINDS) or (
            role.numbered is FileKind.INDEX and not file.regular
        ):
            yield finding("DIR-STRAY", path=file.display_path, found=file.note)
        elif file.path not in OWN_FILES and file.display_path not in reported:
            yield finding("DIR-UNKNOWN", path=file.display_path, found=file.note)
    for file in store.of_kind(*COMPACTION_KINDS):
        if file.name.endswith(".delete"):
            yield finding("DIR-STRAY", path=file.display_path, found="a broker was at deleting it")
    for path, count in sorted(inside.items()):
        yield finding("DIR-UNKNOWN", path=escape_name(path), found=f"a directory with {count} files")


def _foreign(parts: tuple[str, ...]) -> int:
    """How many components lead to the first directory that no store has; 0 when all are known."""
    if not parts:
        return 0
    if parts[0] not in TOP_DIRECTORIES and not parts[0].startswith("dledger-"):
        return 1
    return 0


def _stray_directories(store: Store) -> Iterator[Finding]:
    """Directories where only files belong, and queue directories whose name is not a number."""
    tables = {path for path, _ in store.listing.unsavable()} | {*TIMER_FILES}
    for directory in store.directories:
        parts = tuple(directory.path.split("/"))
        if directory.path in tables:
            found = "timer" if directory.path in TIMER_FILES else parts[0]
            yield finding("DIR-DIRECTORY", path=directory.path, found=found)
        if len(parts) < 2:
            continue
        above = role_of(parts[:-1])
        if above.numbered in _MAPPED or above.numbered is FileKind.INDEX:
            index = above.numbered is FileKind.INDEX and not parts[-1].isdecimal()
            yield finding(
                "DIR-DIRECTORY",
                path=escape_name(directory.path),
                found=parts[0],
                severity=Severity.NOTE if index else None,
            )
        elif parts[0] in QUEUE_KINDS and len(parts) == 3 and role_of(parts).numbered is None:
            path = escape_name(directory.path)
            yield finding("DIR-UNKNOWN", path=path, found="its name is not a queue number")


def _empty_files(store: Store) -> Iterator[Finding]:
    for file in store.of_kind(*_SIZED, *COMPACTION_KINDS, FileKind.INDEX):
        if file.size == 0 and file.regular:
            yield finding(
                "DIR-EMPTY-FILE",
                path=file.display_path,
                position=0,
                length=0,
                topic=file.topic,
                queue_id=file.queue_id,
            )


def _sizes(files: Sequence[StoreFile], size: FileSize) -> Iterator[Finding]:
    """Files of another length than the one that was given, or than most have."""
    lengths = Counter(file.size for file in files if file.size)
    if size.source is Source.GIVEN and lengths and size.value not in lengths:
        usual, count = lengths.most_common(1)[0]
        yield finding(
            "DIR-SETTING",
            path=size.kind.value,
            expected=size.value,
            found=usual,
            part=size.kind.value,
        )
        if count == lengths.total():
            return
        expected = usual
    else:
        expected = size.value
    for file in files:
        if file.size in (0, expected):
            continue
        start, end = sorted((file.size, expected))
        yield finding(
            "DIR-SIZE",
            path=file.display_path,
            position=start,
            physical_offset=_physical(file, start),
            length=end - start,
            expected=expected,
            found=file.size,
            topic=file.topic,
            queue_id=file.queue_id,
        )


def _names(store: Store) -> Iterator[Finding]:
    """Files that a broker does not put where they belong, or would not beside one that it makes.

    It sorts those of a directory by name, and those of all roots of the commit log together
    (`MappedFileQueue#doLoad`). Names in the digits of its locale sort right beside each other.
    """
    together: dict[str, list[StoreFile]] = {}
    for file in store.of_kind(*_SIZED):
        if file.base_offset is not None:
            place = file.kind if file.kind is FileKind.COMMITLOG else posixpath.dirname(file.path)
            together.setdefault(place, []).append(file)
    for files in together.values():
        odd = [file for file in files if file.name != file_name(file.base_offset or 0)]
        bases = [file.base_offset or 0 for file in sorted(files, key=lambda one: one.name)] if odd else []
        confused = bases != sorted(bases)
        for file in odd:
            if confused or file.name.isascii():
                yield finding(
                    "DIR-NAME",
                    path=file.display_path,
                    position=0,
                    physical_offset=_physical(file, 0),
                    length=file.size,
                    expected=file_name(file.base_offset or 0),
                    found=file.name,
                    topic=file.topic,
                    queue_id=file.queue_id,
                    severity=Severity.ERROR if confused else None,
                )


def _physical(file: StoreFile, position: int) -> int | None:
    if file.kind is not FileKind.COMMITLOG or file.base_offset is None:
        return None
    return file.base_offset + position


def _order(store: Store, segments: SegmentSet, kind: FileKind) -> Iterator[Finding]:
    """Missing files, files that exist twice, files that reach into the next one."""
    if not len(segments):
        return
    usual = store.sizes[kind].value
    for hole in segments.holes():
        short = hole.before.size < usual and hole.end <= hole.before.base + usual
        if not short:
            yield finding(
                "DIR-GAP",
                path=posixpath.join(posixpath.dirname(hole.before.file.display_path), file_name(hole.start)),
                physical_offset=hole.start,
                length=hole.end - hole.start,
                expected=hole.start,
                found=hole.end,
            )
    for twins in segments.twins():
        for twin in twins[1:]:
            yield finding(
                "DIR-TWIN",
                path=twin.file.display_path,
                position=0,
                physical_offset=twin.base,
                length=twin.size,
                expected=twin.base,
                found=twins[0].file.display_path,
            )
    strangers: set[int] = set()
    for first, second in segments.overlaps():
        if first.size <= usual:
            explained = first.base in strangers
            strangers.add(second.base)
            yield finding(
                "DIR-OVERLAP",
                path=second.file.display_path,
                position=0,
                physical_offset=second.base,
                length=min(first.end, second.end) - second.base,
                expected=first.end,
                found=second.base,
                caused_by="DIR-OVERLAP" if explained else None,
            )


def _timer_gaps(store: Store) -> Iterator[Finding]:
    """Missing files of the timer log: a broker deletes from its beginning only, and from its end."""
    files = sorted(store.of_kind(FileKind.TIMERLOG), key=lambda one: one.base_offset or 0)
    usual = store.sizes[FileKind.TIMERLOG].value if files else 0
    for before, after in itertools.pairwise(files):
        start, end = (before.base_offset or 0) + max(before.size, usual), after.base_offset or 0
        if start < end:
            path = posixpath.join(posixpath.dirname(before.path), file_name(start))
            yield finding("DIR-GAP", path=path, length=end - start, expected=start, found=end)


def _no_log(store: Store) -> Iterator[Finding]:
    """No commit log, but queues, which a start destroys (`CommitLog#recoverNormally`), or other traces."""
    if store.form is not StoreForm.STORE or len(store.segments) or len(store.dledger_segments):
        return
    queues = [file for file in store.of_kind(*QUEUE_KINDS) if file.size]
    in_rocksdb = rocksdb_queue_files(store)
    if queues or in_rocksdb:
        yield finding("DIR-NO-LOG", path="commitlog", found=len(queues) or len(in_rocksdb))
    elif witnesses := witnesses_of_lost_log(store):
        yield finding("DIR-LOG-GONE", path="commitlog", found=", ".join(witnesses))
