"""Which records recovery hands to the dispatchers: `CommitLog#recoverNormally`, `#recoverAbnormally`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from formats.commitlog import SysFlag
from rmqtool.broker.batch_consume_queue import BatchConsumeQueue
from rmqtool.broker.columns import of_topic
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
    """Whether a record that begins where the queues end may be missed, see `misses_border`."""
    plain = [one for one in queues if isinstance(one, ConsumeQueue)]
    return any(one.max_physical == known for one in plain) and traits.normal_start is NormalStart.QUEUES


def misses_border(run: Records, known: int, queues: Iterable[object]) -> bool:
    """Whether a record of the run begins where the queues end, wants a unit and has none.

    A batch queue tells where its last record begins: what it knows there is that very record.
    """
    rows = run.rows[run.rows[:, Field.STORED_PHYSICAL_OFFSET] == known]
    here = Records(rows[rows[:, Field.SYS_FLAG] & int(SysFlag.PREPARED) == 0], run.window, run.origin)
    for one in queues if len(here.rows) else ():
        if isinstance(one, BatchConsumeQueue) and one.max_physical == known:
            its = of_topic(here, one.topic) & (here.rows[:, Field.QUEUE_ID] == one.queue_id)
            here = Records(here.rows[~its], run.window, run.origin)
    return bool(len(here.rows))


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
