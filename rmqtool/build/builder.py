"""Runs of records into all derived files at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rmqtool.broker.dispatch import dispatcher_by_place, wants_unit
from rmqtool.build.queues import Queues, QueueSink
from rmqtool.build.run import Run, RunFactory
from rmqtool.scan.fields import Field, Issue
from rmqtool.store.names import names_directory

if TYPE_CHECKING:
    from collections.abc import Callable

    from rmqtool.broker.file_rules import FileRules
    from rmqtool.broker.index_files import IndexFiles
    from rmqtool.broker.queue_records import QueueRecords
    from rmqtool.build.files import DerivedFiles
    from rmqtool.build.run import PlacedRun
    from rmqtool.build.spool import KeySpool
    from rmqtool.scan.events import Records
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.scan.partitions import Placed

    Key = tuple[str, int]


_LEAST_RECORD = 91
"""bytes of the smallest record: no more records than this can be lost in so many bytes"""


@dataclass
class SkippedRecords:
    """Records that got no unit in some queue, for reasons that lie in them."""

    nameless: int = 0
    """their topic is not UTF-8 or no name for a directory"""
    unlisted: int = 0
    """the lists of further queues and of their offsets differ in length"""
    numberless: int = 0
    """entries of such a list without a number; a broker's dispatching ends at such a record"""


class QueueBuilder:
    """Takes runs of records in the order of the log and writes the files of their queues.

    wanted: whether the queue of a topic and number is built, None for all. sink: gets the columns in the
    place of queues of its own, which are `queues`. Memory: `dispatch.CHUNK_ROWS` columns, and some hundred
    bytes for each queue.
    """

    def __init__(
        self,
        rules: FileRules,
        files: DerivedFiles,
        kernels: Kernels,
        wanted: Callable[[str, int], bool] | None = None,
        sink: QueueSink | None = None,
    ) -> None:
        self.queues = Queues(rules, files, kernels)
        self._sink: QueueSink = self.queues if sink is None else sink
        self.levels = rules.levels
        self.takes_placed = not rules.batch_topics
        """whether runs may come by `take_placed`: what a batch topic has, its records must tell"""
        self._wanted = wanted
        self._judged: dict[Key, bool] = {}
        self._dispatcher = dispatcher_by_place(self._append, rules, kernels)
        self._nameless = 0
        self.lost = 0
        """records that may be missing from the log so far"""

    @property
    def left(self) -> SkippedRecords:
        """What was left out so far."""
        found = self._dispatcher
        return SkippedRecords(self._nameless, found.unlisted, found.numberless)

    @property
    def batch_topics(self) -> frozenset[str]:
        """See `Dispatcher.batch_topics`."""
        return self._dispatcher.batch_topics

    def take(self, run: Records, base: int) -> None:
        """A run of records, made with `Check.TEXT`; base: physical offset of the segment's first byte."""
        ill = (run.rows[:, Field.ISSUES] & int(Issue.TOPIC_UTF8)) != 0
        if ill.any():
            self._nameless += int(wants_unit(run.rows[ill]).sum())
        self._dispatcher.take(run, base)

    def take_placed(self, placed: Placed, records: int) -> None:
        """As `take`, of single records that have nothing to tell, see `Dispatcher.take_placed`."""
        self._dispatcher.take_placed(placed, records)

    def damage(self, length: int) -> None:
        """So many bytes of the log in front of what comes next could not be read as records.

        From here on slots that no record has are left to the lost ones as blank units.
        """
        self.flush()
        self.lost += length // _LEAST_RECORD

    def flush(self) -> None:
        """Writes what was taken so far."""
        self._dispatcher.flush()

    def _append(self, key: Key, run: QueueRecords) -> None:
        if self._takes(key, len(run)):
            self._sink.append(key, run, self.lost)

    def _takes(self, key: Key, records: int) -> bool:
        """Whether a queue of so many records is wanted, and can be."""
        wanted = self._judged.get(key)
        if wanted is None:
            wanted = self._judged[key] = self._wanted is None or self._wanted(*key)
        if wanted and not names_directory(key[0]):
            self._nameless += records
            return False
        return wanted


class Builder:
    """Queues and index of one log; either may be None. Fed with runs in the order of the log."""

    def __init__(self, queues: QueueBuilder | None, index: IndexFiles | KeySpool | None) -> None:
        self.queues = queues
        self.index = index
        self.records = 0
        self.elsewhere = 0
        """records that state another physical offset than that at which they lie, where units lead"""

    def run_factory(self, kernels: Kernels, jobs: int) -> RunFactory:
        """Makes the runs that `take` is to get. jobs: threads that read."""
        queues, keyed = self.queues, self.index is not None
        if queues is None:
            return RunFactory(kernels, keyed, placed=True, jobs=jobs)
        return RunFactory(kernels, keyed, queues.takes_placed, queues.levels, jobs)

    def take(self, run: Run | PlacedRun) -> None:
        """A run of records, of `run.RunMaker`."""
        self.records += len(run.offsets)
        if isinstance(run, Run):
            self.elsewhere += run.elsewhere
            if self.queues is not None:
                self.queues.take(run.records, run.base)
        elif self.queues is not None:
            self.queues.take_placed(run.placed, len(run.offsets))
        if self.index is not None:
            self.index.put(run.hashes, run.owners, run.offsets, run.times)

    def damage(self, length: int) -> None:
        """See `QueueBuilder.damage`."""
        if self.queues is not None:
            self.queues.damage(length)

    def close(self) -> None:
        """Writes what is left."""
        if self.queues is not None:
            self.queues.flush()
        if self.index is not None:
            self.index.close()
