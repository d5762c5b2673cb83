"""The check of changed configuration tables: a broker of the release loads them, and starts as before."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.broker.traits import traits_of
from rmqtool.recovery.config_tables import Loads, config_outcomes
from rmqtool.repair.plan import Action, Checked
from rmqtool.repair.prove.checks import STARTED, new_harm
from rmqtool.repair.prove.result import store_with

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.repair.plan import Planned
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store


def check_offsets(store: Store, planned: Planned) -> Checked:
    """Of `offsets clamp` and `offsets merge`, which no start looks at."""
    loaded = f"a broker {planned.plan.release} loads every table that is written"
    return Checked(by=(loaded,), problems=tuple(_not_loaded(store, planned)))


def check_tables(store: Store, planned: Planned, reading: ReadOptions) -> Checked:
    """Of `config salvage`: the same, and a start on the result, which reads what a start reads."""
    loaded = f"a broker {planned.plan.release} loads every table that is written"
    problems = (
        *_not_loaded(store, planned),
        *new_harm(store, store_with(store, planned.edits), planned, reading),
    )
    return Checked(by=(loaded, STARTED.format(planned.plan.release)), problems=problems)


def _not_loaded(store: Store, planned: Planned) -> Iterator[str]:
    after = store_with(store, planned.edits)
    put = {one.path for one in planned.plan.changes if one.action is Action.PUT}
    for one in config_outcomes(after, traits_of(planned.plan.release)):
        if one.path in put and (one.loads is not Loads.PRIMARY or one.loses):
            yield f"{one.path} would not be loaded ({one.loads})"
