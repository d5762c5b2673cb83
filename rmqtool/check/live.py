"""Checking a store while a broker writes it: up to where log, queues and index are complete.

They are read one after the other while all of them grow. Dispatching goes in the order of the log
(`DefaultMessageStore.ReputMessageService#doReput`), so once a record has its unit, all records before it have
theirs and their index items. The last record that has a unit when the verification begins is the border:
what lies before it is held against each other as in a store at rest, what lies behind is left alone.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import numpy as np

from rmqtool.check.findings import Severity
from rmqtool.check.queue_files import queues_of
from rmqtool.errors import RmqtoolError
from rmqtool.scan.events import Records
from rmqtool.scan.fields import Field
from rmqtool.scan.moving import PATIENCE
from rmqtool.store.layout import FileKind, Store

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rmqtool.check.findings import Finding
    from rmqtool.check.queue_files import OpenFiles


def border(store: Store, files: OpenFiles) -> int:
    """Highest offset of a record that has a unit now, -1 when none has."""
    highest = -1
    for kind in (FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE):
        for queue in queues_of(store, kind, files).values():
            try:
                highest = max(highest, queue.last_offset())
            except RmqtoolError:  # deleted meanwhile, or reported when the queue is checked
                continue
    return highest


def records_before_border(run: Records, segment_base: int, until: int | None, *, border: int = 1) -> Records:
    """The records of a run that units (or items, `border` 0) are complete for; all when `until` is None.

    until: the border. The record at it has its unit, while its index items may be to come.
    """
    if until is None:
        return run
    count = int(np.searchsorted(run.rows[:, Field.POSITION], until - segment_base + border))
    return Records(run.rows[:count], run.window, run.origin)


def relisted(store: Store) -> Store:
    """The same store with the files that it has now: all that the border speaks of are among them."""
    return Store.open(store.given, commitlog_roots=store.roots[1:], config=store.config)


def confirmed(look: Callable[[], Iterator[Finding]]) -> Iterator[Finding]:
    """Findings of a look at what a broker replaces while it runs: what is serious must be there twice."""
    first = list(look())
    if all(one.severity is Severity.NOTE for one in first):
        yield from first
        return
    time.sleep(PATIENCE)
    before = {_identity(one) for one in first}
    for one in look():
        if one.severity is Severity.NOTE or _identity(one) in before:
            yield one


def _identity(one: Finding) -> tuple[object, ...]:
    return one.code, one.path, one.position, one.part, one.topic, one.queue_id
