"""An export from beginning to end: scan, filter, write, and at any moment how far it came."""

from __future__ import annotations

import time
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from rmqtool.errors import ExitCode, RmqtoolError, UsageError
from rmqtool.output.export.shield import whole_step
from rmqtool.query.anchor import anchor
from rmqtool.query.counts import LogCounts
from rmqtool.query.displaced import lost_by_units
from rmqtool.query.log_listing import LogListing
from rmqtool.query.scope import Scope
from rmqtool.query.select import Selector
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.events import Records
from rmqtool.scan.fields import TORN, Field
from rmqtool.scan.log import LogScan, scan_log
from rmqtool.scan.options import data_bytes
from rmqtool.store.coverage import Incomplete, coverage, rest_of_log
from rmqtool.store.doubts import Doubt, DoubtJoiner, doubtful

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy.typing as npt
    import pyarrow as pa

    from rmqtool.output.export.target import Target
    from rmqtool.query.message_filter import MessageFilter
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store

Row = dict[str, Any]

SCHEMA = "rmqtool.export/1"
MOMENTS = ("store_from", "store_to", "born_from", "born_to")
"""bounds of the filter that may be given as ages, and mean the same moment when an export goes on"""

_NEEDED = ("path", "position", "physical_offset", "stored_physical_offset", "store_size", "crc")
_LISTED = 1000
"""ranges of damage that the summary lists one by one"""


