"""Running the check of a plan's result, with a progress bar."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from rmqtool.cli.context import Context
    from rmqtool.cli.options import ReadOptions
    from rmqtool.repair.plan import Checked, Planned
    from rmqtool.scan.options import ReadOptions as LogOptions
    from rmqtool.store.layout import Store


def check_with(
    check: Callable[[Store, Planned, LogOptions], Checked],
    context: Context,
    store: Store,
    planned: Planned,
    read: ReadOptions,
) -> Checked:
    """What a check of `repair.prove` says, which tells what it will read."""
    with context.progress("checking", 0) as progress:
        return check(store, planned, read.of_log(store, progress.advance, expect=progress.expect_more))
