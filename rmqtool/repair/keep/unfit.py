"""Stores that `recover` cannot plan anything for, and the same in words for who would advise it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.errors import NO_LOG, UnfitStoreError, UsageError
from rmqtool.repair.keep.placing import holds_records
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.options import data_bytes
from rmqtool.store.names import escape_name
from rmqtool.store.unseen import refuse_lost_segments

if TYPE_CHECKING:
    from rmqtool.store.layout import Store

NO_RECORD = "no commit log file holds a record"
_DLEDGER = "recover repairs plain commit logs only"


def refuse_unfit(store: Store) -> None:
    """Raises `UsageError` or `UnfitStoreError` for what cannot be repaired."""
    if len(store.dledger_segments):
        raise UsageError(f"{store.given} has a DLedger log: {_DLEDGER}")
    if not len(store.segments):
        raise UnfitStoreError(f"{escape_name(str(store.given))} {NO_LOG}")
    refuse_lost_segments(store)


def no_log_to_recover(store: Store) -> str | None:
    """What to do where `recover` has no log to begin with; None where it has one.

    Reads until a file of the log tells.
    """
    if len(store.dledger_segments):
        return f"{_DLEDGER}, and this one is DLedger's: the other members of its group have the same messages"
    kernels = choose_kernels(data_bytes(store.segments))
    if len(store.segments) and holds_records(store, kernels, "pread"):
        return None
    return (
        f"{NO_RECORD}, so that there is nothing to recover from: if this store had messages, put the "
        "segments back before any broker starts (a disk that is not mounted, a copy, another replica)"
    )