class Writer(Protocol):
    """Takes batches."""

    def write(self, batch: pa.RecordBatch) -> None:
        """Some records."""

    def position(self) -> Row:
        """Makes what was written last, and says where it ends."""

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Closes and publishes."""

    def close(self) -> None:
        """Gives up."""


class Destination(Protocol):
    """columns: of the record table. pause: seconds between two positions, None for none on the way."""

    columns: tuple[str, ...]
    pause: float | None

    def open(self, position: Row | None) -> Writer:
        """Begins, or goes on behind a `position`."""


@dataclass
class _Done:
    """How far an export came. offset: physical offset behind the last thing that was taken care of."""

    offset: int | None = None
    messages: int = 0
    bytes: int = 0
    first_offset: int | None = None
    end_offset: int | None = None
    gaps: int = 0
    bad_crc: int = 0
    left_out: int = 0
    not_covered: list[Row] = field(default_factory=list)


class ExportRun:
    """One export. missing: what could not even be listed, as rows of `not_covered`.

    at: sorted physical offsets of the records that are meant, None for all that pass the filter.
    """

    def __init__(
        self,
        store: Store,
        wanted: MessageFilter,
        reading: ReadOptions,
        destination: Destination,
        target: Target,
        at: npt.NDArray[np.int64] | None = None,
    ) -> None:
        self._at = at
        self._store = store
        self._segments = store.segments
        self._wanted = wanted
        self._reading = reading
        self._destination = destination
        self._target = target
        self._options: Row = {}
        self._missing: list[Row] = []
        self._done = _Done()
        self._joiner = DoubtJoiner(self._done.not_covered)
        self._whole = not (self._segments.twins() or self._segments.overlaps())
        self.resumed_from: int | None = None
        self.published = False

    def run(self, options: Row, state: Row | None, missing: Sequence[Row] = ()) -> None:
        """Everything. options, state: as for `Target.begin`. Leaves what is needed to go on when it fails."""
        self._options, self._missing = options, list(missing)
        if state is not None:
            self._go_on(state)
        self._selector = Selector(self._wanted, choose_kernels(data_bytes(self._segments)))
        self._scope = Scope(self._segments, self._wanted)
        writer = self._destination.open(None if state is None else state["position"]["writer"])
        ending = False
        try:
            self._write(writer)
            self._missing += lost_by_units(self._store, self._wanted)
            with whole_step():
                ending = True
                writer.finish({"schema": SCHEMA, **self.summary()})
                self.published = True
        except (RmqtoolError, OSError, KeyboardInterrupt):
            # what fails here too says no more than the error itself; behind an end nothing goes on
            if not ending:
                with suppress(RmqtoolError, OSError):
                    self._save(writer)
            raise
        finally:
            writer.close()

    def _go_on(self, state: Row) -> None:
        position = state["position"]
        if anchor(self._segments, position["anchor"]["physical_offset"]) != position["anchor"]:
            raise UsageError(
                "--resume: the log is not the one that was exported: other bytes are before offset "
                f"{position['anchor']['physical_offset']}"
            )
        self._done = _Done(**position["done"])
        self._joiner = DoubtJoiner(self._done.not_covered)
        self._wanted = replace(self._wanted, **state["moments"])
        self.resumed_from = self._done.offset

    def _write(self, writer: Writer) -> None:
        counts = LogCounts(messages=self._done.messages)
        start = self._done.offset or 0
        listing = LogListing(self._segments, self._wanted, self._scope.may_hold, counts, start)
        how = LogScan(
            columns=tuple(dict.fromkeys((*self._destination.columns, *_NEEDED, "issues"))),
            choose=self._choose,
            wanted=self._scope.may_hold,
            offsets=(start, max(self._segments.end_offset, start)) if start else None,
            options=self._reading,
        )
        saved = time.monotonic()
        for batch, others in listing.pieces(scan_log(self._segments, how)):
            with whole_step():
                self._take(writer, batch, others)
            pause = self._destination.pause
            if pause is not None and time.monotonic() - saved >= pause:
                self._save(writer)
                saved = time.monotonic()
        self._done.not_covered += [row for row in counts.not_covered if row["reason"] == Incomplete.LIMIT]

    def _choose(self, records: Records, base: int, path: str = "") -> Records:
        if self._at is not None:
            starts = records.rows[:, Field.POSITION] + base
            place = np.minimum(np.searchsorted(self._at, starts), max(len(self._at) - 1, 0))
            kept = self._at[place] == starts if len(self._at) else np.zeros(len(starts), np.bool_)
            records = Records(records.rows[kept], records.window, records.origin)
        return self._selector.choose(records, base, path)

    def _take(self, writer: Writer, batch: pa.RecordBatch | None, others: Sequence[Row]) -> None:
        done = self._done
        if batch is not None and batch.num_rows:
            own = {*self._destination.columns, *_NEEDED}
            writer.write(batch.select([name for name in batch.schema.names if name in own]))
            offsets, sizes = batch["physical_offset"], batch["store_size"].to_numpy()
            done.messages += batch.num_rows
            done.bytes += int(sizes.sum(dtype="int64"))
            if done.first_offset is None:
                done.first_offset = offsets[0].as_py()
            done.end_offset = offsets[-1].as_py() + int(sizes[-1])
            done.offset = done.end_offset
            self._doubtful(batch)
        for row in others:
            self._beside(row)

    def _lacks(self, row: Row) -> None:
        """One range of damage more."""
        self._done.left_out += not self._joiner.add(row, most=_LISTED)

    def _doubtful(self, batch: pa.RecordBatch) -> None:
        """Records with a bad body, where others were, and torn ones: a range of the log for each cause."""
        import pyarrow.compute as pc

        other = pc.not_equal(batch["stored_physical_offset"], batch["physical_offset"])
        torn = pc.not_equal(pc.bit_wise_and(batch["issues"], int(TORN)), 0)
        bad = pc.equal(batch["crc"], "bad")
        for mask, cause in ((bad, Doubt.BODY), (other, Doubt.MISPLACED), (torn, Doubt.TORN)):
            found = batch.select(_NEEDED).filter(pc.fill_null(mask, False))
            if not found.num_rows:
                continue
            self._done.bad_crc += found.num_rows * (cause is Doubt.BODY)
            first, last = found.slice(0, 1).to_pylist()[0], found.slice(found.num_rows - 1).to_pylist()[0]
            place = {name: first[name] for name in ("path", "position", "physical_offset")}
            length = last["physical_offset"] + last["store_size"] - first["physical_offset"]
            row = place | {"length": length, "reason": Incomplete.DAMAGE.value}
            self._lacks(row | doubtful(found.num_rows, cause))

    def _beside(self, row: Row) -> None:
        """What is not a record: damage inside the scope is not covered."""
        end = row["physical_offset"] + row["length"]
        if self._wanted.sample is None and self._done.offset is not None:
            self._done.offset = max(self._done.offset, end)
        elif self._wanted.sample is None:
            self._done.offset = end
        damaged = row["type"] == "gap" or (row["type"] == "tail" and row["content"] == "garbage")
        low, high = self._wanted.offset_from, self._wanted.offset_to
        outside = (low is not None and end <= low) or (high is not None and row["physical_offset"] >= high)
        if not damaged or outside:
            return
        self._done.gaps += 1
        place = {name: row[name] for name in ("path", "position", "physical_offset", "length")}
        if row["reason"] == "unreadable":
            self._lacks(place | {"reason": Incomplete.UNREADABLE.value, "error": row["error"]})
        else:
            self._lacks(place | {"reason": Incomplete.DAMAGE.value})

    def summary(self, left: Incomplete | None = None) -> Row:
        """What was exported. left: why the rest was not, where it was not."""
        done = self._done
        reported: Row = {
            "messages": done.messages,
            "bytes": done.bytes,
            "first_offset": done.first_offset,
            "end_offset": done.end_offset,
            "gaps": done.gaps,
            "bad_crc": done.bad_crc,
            "segments_skipped": self._scope.skipped,
        }
        if done.left_out:
            reported["not_covered_left_out"] = done.left_out
        rows = [*self._missing, *done.not_covered]
        if left is not None:
            wanted = [one for one in self._segments if self._scope.in_offsets(one)]
            rows += rest_of_log(wanted, done.offset or 0, left, end=self._wanted.offset_to)
        return reported | coverage(rows)

    def exit_code(self) -> ExitCode:
        """Of an export that came to its end."""
        reasons = {row["reason"] for row in (*self._missing, *self._done.not_covered)}
        return ExitCode.INCOMPLETE if reasons - {Incomplete.LIMIT} else ExitCode.OK

    def _save(self, writer: Writer) -> None:
        """Puts down how far the export came."""
        with whole_step():
            done, found = self._done, None
            if done.offset and self._whole and self._wanted.sample is None:
                found = anchor(self._segments, done.offset)
            position = None
            if found is not None:
                position = {"writer": writer.position(), "anchor": found, "done": vars(done)}
            moments = {name: getattr(self._wanted, name) for name in MOMENTS}
            self._target.save({"options": self._options, "moments": moments, "position": position})
