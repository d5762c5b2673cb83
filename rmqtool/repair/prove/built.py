"""Check of a `rebuild`: what it writes, verified against the log. Nothing here simulates a start."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rmqtool.repair.plan import Action, Checked
from rmqtool.repair.prove.result import store_with
from rmqtool.repair.prove.verified import VERIFIED, bytes_to_verify, errors_of
from rmqtool.scan.counted import Counted
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.options import data_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.repair.plan import Planned
    from rmqtool.repair.prove.verified import Errors
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store


def check_rebuild(store: Store, planned: Planned, reading: ReadOptions) -> Checked:
    """Of `rebuild`: one pass over the log.

    Where nothing lay, the bytes that a broker writes are no worse, whatever `verify` says of them: 5.x counts
    the offsets of light queues otherwise than their records do.
    """
    beside = _beside_built(store, planned) if planned.plan.parameters["complete"] else store
    there = {one.display_path.rpartition("/")[0] for one in store.files}
    found = _new_errors(store, store_with(beside, planned.edits), reading)
    problems = (words for path, words in found if path is None or path.rpartition("/")[0] in there)
    return Checked.of((VERIFIED,), problems)


def _beside_built(store: Store, planned: Planned) -> Store:
    """What lies beside directories that are written whole, for an empty place: the log, other queues."""
    built = {one.path.rpartition("/")[0] for one in planned.plan.changes if one.action is Action.PUT}
    if "index" in planned.plan.parameters["what"]:
        built.add("index")
    return replace(
        store, files=tuple(one for one in store.files if one.display_path.rpartition("/")[0] not in built)
    )


def _new_errors(store: Store, after: Store, reading: ReadOptions) -> Iterator[tuple[str | None, str]]:
    """Path and words of each."""
    kernels = choose_kernels(data_bytes(after.segments))
    counted = Counted(reading)
    errors = _errors_of(after, counted, kernels)
    if errors.listed:
        yield from errors.beyond(_errors_of(store, counted, kernels))


def _errors_of(store: Store, counted: Counted, kernels: Kernels) -> Errors:
    size = bytes_to_verify(store)
    counted.announce(size)
    with counted.stage(size) as reading:
        return errors_of(store, reading, kernels)
