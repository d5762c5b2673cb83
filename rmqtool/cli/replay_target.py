"""A replayable file that a command beside `export` writes: messages to send again."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy as np
    import numpy.typing as npt

    from rmqtool.output.export.target import Target
    from rmqtool.query.message_filter import MessageFilter
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store


def write_replay(
    store: Store,
    target: Target,
    reading: ReadOptions,
    chosen: MessageFilter,
    at: npt.NDArray[np.int64] | None = None,
    made: Callable[[bytes], bytes] | None = None,
) -> dict[str, Any]:
    """Writes the messages that pass, with `at` those at these places; where they went and how many.

    made: what is written in the place of each record.
    """
    from rmqtool.output.export.run import ExportRun
    from rmqtool.output.export.streams import ReplayForm, StreamExport
    from rmqtool.store.modes import only_for, readers_of

    only_for(readers_of(store))
    destination = StreamExport(target, ReplayForm(made))
    run = ExportRun(store, chosen, replace(reading, advance=None), destination, target, at)
    run.run({}, None)
    summary = run.summary()
    return {"path": str(target.path), "messages": summary["messages"], "complete": summary["complete"]}
