"""Running the check of a plan's result, with a progress bar."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.check.reading import Reading

if TYPE_CHECKING:
    from collections.abc import Callable

    from rmqtool.cli.context import Context
    from rmqtool.cli.options import ReadOptions
    from rmqtool.repair.plan import Checked, Planned
    from rmqtool.store.layout import Store


def check_with(
    check: Callable[[Store, Planned, Reading], Checked],
    context: Context,
    store: Store,
    planned: Planned,
    read: ReadOptions,
) -> Checked:
    """What a check of `repair.prove.checks` says."""
    with context.progress("checking", sum(one.size for one in store.segments)) as progress:
        reading = Reading(
            read.job_count,
            safe_io=read.safe_io,
            bytes_per_second=read.bytes_per_second,
            advance=progress.advance,
        )
        return check(store, planned, reading)
