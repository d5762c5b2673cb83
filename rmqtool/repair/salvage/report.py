"""What a salvage tells: rows and summary in the words of the contract."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from rmqtool.errors import ExitCode, StoreIOError, worst
from rmqtool.repair.salvage.run import REPORT
from rmqtool.repair.salvage.tables import Run
from rmqtool.repair.salvage.write import MAPPING
from rmqtool.store.coverage import coverage

if TYPE_CHECKING:
    from rmqtool.repair.salvage.run import Outcome, Salvaged

SCHEMA = "rmqtool.salvage/1"

Row = dict[str, Any]


def source_rows(reported: Salvaged) -> list[Row]:
    """One for each file that was read."""
    kinds = [reported.by_source(kind).tolist() for kind in ("found", "duplicates", "moved", "unplaced")]
    return [
        {
            "type": "source",
            "path": file.path,
            "bytes": file.size,
            "records": found,
            "duplicates": twice,
            "moved": moved,
            "unplaced": unplaced,
            "unreadable_bytes": sum(one.length for one in file.bad),
        }
        for file, found, twice, moved, unplaced in zip(reported.sources.files, *kinds, strict=True)
    ]


def store_rows(reported: Salvaged, output: str) -> list[Row]:
    """One for each store that was written."""
    return [_store(one, os.path.join(output, one.name) if one.name else output) for one in reported.outcomes]


def _store(one: Outcome, path: str) -> Row:
    written = one.written
    row: Row = {
        "type": "store",
        "path": path,
        "store_hosts": one.hosts,
        "other_hosts": one.other_hosts,
        "segment_size": one.segment_size.size,
        "segment_size_source": one.segment_size.source,
        "version": written.release,
        "version_source": written.release_source,
        "segments": written.segments,
        "first_offset": written.first,
        "end_offset": written.end,
        "messages": written.messages,
        "moved": written.moved,
        "tombstones": written.tombstones,
        "fillers": written.fillers,
        "filled_bytes": written.filled_bytes,
    }
    if len(one.laid.moved):
        row["mapping"] = MAPPING
    return row


def summary(reported: Salvaged) -> Row:
    """Sums over all sources and stores."""
    files = reported.sources.files
    return {
        "sources": len(files),
        "bytes": sum(file.size for file in files),
        "records": reported.records,
        "record_bytes": int(reported.found.runs[:, Run.LENGTH].sum()),
        "duplicates": int(reported.by_source("duplicates").sum()),
        "messages": sum(one.written.messages for one in reported.outcomes),
        "moved": int(reported.by_source("moved").sum()),
        "unplaced": int(reported.by_source("unplaced").sum()),
        "moved_because": reported.reasons(),
        "other_hosts": int(reported.attributed.sum()),
        "tombstones": sum(one.written.tombstones for one in reported.outcomes),
        "stores": len(reported.outcomes),
        **coverage(reported.not_covered()),
    }


def exit_code(reported: Salvaged) -> ExitCode:
    """0 all records at their places, 1 some moved or unplaced or there are none, 3 unreadable parts."""
    codes = [ExitCode.OK]
    if not reported.records or reported.by_source("moved").any() or reported.by_source("unplaced").any():
        codes.append(ExitCode.DAMAGE)
    if reported.not_covered():
        codes.append(ExitCode.INCOMPLETE)
    return worst(codes)


def write_report(reported: Salvaged, directory: str, output: str) -> None:
    """The same as a document beside the store, which also says who made the directory."""
    document = {
        "schema": SCHEMA,
        "rows": [*source_rows(reported), *store_rows(reported, output)],
        "summary": summary(reported),
    }
    try:
        with open(os.path.join(directory, REPORT), "w", encoding="ascii") as stream:
            json.dump(document, stream, indent=2)
            stream.flush()
            os.fsync(stream.fileno())
    except OSError as error:
        raise StoreIOError(f"{directory}: {error.strerror}") from error
