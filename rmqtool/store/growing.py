"""Files of a store that a broker is writing, listed again without listing the whole store."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from rmqtool.errors import StoreIOError
from rmqtool.store.contents import Queue
from rmqtool.store.files import StoreFile
from rmqtool.store.kinds import FileKind
from rmqtool.store.names import parse_base_offset
from rmqtool.store.segments import SegmentSet

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.store.layout import Store

_BLOCK = 512
"""bytes in a unit of `st_blocks`"""


def segments_now(store: Store) -> SegmentSet:
    """The segments as they lie there now, in the directories that had some when the store was opened.

    Only files whose name is an offset count. Raises `StoreIOError` when a directory cannot be listed.
    """
    known = store.of_kind(FileKind.COMMITLOG)
    places = {os.path.dirname(one.location): one for one in known}
    if not places:
        location = os.path.join(store.root, "commitlog")
        path = os.path.join("commitlog", "0")
        places = {location: StoreFile(path, os.path.join(location, "0"), FileKind.COMMITLOG, 0, 0, 0)}
    found = [one for place, like in places.items() for one in _files(place, like)]
    return SegmentSet.of_files(found)


def queue_now(store: Store, kind: FileKind, topic: str, queue_id: int) -> Queue:
    """One queue as it lies there now. Raises `StoreIOError` when its directory cannot be listed."""
    path = f"{kind}/{topic}/{queue_id}/0"
    place = os.path.join(store.root, kind, topic, str(queue_id))
    like = StoreFile(path, os.path.join(place, "0"), kind, 0, 0, 0, topic=topic, queue_id=queue_id)
    return Queue(kind, topic, queue_id, tuple(_files(place, like)))


def _files(place: str, like: StoreFile) -> Iterator[StoreFile]:
    prefix = like.path.rpartition("/")[0]
    try:
        with os.scandir(place) as entries:
            bases = {entry.name: parse_base_offset(entry.name) for entry in entries if os.path.isfile(entry)}
    except (FileNotFoundError, NotADirectoryError):
        return
    except OSError as error:
        raise StoreIOError(f"{prefix or place}: cannot be listed: {error.strerror}") from error
    for name, base in sorted(bases.items()):
        if base is None:
            continue
        location = os.path.join(place, name)
        try:
            facts = os.stat(location)
        except FileNotFoundError:  # expired meanwhile
            continue
        yield replace(
            like,
            path=f"{prefix}/{name}" if prefix else name,
            location=location,
            size=facts.st_size,
            disk_bytes=facts.st_blocks * _BLOCK,
            mtime_ns=facts.st_mtime_ns,
            base_offset=base,
        )
