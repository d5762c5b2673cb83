"""Index files as recovery leaves them, as edits."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC
from typing import TYPE_CHECKING

import numpy as np

from formats.index import file_size
from rmqtool.broker.index_files import IndexFile, IndexFiles, IndexNames
from rmqtool.repair.broker.edits import over, put_whole
from rmqtool.repair.content import Inline, Joined, Zeros
from rmqtool.repair.plan import Action, Change, Edit

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.broker.file_rules import FileRules
    from rmqtool.broker.files import Bytes
    from rmqtool.broker.start import Start
    from rmqtool.repair.broker.watching import Watcher
    from rmqtool.repair.content import Content

_MESSAGE = "index entries of what recovery dispatches"


@dataclass
class _Parts:
    """Takes what is written of index files: the last bytes at each position; `times` as of `DerivedFiles`."""

    files: dict[str, dict[int, bytes]] = field(default_factory=dict)
    times: dict[str, int] = field(default_factory=dict)

    def write(self, path: str, size: int, position: int, data: Bytes, time: int | None = None) -> None:
        """See `build.files.FileWriter`."""
        del size
        self.files.setdefault(path, {})[position] = bytes(data)
        if time is not None:
            self.times[path] = time


def index_edits(start: Start, watcher: Watcher, rules: FileRules) -> Iterator[Edit]:
    """Items that recovery adds to the index; files that stay and are too short get their full length."""
    kept = [one for one in map(start.store.file, start.index.kept) if one is not None]
    size = file_size(rules.hash_slots, rules.index_items)
    for file in kept:
        if file.size < size:
            yield Edit(
                Change(
                    action=Action.RESIZE,
                    path=file.display_path,
                    size=size,
                    why="index",
                    message="mapping it makes it as long as the settings say",
                )
            )
    if not start.settings.index_enabled:
        return
    parts, kernels = _Parts(), start.reading.kernels
    last = IndexFile(kept[-1].display_path, rules, parts, kernels, kept=kept[-1]) if kept else None
    names = IndexNames(zone=UTC, behind=kept[-1].name if kept else "")
    index = IndexFiles(rules, parts, kernels, names.next_name, last)
    hashes, owners = watcher.keys()
    index.put(hashes.astype(np.int32), owners.astype(np.int32), *watcher.records())
    index.close()
    for path, written in parts.files.items():
        pieces = sorted(written.items())
        timestamp = parts.times.get(path)
        if path in index.paths:
            yield put_whole(path, _with_holes(pieces, size), "index", _MESSAGE, timestamp)
        else:
            yield from (over(path, *piece, "index", _MESSAGE, timestamp) for piece in pieces)


def _with_holes(pieces: list[tuple[int, bytes]], size: int) -> Content:
    whole: list[Content] = []
    at = 0
    for position, data in pieces:
        whole += [Zeros(position - at), Inline(data)]
        at = position + len(data)
    return Joined((*whole, Zeros(size - at)))
