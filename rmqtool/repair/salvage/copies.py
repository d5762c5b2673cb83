"""Copies of a message that lie at another offset, as compaction and replicas make them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rmqtool.repair.salvage.moved import Moved
from rmqtool.repair.salvage.relocate import identity
from rmqtool.repair.salvage.tables import Piece
from rmqtool.scan.fields import Field

if TYPE_CHECKING:
    import numpy.typing as npt

    from rmqtool.repair.salvage.files import Files
    from rmqtool.repair.salvage.tables import Found

    Ints = npt.NDArray[np.int64]


def copies(moved: Ints, found: Found, files: Files) -> npt.NDArray[np.bool_]:
    """Which rows of `moved` are the same message, but for its physical offset, as one that stays or another.

    Of equal ones among them the first counts as the message.
    """
    twice = np.zeros(len(moved), np.bool_)
    first: dict[bytes, int] = {}
    columns = [Moved.SOURCE, Moved.POSITION, Moved.SIZE]
    for number, (source, position, size) in enumerate(moved[:, columns].tolist()):
        mark = identity(files.bytes_at(source, position, size).tobytes())
        twice[number] = first.setdefault(mark, number) != number
    for run, slots in _asked(moved, twice, found).items():
        for mark in _marks(found.runs[run], slots, files):
            number = first.get(mark, -1)
            if number >= 0:
                twice[number] = True
    return twice


def _asked(moved: Ints, twice: npt.NDArray[np.bool_], found: Found) -> dict[int, Ints]:
    """Queue offsets, by the run that has a record with one of them in the same queue."""
    pieces = found.pieces[np.lexsort((found.pieces[:, Piece.FIRST], found.pieces[:, Piece.PARTITION]))]
    asked: dict[int, list[int]] = {}
    for partition in np.unique(moved[~twice, Moved.PARTITION]).tolist():
        low, high = np.searchsorted(pieces[:, Piece.PARTITION], [partition, partition + 1])
        if partition < 0 or low == high:
            continue
        slots = np.unique(moved[~twice & (moved[:, Moved.PARTITION] == partition), Moved.QUEUE_OFFSET])
        places = np.searchsorted(pieces[low:high, Piece.FIRST], slots, "right") - 1
        inside = (places >= 0) & (slots < pieces[low + np.maximum(places, 0), Piece.END])
        for slot, place in zip(slots[inside].tolist(), places[inside].tolist(), strict=True):
            asked.setdefault(int(pieces[low + place, Piece.RUN]), []).append(slot)
    return {run: np.unique(np.array(slots, np.int64)) for run, slots in asked.items()}


def _marks(run: Ints, slots: Ints, files: Files) -> list[bytes]:
    """Identities of the run's records with these queue offsets."""
    marks = []
    for batch, _ in files.batches(run):
        chosen = batch.rows[np.isin(batch.rows[:, Field.QUEUE_OFFSET], slots)]
        for position, size in chosen[:, [Field.POSITION, Field.STORE_SIZE]].tolist():
            start = position - batch.origin
            marks.append(identity(batch.window[start : start + size].tobytes()))
    return marks
