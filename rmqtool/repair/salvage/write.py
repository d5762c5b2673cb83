"""The new commit log: runs copied, gaps filled, moved records behind them."""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rmqtool.errors import StoreIOError
from rmqtool.repair.salvage.append import Appender, blank
from rmqtool.repair.salvage.files import CHUNK
from rmqtool.repair.salvage.logfile import LogWriter
from rmqtool.repair.salvage.moved import WORDS, Moved, Why
from rmqtool.repair.salvage.tables import Run
from rmqtool.store.kinds import SALVAGE_MAPPING

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    import numpy.typing as npt

    from rmqtool.repair.salvage.append import Appended
    from rmqtool.repair.salvage.arrange import Arrangement
    from rmqtool.repair.salvage.files import Files
    from rmqtool.repair.salvage.placeholders import Placeholders

    Ints = npt.NDArray[np.int64]

MAPPING = SALVAGE_MAPPING
COLUMNS = (
    "source", "position", "why", "topic", "queue_id", "queue_offset", "new_queue_offset", "physical_offset",
    "new_physical_offset", "store_timestamp", "store_size",
)  # fmt: skip
"""of the mapping file, one line for each moved record; the new offsets are empty for one without a place"""


@dataclass
class Written:
    """What a log came to hold. first, end: physical offsets; last_time: store time (ms) of the last.

    release: whose queues and index the store got; release_source: `given` or `inferred`.
    """

    first: int = 0
    end: int = 0
    last_time: int = 0
    messages: int = 0
    tombstones: int = 0
    fillers: int = 0
    filled_bytes: int = 0
    segments: int = 0
    moved: int = 0
    refused: list[Ints] = field(default_factory=list)
    release: str = ""
    release_source: str = "given"


def write_log(
    arranged: Arrangement, moved: Ints, files: Files, fill: Placeholders, directory: str, root: str
) -> Written:
    """Writes segments into `directory` and, if a record moved, the mapping file into `root`.

    Raises `StoreIOError`.
    """
    reported = Written()
    size = arranged.size
    with LogWriter(directory, size) as log:
        for offset, data, time, placeholder in _standing(arranged, files, fill, reported):
            log.put(offset, data, time)
            reported.filled_bytes += len(data) if placeholder else 0
        appender = Appender(arranged.found, reported.end, size, files, fill)
        lines = _appended(appender.all(moved), log, files, reported)
        if len(moved):
            write_mapping(os.path.join(root, MAPPING), lines, lambda: _refused(appender, files))
        reported.end, reported.refused, reported.segments = appender.at, appender.refused, log.segments
    return reported


def _standing(
    arranged: Arrangement, files: Files, fill: Placeholders, reported: Written
) -> Iterator[tuple[int, bytes | memoryview, int, bool]]:
    """(physical offset, bytes, store time, is a placeholder) of all that stays, in the order of the log."""
    gaps = iter(arranged.gaps)
    gap = next(gaps, None)
    if len(arranged.found.runs):
        first = int(arranged.found.runs[0, Run.OFFSET])
        reported.first = first - first % arranged.size
    for run in arranged.found.runs:
        while gap is not None and gap.end <= run[Run.OFFSET]:
            reported.tombstones += sum(one.count for one in gap.allocated)
            for offset, record in fill.in_gap(gap):
                yield offset, record, gap.time, True
                reported.end = offset + len(record)
                reported.fillers += 1
            if gap.rolls:
                at = max(reported.end, gap.start)
                yield at, blank(gap.end - at), gap.time, False
            gap = next(gaps, None)
        offset, source, position = (int(run[column]) for column in (Run.OFFSET, Run.SOURCE, Run.POSITION))
        length = int(run[Run.LENGTH])
        for start in range(0, length, CHUNK):
            data = files.bytes_at(source, position + start, min(CHUNK, length - start))
            yield offset + start, data.data, int(run[Run.LAST_TIME]), False
        reported.end = offset + length
        reported.messages += int(run[Run.COUNT])
        reported.last_time = int(run[Run.LAST_TIME])
    reported.fillers -= reported.tombstones


def _appended(
    found: Iterator[Appended], log: LogWriter, files: Files, reported: Written
) -> Iterator[dict[str, Any]]:
    """Writes what moves; a line of the mapping file for each record."""
    for one in found:
        log.put(one.physical_offset, one.data, one.time)
        if one.placeholder:
            reported.tombstones += 1
            reported.filled_bytes += len(one.data)
        if one.row is not None:
            reported.moved += 1
            reported.messages += 1
            reported.last_time = max(reported.last_time, one.time)
            yield mapping_line(one.row, files, (one.physical_offset, one.queue_offset))


def _refused(appender: Appender, files: Files) -> Iterator[dict[str, Any]]:
    for row in appender.refused:
        yield mapping_line(row, files, None)


def mapping_line(row: Ints, files: Files, new: tuple[int, int] | None) -> dict[str, Any]:
    """One moved record; new: its physical and queue offset."""
    topic, queue_id = files.names.partitions[row[Moved.PARTITION]] if row[Moved.PARTITION] >= 0 else ("", "")
    values = (
        files.sources[row[Moved.SOURCE]].path, int(row[Moved.POSITION]), WORDS[Why(int(row[Moved.WHY]))],
        topic, queue_id, int(row[Moved.QUEUE_OFFSET]), new[1] if new else "", int(row[Moved.OFFSET]),
        new[0] if new else "", int(row[Moved.TIME]), int(row[Moved.SIZE]),
    )  # fmt: skip
    return dict(zip(COLUMNS, values, strict=True))


def write_mapping(path: str, *parts: Any) -> None:
    """The mapping file; parts are iterables of lines, or give one when they are called."""
    try:
        with open(path, "w", newline="", encoding="utf-8", errors="surrogateescape") as stream:
            out = csv.DictWriter(stream, COLUMNS)
            out.writeheader()
            for part in parts:
                out.writerows(part() if callable(part) else part)
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise StoreIOError(f"{path}: {error.strerror}") from error
