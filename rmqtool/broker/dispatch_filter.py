"""Which records recovery hands to the dispatchers: `CommitLog#recoverNormally`, `#recoverAbnormally`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.broker.consume_queue import ConsumeQueue
from rmqtool.broker.traits import NormalStart
from rmqtool.scan.events import Records
from rmqtool.scan.fields import Field

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rmqtool.broker.settings import StartSettings
    from rmqtool.broker.traits import Traits

    Take = Callable[[Records, int], None]


def taker(
    take: Take, traits: Traits, settings: StartSettings, *, clean: bool, known: int, confirmed: int
) -> Take:
    """What recovery does with a run: dispatches all of it, nothing, or what lies behind a bound.

    known: greatest end offset in any queue. confirmed: the confirm offset, for duplication.
    """
    if clean:
        if traits.normal_start is NormalStart.LAST_THREE:
            return _leave
        return lambda run, base: _some(run, base, _offsets(run) > known, take)
    if not settings.duplication:
        return take
    if traits.confirmed_by_end:
        sizes = Field.STORE_SIZE
        return lambda run, base: _some(run, base, _offsets(run) + run.rows[:, sizes] <= confirmed, take)
    return lambda run, base: _some(run, base, _offsets(run) < confirmed, take)


def has_border(queues: Iterable[object], known: int, traits: Traits) -> bool:
    """Whether a record that begins where the queues end is missed; batch queues tell where one begins."""
    plain = [one for one in queues if isinstance(one, ConsumeQueue)]
    return traits.normal_start is NormalStart.QUEUES and any(one.max_physical == known for one in plain)


def _leave(run: Records, base: int) -> None:
    """A run that is not dispatched."""
    del run, base


def _offsets(run: Records) -> Any:
    return run.rows[:, Field.STORED_PHYSICAL_OFFSET]


def _some(run: Records, base: int, which: Any, take: Take) -> None:
    if which.all():
        take(run, base)
    elif which.any():
        take(Records(run.rows[which], run.window, run.origin), base)
