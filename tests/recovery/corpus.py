"""What the real store did with a damaged store, in the words of `recovery.outcome`."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fixtures import apply_case
from rmqtool.broker.settings import settings_of
from rmqtool.recovery.simulation import reading_for, simulate
from rmqtool.store.config import config_of
from rmqtool.store.layout import Store
from rmqtool.store.lock import LockState

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from fixtures import DamageCase
    from rmqtool.recovery.outcome import Outcome

_REASONS = {
    "end of data (size and magic zero)": "zero_tail",
    "body CRC mismatch": "bad_crc",
    "totalSize differs from the sum of the fields": "bad_size",
    "fields do not fit": "bad_fields",
    "illegal magic": "bad_magic",
    "filler record and no next file": "blank",
    "record longer than the rest of the segment": "bad_size",
    "negative totalSize": "bad_size",
    "DUP_INFO missing": "no_dup_info",
    "property CRC missing": "bad_property_crc",
    "totalSize near 2^31: allocating the buffer fails with an Error, "
    "which load() does not catch": "too_large",
}


@contextmanager
def damaged_store(case: DamageCase) -> Iterator[Store]:
    """The store of a case with its settings."""
    with tempfile.TemporaryDirectory() as directory:
        yield Store.open(apply_case(case, Path(directory) / "store"), config=config_of(case.settings))


def simulated(store: Store, case: DamageCase, kernels: ModuleType | None = None) -> Outcome:
    """The outcome for the release that the case was tried with; a held lock is that of nobody here."""
    lock = LockState(True, None, "held") if case.facts.get("lockHeld") else None
    reading = reading_for(store, kernels)
    return simulate(store, case.release, settings_of(store), reading=reading, lock=lock)


def observed(case: DamageCase) -> dict[str, Any]:
    """What was seen; of a start that failed only that."""
    result = case.result
    if result["load"] != "ok" or result.get("start", "ok") != "ok":
        return {"starts": False}
    loaded = result["afterLoad"]
    rest = loaded if result["afterDrain"] == "same" else result["afterDrain"]
    return {
        "starts": True,
        "max_physical_offset": loaded["maxPhyOffset"],
        "min_physical_offset": loaded["minPhyOffset"],
        "deletes": sorted(result["filesAfterLoad"]["deleted"]),
        "queues": {name: bounds[:2] for name, bounds in rest["queues"].items() if bounds[1]},
        "loaded": {name: bounds[1] for name, bounds in loaded["queues"].items() if bounds[1]},
        "confirm_offset": loaded.get("checkpointConfirmPhyOffset"),
    }


def derived(case: DamageCase) -> dict[str, Any]:
    """What follows from the rules of recovery, as far as the case says."""
    facts = case.facts["derived"]
    found: dict[str, Any] = {"mode": facts["recovery"]}
    if facts.get("startSegment"):
        found["start_segment"] = int(facts["startSegment"].rpartition("/")[2])
    if "stopOffset" in facts:
        found["stop_offset"] = facts["stopOffset"]
    if facts.get("stopReason"):
        found["stop_reason"] = _REASONS[facts["stopReason"]]
    return found


def differences(outcome: Outcome, wanted: dict[str, Any]) -> dict[str, Any]:
    """Name → (simulated, wanted) of what is not the same."""
    queues = outcome.queues
    had: dict[str, Any] = {
        "deletes": sorted(outcome.deletes),
        "queues": {f"{q.topic}-{q.queue_id}": [q.min_offset, q.max_offset] for q in queues if q.max_offset},
        "loaded": {f"{q.topic}-{q.queue_id}": q.loaded_max for q in queues if q.loaded_max},
    }
    pairs = {name: (had.get(name, getattr(outcome, name, None)), value) for name, value in wanted.items()}
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}
