"""A replayable file as a listing: its records, and what of it is not a whole record, counted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from formats.replay import END_SIZE
from rmqtool.errors import StoreIOError, UnreadableError
from rmqtool.scan.fields import Field
from rmqtool.scan.replay import ReplayStop
from rmqtool.scan.replay_scan import ReplayScan
from rmqtool.scan.sample import Sample
from rmqtool.scan.table import bad_bodies
from rmqtool.store.coverage import Incomplete, rest_of_files, unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    import pyarrow as pa

    from rmqtool.query.counts import LogCounts
    from rmqtool.query.message_filter import MessageFilter
    from rmqtool.query.select import Selector
    from rmqtool.store.access import Access
    from rmqtool.store.files import StoreFile

    Row = dict[str, Any]
    Listed = tuple[pa.RecordBatch | None, list[Row]]


class ReplayListing:
    """What of a replayable file is listed. `counts` holds at any time what has been.

    In its batches `segment` is null, and `physical_offset` is where the record says it lay.
    """

    def __init__(
        self, file: StoreFile, wanted: MessageFilter, select: Selector, counts: LogCounts, access: Access
    ) -> None:
        self.counts = counts
        self._file = file
        self._wanted = wanted
        self._select = select
        self._access = access
        self._reached = 0
        self._advance: Callable[[int], object] = lambda _: None

    def left(self, reason: Incomplete) -> list[Row]:
        """What lies behind the last record that was listed."""
        return rest_of_files([self._file], self._reached, reason)

    def pieces(
        self, columns: Sequence[str], advance: Callable[[int], object] = lambda _: None
    ) -> Iterator[Listed]:
        """Batches and rows of other kinds as they are to be shown, within `limit` and `sample`.

        columns: of the record table. advance: called with how many bytes of the file are done.
        """
        self._advance = advance
        if self._wanted.sample is not None:
            yield from self._sampled(columns, Sample(self._wanted.sample))
            return
        left = self._wanted.limit
        for batch, others in self._all(columns):
            shown = batch
            if batch is not None and left is not None:
                shown = batch.slice(0, left)
                left -= shown.num_rows
            self._count(shown)
            yield shown, others
            if batch is not None and shown is not None and shown.num_rows < batch.num_rows:
                self._reached = batch["position"][shown.num_rows].as_py()
                self.counts.not_covered += self.left(Incomplete.LIMIT)
                return

    def _sampled(self, columns: Sequence[str], sample: Sample) -> Iterator[Listed]:
        held: list[Row] = []
        for batch, others in self._all(columns):
            held += others
            if batch is not None:
                sample.offer(batch)
        shown = 0
        for batch in sample.batches(self._wanted.limit):
            self._count(batch)
            shown += batch.num_rows
            yield batch, []
        if sample.offered > shown:
            lost = {"path": self._file.display_path, "position": 0, "length": self._file.size}
            reported = {"reason": Incomplete.LIMIT.value, "messages": sample.offered - shown}
            self.counts.not_covered.append(lost | reported)
        yield None, held

    def _count(self, batch: pa.RecordBatch | None) -> None:
        if batch is None or not batch.num_rows:
            return
        counts = self.counts
        counts.messages += batch.num_rows
        counts.bytes += int(batch["store_size"].to_numpy().sum(dtype="int64"))
        offsets, sizes = batch["physical_offset"], batch["store_size"]
        if counts.first_offset is None:
            counts.first_offset = offsets[0].as_py()
        counts.end_offset = offsets[-1].as_py() + sizes[-1].as_py()
        self._reached = batch["position"][-1].as_py() + sizes[-1].as_py()

    def _all(self, columns: Sequence[str]) -> Iterator[Listed]:
        """Batches of what the filter passes; what is not a whole record behind the run in front of it."""
        wanted = tuple(dict.fromkeys((*columns, "position", "physical_offset", "store_size")))
        at = 0
        try:
            with self._file.open(self._access) as source:
                scan = ReplayScan(source)
                for run in scan:
                    self._advance(int(run.rows[:, Field.STORE_SIZE].sum()))
                    self.counts.bad_crc += len(bad_bodies(run))
                    chosen = self._select.choose(run, None, self._file.display_path)
                    for batch in scan.batches(chosen, wanted, self._file.display_path):
                        at = batch["position"][-1].as_py() + batch["store_size"][-1].as_py()
                        yield batch, self._strange(scan)
                yield None, [*self._strange(scan), *self._end(scan)]
        except (UnreadableError, StoreIOError) as error:
            row = self._gap(at, self._file.size - at, "unreadable") | {"error": str(error)}
            self.counts.not_covered.append(unreadable(self._file.display_path, str(error), at, row["length"]))
            yield None, [row]

    def _strange(self, scan: ReplayScan) -> list[Row]:
        """Entries since the last question that hold no record."""
        rows = [self._gap(position, length, "no_record") for position, length in scan.strange]
        scan.strange.clear()
        return rows

    def _end(self, scan: ReplayScan) -> list[Row]:
        """Of a file that does not end as a whole one does."""
        end = scan.end
        if end is None or end.whole:
            return []
        counted = end.stop is ReplayStop.BAD_COUNT
        length = END_SIZE if counted else self._file.size - end.position
        return [self._gap(end.position, length, end.stop.value)]

    def _gap(self, position: int, length: int, reason: str) -> Row:
        self.counts.gaps += 1
        self.counts.gap_bytes += length
        place = {
            "path": self._file.display_path,
            "segment": None,
            "position": position,
            "physical_offset": None,
        }
        why = {"reason": reason, "expected": None, "found": None}
        return {"type": "gap", **place, "length": length, **why}
