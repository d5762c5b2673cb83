"""The services of a store that is open: made with it, run beside it, ended in front of it."""

from __future__ import annotations

import logging
import threading
from functools import partial
from typing import TYPE_CHECKING, TypeVar, cast

from rmqtool.errors import RmqtoolError
from rmqtool.messagestore.flushing import Periodic
from rmqtool.messagestore.services.checking import Checking
from rmqtool.messagestore.services.consumer import Tables
from rmqtool.messagestore.services.consuming import Consuming
from rmqtool.messagestore.services.groups import Groups
from rmqtool.messagestore.services.progress import BroadcastProgress, Progress
from rmqtool.messagestore.services.retrying import Retrying
from rmqtool.messagestore.services.schedule import Schedule, ScheduleThread
from rmqtool.messagestore.services.transactions import Transactions

if TYPE_CHECKING:
    from collections.abc import Callable

    from rmqtool.messagestore.services.checking import Listener
    from rmqtool.messagestore.services.engine import Engine

Service = TypeVar("Service")

_LOG = logging.getLogger(__name__)
_LEAST = 0.001
"""seconds of an interval"""
_OPS_PER_INTERVAL = 3


class Services:
    """Each is made, and begins to work in the background, when it is first asked for."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._made: dict[str, object] = {}
        self._threads: list[Periodic | ScheduleThread] = []
        self._guard = threading.RLock()
        self._endings: list[Callable[[], object]] = []
        self._ended = False

    def _one(self, name: str, make: Callable[[], Service]) -> Service:
        found = self._made.get(name)
        if found is None:
            with self._guard:
                found = self._made.get(name)
                if found is None:
                    found = self._made[name] = make()
        return cast("Service", found)

    @property
    def progress(self) -> Progress:
        """How far groups are."""
        return self._one("progress", self._make_progress)

    @property
    def broadcast(self) -> BroadcastProgress:
        """How far members of broadcasts are."""
        return self._one("broadcast", self._make_broadcast)

    @property
    def groups(self) -> Groups:
        """Settings of groups."""
        return self._one("groups", lambda: Groups(self.engine))

    @property
    def schedule(self) -> Schedule:
        """Delayed messages."""
        return self._one("schedule", lambda: Schedule(self.engine))

    @property
    def retrying(self) -> Retrying:
        """What consumers give back."""
        return self._one("retrying", lambda: Retrying(self.engine, self.groups, self.schedule.most_level))

    @property
    def transactions(self) -> Transactions:
        """Half messages."""
        return self._one("transactions", self._make_transactions)

    @property
    def checking(self) -> Checking:
        """Asks back about them."""
        return self._one("checking", lambda: Checking(self.engine, self.transactions))

    @property
    def consuming(self) -> Consuming:
        """Consumers."""
        return self._one("consuming", self._make_consuming)

    def _make_consuming(self) -> Consuming:
        tables = Tables(self.engine, self.groups, self.progress, self.broadcast, self.retrying)
        return Consuming(tables, self.at_end)

    def _make_progress(self) -> Progress:
        made = Progress(self.engine)
        self._run("rmqtool-offsets", self.engine.settings.offset_interval, self._save_progress)
        return made

    def _make_broadcast(self) -> BroadcastProgress:
        made = BroadcastProgress(self.engine)
        self._run("rmqtool-broadcast-offsets", self.engine.settings.offset_interval, made.save)
        return made

    def _make_transactions(self) -> Transactions:
        made = Transactions(self.engine, self.progress, self.schedule.most_level)
        interval = self.engine.settings.op_batch_interval
        if interval > 0:
            work = partial(made.write_ops, older_than=interval)
            self._run("rmqtool-op", interval / _OPS_PER_INTERVAL, work)
        return made

    def deliver(self) -> None:
        """Delivers delayed messages from now on."""
        with self._guard:
            self._threads.append(ScheduleThread(self.schedule))
            self._run("rmqtool-delay-offsets", self.engine.settings.delay_interval, self.schedule.save)

    def listen(self, listener: Listener) -> None:
        """Asks back about stale transactions from now on, every `transactionCheckInterval`."""
        interval = self.engine.settings.transaction_check_interval
        self._run("rmqtool-transaction-check", interval, lambda: self.checking.check(listener))

    def at_end(self, ending: Callable[[], object]) -> None:
        """What is called when the store closes, while it still works."""
        with self._guard:
            self._endings.append(ending)

    def _run(self, name: str, interval: float, work: Callable[[], object]) -> None:
        def attempt() -> None:
            try:
                work()
            except RmqtoolError as error:
                _LOG.warning("%s: %s", name.removeprefix("rmqtool-"), error)

        with self._guard:
            self._threads.append(Periodic(name, max(interval, _LEAST), attempt))

    def _save_progress(self) -> None:
        """What offsets say to be settled is on the medium in front of them."""
        if "transactions" in self._made:
            self.transactions.advance()
        if "progress" in self._made and self.progress.changed and self.engine.flush():
            self.progress.save()

    def end(self) -> None:
        """Ends what runs, in front of the engine; again, nothing happens. Raises `StoreIOError`."""
        with self._guard:
            ended, self._ended = self._ended, True
            endings, self._endings = self._endings, []
        if ended:
            return
        for ending in endings:
            ending()
        for thread in self._threads:
            thread.close()
        self._save_progress()
        if "broadcast" in self._made:
            self.broadcast.save()
        if "schedule" in self._made:
            self.schedule.save()
