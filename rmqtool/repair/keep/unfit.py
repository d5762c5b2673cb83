"""Stores that `recover` cannot plan anything for, and the same in words for who would advise it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.errors import NO_LOG, UnfitStoreError, UsageError
from rmqtool.repair.keep.placing import holds_records, log_files
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.options import data_bytes
from rmqtool.store.geometry import Source
from rmqtool.store.kinds import FileKind
from rmqtool.store.names import escape_name
from rmqtool.store.unseen import refuse_lost_segments

if TYPE_CHECKING:
    from rmqtool.store.layout import Store

NO_RECORD = "no commit log file holds a record"
_NO_NAME = (
    "no file in commitlog is named by its offset, so the segment size is unknown: "
    "give mappedFileSizeCommitLog with --store-config"
)
_DLEDGER = "recover repairs plain commit logs only"


def refuse_unfit(store: Store) -> None:
    """Raises `UsageError` or `UnfitStoreError` for what cannot be repaired."""
    if len(store.dledger_segments):
        raise UsageError(f"{store.given} has a DLedger log: {_DLEDGER}")
    shown = escape_name(str(store.given))
    if not log_files(store):
        raise UnfitStoreError(f"{shown} {NO_LOG}")
    if _lacks_size(store):
        raise UsageError(f"{shown}: {_NO_NAME}")
    refuse_lost_segments(store)


def no_log_to_recover(store: Store) -> str | None:
    """What to do where `recover` has no log to begin with, or not all of it; None where it has one.

    Reads until a file of the log tells.
    """
    if len(store.dledger_segments):
        return f"{_DLEDGER}, and this one is DLedger's: the other members of its group have the same messages"
    if log_files(store) and _lacks_size(store):
        return _NO_NAME
    if holds_records(store, choose_kernels(data_bytes(store.segments)), "pread"):
        try:
            refuse_lost_segments(store)
        except UnfitStoreError as error:
            return str(error)
        return None
    return (
        f"{NO_RECORD}, so that there is nothing to recover from: if this store had messages, put the "
        "segments back before any broker starts (a disk that is not mounted, a copy, another replica)"
    )


def _lacks_size(store: Store) -> bool:
    """Whether nothing tells how long a segment is: neither a file that is one by its name nor a setting."""
    return not len(store.segments) and store.sizes[FileKind.COMMITLOG].source is Source.DEFAULT
