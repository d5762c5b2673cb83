"""The files of the log in front of the place where recovery begins: read for the sake of the verdict only.

The start itself does not touch them, but a message in them may have a queue offset that a queue which ends
too low gives out again. Many starts may be foretold on one store, each file is read once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rmqtool.errors import RmqtoolError
from rmqtool.recovery.reading import BudgetEndedError, copied_bytes
from rmqtool.recovery.spans import QueueSpans
from rmqtool.scan.events import Records
from rmqtool.scan.fields import Check, Field
from rmqtool.scan.parallel import in_order
from rmqtool.scan.segment import SegmentScan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.recovery.mapped import MappedFile
    from rmqtool.recovery.reading import Reading
    from rmqtool.scan.parallel import Lane
    from rmqtool.store.files import StoreFile

ALLOWANCE = 2 << 30
"""bytes that are read without being asked for: as much as a start may scan and still be foretold at once"""


@dataclass
class LookBack:
    """allowance: bytes of data that may be read, None for no bound; files behind it stay unread."""

    allowance: int | None = None
    _seen: dict[str, QueueSpans] = field(default_factory=dict)
    _failed: set[str] = field(default_factory=set)

    @property
    def is_spent(self) -> bool:
        """Files stay unread because the allowance or the time was over."""
        return self.allowance == 0

    def take(self, files: list[MappedFile], spans: QueueSpans, reading: Reading) -> list[str]:
        """Adds what the files hold to `spans`; the paths that were not read, or not to their end.

        The youngest files are read first.
        """
        wanted = [one for one in reversed(files) if one.path not in self._seen and one.file is not None]
        try:
            self._read([one for one in wanted if self._may_read(one.file)], reading)
        except BudgetEndedError:
            self.allowance = 0
        for one in files:
            if one.path in self._seen:
                spans.add(self._seen[one.path])
        return [one.path for one in files if one.path not in self._seen or one.path in self._failed]

    def _may_read(self, file: StoreFile | None) -> bool:
        if self.allowance is None or file is None:
            return True
        size = min(file.size, file.disk_bytes)
        if size > self.allowance:
            self.allowance = 0
            return False
        self.allowance -= size
        return True

    def _read(self, files: list[MappedFile], reading: Reading) -> None:
        found: dict[str, QueueSpans] = {}
        for one, run in in_order(files, lambda one, lane: _runs(one, reading, lane), reading.jobs):
            spans = found.setdefault(one.path, QueueSpans(reading.kernels))
            if isinstance(run, Records):
                spans.take(run, one.base)
                continue
            self._seen[one.path] = spans
            if run is not None:
                self._failed.add(one.path)


def _runs(
    one: MappedFile, reading: Reading, lane: Lane
) -> Iterator[tuple[MappedFile, Records | RmqtoolError | None]]:
    """Runs of a file; None behind the last, or the error that ended reading."""
    if one.file is None:
        return
    done = 0
    try:
        with reading.open(one.file, lane) as source:
            scan = SegmentScan(
                source,
                one.base,
                checks=Check.TEXT,
                active=False,
                kernels=reading.kernels,
                stop=lane.stop,
            )
            for event in scan:
                if isinstance(event, Records):
                    lane.take(event.rows.nbytes + copied_bytes(source, event))
                    end = int(event.rows[-1, Field.POSITION])
                    yield one, Records(event.rows.copy(), event.window, event.origin)
                    reading.told(end - done)
                    done = end
    except RmqtoolError as error:
        yield one, error
        return
    reading.told(one.file.size - done)
    yield one, None
