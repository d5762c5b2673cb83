"""What `checkpoint show` and `checkpoint set` ask the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rmqtool.broker.settings import settings_of
from rmqtool.broker.traits import traits_of
from rmqtool.repair.checkpoint import PATH, stored_values
from rmqtool.repair.proof import Proof, prove, start_with

if TYPE_CHECKING:
    from rmqtool.broker.start import StartPlan
    from rmqtool.cli.context import Context
    from rmqtool.cli.options import ReadOptions, VersionOptions
    from rmqtool.store.layout import Store


@dataclass(frozen=True, slots=True)
class Proven:
    """A checkpoint and its proof. stored, safe: values by field; the starts are those of an unclean stop."""

    release: str
    exists: bool
    stored: dict[str, int]
    safe: dict[str, int]
    proof: Proof
    start_stored: StartPlan | None
    start_safe: StartPlan | None


def proven(context: Context, store: Store, read: ReadOptions, version: VersionOptions) -> Proven:
    """Reads the store, with a progress bar. Raises what `prove` raises."""
    release = version.release_of(store)
    settings, stored = settings_of(store), stored_values(store)
    with context.progress("reading", sum(one.size for one in store.segments)) as progress:
        reading = read.of_log(store, progress.advance)
        proof = prove(store, release, settings, reading)
    safe = proof.safe(stored, confirms=traits_of(release).confirm_from_checkpoint)
    return Proven(
        release,
        store.file(PATH) is not None,
        stored,
        safe,
        proof,
        start_with(store, release, settings, reading, stored),
        start_with(store, release, settings, reading, safe),
    )
