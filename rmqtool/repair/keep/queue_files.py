"""What the repairs of all kinds of queue files share: files by their place, units, and changes to them."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

import numpy as np

from rmqtool.errors import RmqtoolError
from rmqtool.repair.content import FromFile, Inline
from rmqtool.repair.plan import Action, Change, Edit
from rmqtool.scan.units import data_end
from rmqtool.store.access import open_source
from rmqtool.store.cut import TruncatedSource
from rmqtool.store.names import file_name

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import numpy.typing as npt

    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Queue

    Units = npt.NDArray[Any]
    Mask = npt.NDArray[np.bool_]


def by_base(queue: Queue, size: int) -> dict[int, StoreFile]:
    """One file for each base that a file of this size may have, in ascending order."""
    chosen: dict[int, StoreFile] = {}
    for file in queue.files:
        base = file.base_offset
        if base is None or base % size or not file.regular or not file.size or file.name != file_name(base):
            continue
        chosen[base] = file
    return dict(sorted(chosen.items()))


def ascending(offsets: npt.NDArray[np.int64]) -> Mask:
    """Which of the numbers to keep so that each is larger than the one before: as many as can be."""
    kept = np.ones(len(offsets), np.bool_)
    if (np.diff(offsets) > 0).all():
        return kept
    tails: list[int] = []
    lasts: list[int] = []
    fronts: list[int] = []
    for at, offset in enumerate(offsets.tolist()):
        length = bisect_left(tails, offset)
        tails[length : length + 1] = [offset]
        lasts[length : length + 1] = [at]
        fronts.append(lasts[length - 1] if length else -1)
    kept[:] = False
    at = lasts[-1]
    while at >= 0:
        kept[at] = True
        at = fronts[at]
    return kept


def units_of(file: StoreFile, dtype: np.dtype[Any], size: int) -> Units:
    """The whole units in the first `size` bytes of a file up to its last; none where it cannot be read.

    Files have room for 300,000 units from the begin on, and most of many are nearly empty.
    """
    try:
        with file.open("pread") as source:
            return _units(TruncatedSource(source, size), dtype)
    except RmqtoolError:
        return np.zeros(0, dtype)


def built_units(path: Path, dtype: np.dtype[Any]) -> Units:
    """As `units_of`, of a whole file that was built; none when it was not."""
    if not path.exists():
        return np.zeros(0, dtype)
    with open_source(path, "pread") as source:
        return _units(source, dtype)


def _units(source: ByteSource, dtype: np.dtype[Any]) -> Units:
    window = source.window(0, data_end(source, dtype.itemsize))
    return window[: len(window) // dtype.itemsize * dtype.itemsize].view(dtype)


def filled_up(units: Units, count: int) -> Units:
    """So many units: a copy, with zeros behind them."""
    whole = np.zeros(count, units.dtype)
    whole[: len(units)] = units[:count]
    return whole


def spans(different: Mask) -> list[npt.NDArray[np.intp]]:
    """The places that are true, as stretches without a gap."""
    places = np.flatnonzero(different)
    if not places.size:
        return []
    return np.split(places, np.flatnonzero(np.diff(places) != 1) + 1)


def removed(file: StoreFile, reason: str) -> Edit:
    """The file leaves the store."""
    return Edit(
        Change(
            action=Action.REMOVE,
            path=file.display_path,
            why=str(file.kind),
            message=f"{file.display_path}: {reason}",
        )
    )


def odd_files(queue: Queue | None, files: dict[int, StoreFile]) -> Iterator[Edit]:
    """Files that no queue can have: a wrong place, twice the same, empty, no number."""
    chosen = {file.path for file in files.values()}
    for file in queue.files if queue is not None else ():
        if file.path not in chosen and file.regular:
            yield removed(file, "a file that the queue has no place for")


def put(
    path: str, size: int, wanted: Units, built: Path | None, time: int | None, there: StoreFile | None
) -> Edit:
    """A file as a whole. built: where the same bytes lie. time: store time (ms) of its last record."""
    change = Change(
        action=Action.PUT,
        path=path,
        length=size,
        size=size,
        mtime_ns=None if time is None or time <= 0 else time * 1_000_000,
        why=path.partition("/")[0],
        message=f"{path} {'is missing' if there is None else 'has another length than its kind'}",
    )
    if built is not None:
        return Edit(change, FromFile(str(built), 0, size, movable=True))
    return Edit(change, Inline(wanted.tobytes().ljust(size, b"\0")))
