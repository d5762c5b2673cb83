"""Runs of records into all derived files at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from formats.commitlog import SysFlag, transaction_of
from rmqtool.broker.queue_records import QueueRecords
from rmqtool.build.further import further_columns, set_batches
from rmqtool.build.queues import Queues, QueueSink
from rmqtool.scan.fields import Column, Field, Issue
from rmqtool.scan.lanes import Lanes
from rmqtool.scan.multi import MultiDispatch

if TYPE_CHECKING:
    from collections.abc import Callable

    import numpy.typing as npt

    from rmqtool.broker.file_rules import FileRules
    from rmqtool.broker.index_files import IndexFiles
    from rmqtool.build.files import DerivedFiles
    from rmqtool.build.run import Run
    from rmqtool.build.spool import KeySpool
    from rmqtool.scan.events import Records
    from rmqtool.scan.kernel_types import Kernels

    Ints = npt.NDArray[np.int64]
    Key = tuple[str, int]


CHUNK_ROWS = 1 << 18
"""records that go to their queues together: 14 MiB of columns, and many queues cost little"""

_LEAST_RECORD = 91
"""bytes of the smallest record: no more records than this can be lost in so many bytes"""

_LONGEST_NAME = 255
"""bytes of a directory's name, on all usual file systems"""


@dataclass
class Left:
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
    place of queues of its own, which are `queues`. Memory: `CHUNK_ROWS`
    columns, and some hundred bytes for each queue.
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
        self._rules = rules
        self._kernels = kernels
        self._wanted = wanted
        self._judged: dict[Key, bool] = {}
        self._lanes = Lanes(kernels, CHUNK_ROWS, rules.levels)
        self._counts = np.ones(CHUNK_ROWS if rules.batch_topics else 0, np.int64)
        self._extra: dict[Key, list[Ints]] = {}
        self._extras = 0
        self.lost = 0
        """records that may be missing from the log so far"""
        self.left = Left()

    def take(self, run: Records, base: int) -> None:
        """A run of records, made with `Check.TEXT`; base: physical offset of the segment's first byte."""
        if len(self._lanes) + len(run.rows) > CHUNK_ROWS or self._extras > CHUNK_ROWS:
            self.flush()
        before = len(self._lanes)
        for _ in self._lanes.take(run, base):
            pass  # the columns are exactly full; the next run empties them
        self._count_nameless(run, len(self._lanes) - before)
        here = slice(before, len(self._lanes))
        if self._rules.batch_topics:
            set_batches(self._lanes, run, here, self._counts, self._rules, self._kernels)
        if self._rules.multi_dispatch is not MultiDispatch.NONE:
            self._take_further(run, here)

    def damage(self, length: int) -> None:
        """So many bytes of the log in front of what comes next could not be read as records.

        From here on slots that no record has are left to the lost ones as blank units.
        """
        self.flush()
        self.lost += length // _LEAST_RECORD

    def flush(self) -> None:
        """Writes what was taken so far."""
        columns = self._lanes.columns
        extra, self._extra, self._extras = self._extra, {}, 0
        for key, chosen in self._lanes.groups():
            if not self._takes(key, len(chosen)):
                continue
            if key[0] in self._rules.batch_topics:
                self._sink.append(key, QueueRecords(columns, chosen, counts=self._counts), self.lost)
            elif key in extra:
                self._merge(key, columns[:, chosen], extra.pop(key))
            else:
                self._sink.append(key, QueueRecords(columns, chosen), self.lost)
        for key, parts in extra.items():
            if key[0] not in self._rules.batch_topics and self._takes(key, len(parts)):
                self._merge(key, columns[:, :0], parts)
        self._lanes.clear()

    def _merge(self, key: Key, own: Ints, parts: list[Ints]) -> None:
        """Records that name the queue as their own, and others, in the order of the log."""
        columns = np.concatenate([own, *parts], axis=1)
        order = np.argsort(columns[Column.OFFSET], kind="stable")
        self._sink.append(key, QueueRecords(columns, order, own=order < own.shape[1]), self.lost)

    def _takes(self, key: Key, records: int) -> bool:
        """Whether a queue of so many records is wanted, and can be."""
        wanted = self._judged.get(key)
        if wanted is None:
            wanted = self._judged[key] = self._wanted is None or self._wanted(*key)
        if wanted and not _names_directory(key[0]):
            self.left.nameless += records
            return False
        return wanted

    def _count_nameless(self, run: Records, taken: int) -> None:
        """Counts the records of the run whose topic no directory can have."""
        if taken < len(run.rows):
            flags = run.rows[:, Field.SYS_FLAG] & int(SysFlag.TRANSACTION_MASK)
            kinds = {int(flag): transaction_of(int(flag)) for flag in np.unique(flags)}
            silent = [flag for flag, kind in kinds.items() if kind in ("prepared", "rollback")]
            ill = (run.rows[:, Field.ISSUES] & int(Issue.TOPIC_UTF8)) != 0
            self.left.nameless += int((ill & ~np.isin(flags, silent)).sum())

    def _take_further(self, run: Records, here: slice) -> None:
        """Units of the queues that records name besides their own."""
        if not self._kernels.building.feeds_further_queues(run.window, run.origin, run.rows):
            return
        made, found = further_columns(self._lanes, run, here, self._rules, self._kernels)
        self.left.unlisted += found.unlisted
        self.left.numberless += found.stuck
        for key, columns in made.items():
            self._extra.setdefault(key, []).extend(columns)
        self._extras += len(found.records)


def _names_directory(topic: str) -> bool:
    """Whether a directory can have this name, and is then where it should be."""
    plain = topic not in {"", ".", ".."} and "/" not in topic and "\0" not in topic
    return plain and len(topic.encode()) <= _LONGEST_NAME


class Builder:
    """Queues and index of one log; either may be None. Fed with runs in the order of the log."""

    def __init__(self, queues: QueueBuilder | None, index: IndexFiles | KeySpool | None) -> None:
        self.queues = queues
        self.index = index
        self.records = 0
        self.elsewhere = 0
        """records that state another physical offset than that at which they lie, where units lead"""

    def take(self, run: Run) -> None:
        """A run of records, of `run.run_of`."""
        self.records += len(run.offsets)
        self.elsewhere += run.elsewhere
        if self.queues is not None:
            self.queues.take(run.records, run.base)
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
