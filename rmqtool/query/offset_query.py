"""The whole answer of `query-offset`: records, their queue offsets, and what a consumer would get."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from rmqtool.query.by_offset import pull_on
from rmqtool.query.client_decode import client_view
from rmqtool.query.message_filter import MessageFilter
from rmqtool.query.missing_runs import MissingRuns
from rmqtool.query.queue_damage import queue_damage, skipped
from rmqtool.query.select_found import FoundFilter
from rmqtool.query.subscription import FilterType
from rmqtool.query.unit_tags import UnitTags
from rmqtool.query.verdict import Cause, Verdict, judge
from rmqtool.query.without_unit import without_first_units, without_last_units
from rmqtool.query.wrong_units import QUEUE_COLUMNS, WrongUnits, cut_units, not_holding
from rmqtool.scan.options import ReadOptions
from rmqtool.scan.picked import Damaged, Missing, pick
from rmqtool.store.coverage import Incomplete, coverage
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rmqtool.broker.get_message import Delivered, Passes, Pull
    from rmqtool.broker.queue_view import QueueView
    from rmqtool.query.client_decode import ClientView
    from rmqtool.query.served_queue import ReadRules
    from rmqtool.query.subscription import Subscription
    from rmqtool.query.verdict import Question
    from rmqtool.store.layout import Store

AT_ONCE = 1024
"""records that are looked up together"""

Row = dict[str, Any]


@dataclass
class OffsetQuery:
    """Messages of one queue from one offset on.

    report: list also what the subscription keeps back, and say of each record where it passes. chosen: what
    of all that is listed; no broker knows of it, so that status and next offset do not depend on it.
    unread: what of log and queue cannot be opened. reading: how the log is searched for what has no unit.
    """

    store: Store
    view: QueueView
    rules: ReadRules
    asked: Question
    subscription: Subscription | None = None
    report: bool = False
    chosen: MessageFilter = field(default_factory=MessageFilter)
    unread: Sequence[Row] = ()
    reading: ReadOptions = field(default_factory=ReadOptions)
    listed: int = 0
    kept_back: int = 0
    foreign: int = 0
    missing: MissingRuns = field(default_factory=MissingRuns)
    damaged: list[Damaged] = field(default_factory=list)
    misdirected: list[Row] = field(default_factory=list)
    _first: Pull | None = None
    _reached: int = 0
    _left_out: int = 0

    def batches(
        self, count: int, columns: Sequence[str]
    ) -> Iterator[tuple[pa.RecordBatch, dict[str, list[Any]]]]:
        """Records of up to `count` messages, with lists for `slot` and, with `report`, where they pass."""
        with UnitTags(self.store, self.asked.topic, self.asked.queue_id) as tags:
            yield from self._batches(count, columns, tags)

    def _batches(
        self, count: int, columns: Sequence[str], tags: UnitTags
    ) -> Iterator[tuple[pa.RecordBatch, dict[str, list[Any]]]]:
        passes, wrong = self.broker_filter(tags), WrongUnits(self.view)
        judge = FoundFilter(self.chosen)
        most = _NO_END if judge.columns else count
        first, delivered = pull_on(self.view, self.asked.offset, count, passes, most)
        self._first, self._reached = first, self.asked.offset
        subscription = self.subscription
        own = subscription.columns if subscription else ()
        wanted = tuple(dict.fromkeys((*columns, *own, *judge.columns, *QUEUE_COLUMNS)))
        while some := list(islice(delivered, AT_ONCE)):
            if self._reached == self.asked.offset:
                self.misdirected += not_holding(self.view, some[0], self.asked.offset)
            self._reached = some[-1].queue_offset + some[-1].messages
            for part, found in self._picked(some, wanted):
                self.misdirected += wrong.rows(part, [one.queue_offset for one in found])
                judged, more = self._judged(part, found, tags)
                batch, more = _chosen(judged, more, judge)
                self._left_out += judged.num_rows - batch.num_rows
                if judge.columns and self.listed + batch.num_rows >= count:
                    batch, more = _sliced(batch, more, count - self.listed)
                    self._reached = more["slot"][-1] + 1
                    self.listed = count
                    yield batch.select(columns), more
                    return
                self.listed += batch.num_rows
                yield batch.select(columns), more

    def _picked(
        self, some: list[Delivered], columns: Sequence[str]
    ) -> Iterator[tuple[pa.RecordBatch, list[Delivered]]]:
        """The records that are there, each batch with what was delivered for it."""
        own = [one for one in some if not one.foreign]
        self.foreign += len(some) - len(own)
        yield from self.missing.picked(self.store.segments, own, columns, self.damaged)

    def _judged(
        self, batch: pa.RecordBatch, found: list[Delivered], tags: UnitTags
    ) -> tuple[pa.RecordBatch, dict[str, list[Any]]]:
        slots = [one.queue_offset for one in found]
        if self.subscription is None:
            return batch, {"slot": slots}
        passes = self.subscription.passes(batch)
        if self.report:
            broker = [
                self.subscription.passes_unit(tags.of(one.tags_code))
                and (self.subscription.type is FilterType.TAG or bool(good))
                for one, good in zip(found, passes, strict=True)
            ]
            return batch, {"slot": slots, "passes_broker": broker, "passes_consumer": passes.tolist()}
        self.kept_back += int((~passes).sum())
        kept = [slot for slot, good in zip(slots, passes, strict=True) if good]
        return batch.filter(pa.array(passes)), {"slot": kept}

    def broker_filter(self, tags: UnitTags) -> Passes | None:
        """What the broker asks of each unit; None where all of them are wanted."""
        wanted = self.subscription
        if wanted is None or self.report:
            return None
        if wanted.type is FilterType.TAG:
            return lambda tags_code, _offset, _size: wanted.passes_unit(tags.of(tags_code))
        return lambda _code, offset, _size: self._passes_record(wanted, offset)

    def _passes_record(self, wanted: Subscription, physical_offset: int) -> bool:
        """For an SQL92 expression the broker reads the record (`#isMatchedByCommitLog`)."""
        for part in pick(self.store.segments, [physical_offset], wanted.columns):
            if not isinstance(part, Missing):
                return bool(wanted.passes(part)[0])
        return True

    @property
    def reached(self) -> int:
        """Queue offset behind all that was listed; only after `batches` was read to its end."""
        behind = 0 if self._first is None else self._first.next_begin_offset
        return max(self._reached, behind if self._reached == self.asked.offset else 0)

    def summary(self) -> Row:
        """The closing summary; only after `batches` was read to its end."""
        if self._first is None:
            raise ValueError("the records come first")
        first, asked = self._first, self.asked
        throws = first.throws_at is not None  # and then there is neither a status nor a next offset
        reported: Row = {
            "topic": asked.topic,
            "queue_id": asked.queue_id,
            "offset": asked.offset,
            "status": None if throws else str(first.status),
            "min_offset": first.min_offset,
            "max_offset": first.max_offset,
            "next_begin_offset": None if throws else first.next_begin_offset,
            "messages": self.listed,
            "version": self.rules.version,
            "version_source": self.rules.source,
            "verdicts": [{"cause": str(one.cause), "message": one.message} for one in self._verdicts(first)],
        }
        if asked.group is not None:
            reported["group"] = asked.group
        if self.subscription is not None:
            reported["kept_back"] = self.kept_back
        if self.chosen != MessageFilter():
            reported["left_out"] = self._left_out
        if first.delivered and not throws:
            view, places = self.client, np.array([one.physical_offset for one in first.delivered], np.int64)
            if not self.view.log.have_expired(places).any():  # else it has no bytes any more
                decoded = len(view.decoded)
                reported["pull"] = {"bytes": view.bytes, "messages": view.messages, "decoded": decoded}
        if self.foreign:
            reported["foreign_records"] = self.foreign
        return reported | coverage(self.not_covered())

    @cached_property
    def client(self) -> ClientView:
        """What a consumer makes of the bytes of the first pull."""
        delivered = self._first.delivered if self._first is not None else []
        return client_view(self.view.log, delivered, self.rules.traits)

    def _damaged(self, first: Pull) -> Iterator[Verdict]:
        """The broker looks at no record that it sends, and the client at little."""
        if first.throws_at is not None:
            # with all that was collected, unless the batch was full in front of it (`#isTheBatchFull`)
            ahead = sum(one.messages for one in first.delivered if one.queue_offset < first.throws_at)
            only = f"; only a pull for at most {ahead} messages gets what is in front of it" if ahead else ""
            yield Verdict(
                Cause.PULL_THROWS,
                f"a pull from offset {self.asked.offset} throws in the broker, each time, and nothing is "
                f"delivered: the entry of queue offset {first.throws_at} has a size below zero{only}",
            )
            return
        seen, slots = self.client, [one.queue_offset for one in first.delivered]
        if seen.lost is not None:
            gone = f"from offset {slots[seen.lost]} on: it drops {seen.messages - seen.lost} without an error"
            yield Verdict(
                Cause.UNDECODABLE,
                f"a pull from offset {self.asked.offset} returns {first.status} with {seen.bytes} bytes of "
                f"{seen.messages} messages, which a consumer cannot decode {gone} and continues at offset "
                f"{first.next_begin_offset}",
            )
        if seen.altered is not None:
            number, one = seen.altered
            if one.physical_offset == first.delivered[number].physical_offset:
                what = "a body that fails its CRC, which no client checks"
            else:
                name = escape_name(one.topic)
                what = (
                    f"bytes that are not the message: it gets topic '{name}', queue offset {one.queue_offset}"
                )
            yield Verdict(Cause.ALTERED, f"at offset {slots[number]} a consumer decodes {what}")

    def _verdicts(self, first: Pull) -> Iterator[Verdict]:
        """The filter speaks when the pull itself delivers, or finds nothing that passes the unit's hash."""
        judged = list(judge(self.store, self.view, self.asked, first, self.reading))
        damaged = list(self._damaged(first))
        if damaged:
            other = {Cause.DELIVERED} if first.throws_at is None else {Cause.DELIVERED, Cause.REMOVED}
            judged = [*damaged, *(one for one in judged if one.cause not in other)]
        wanted = self.subscription
        if wanted is None or self.report or self.listed or self._left_out or first.status not in _SCANNED:
            yield from judged
            return
        yield from (one for one in judged if one.cause is not Cause.DELIVERED)
        where = f"the consumer drops {self.kept_back} of them" if self.kept_back else "the broker skips them"
        yield Verdict(
            Cause.FILTERED,
            f"the messages from offset {self.asked.offset} to {first.next_begin_offset} do not pass "
            f"'{wanted.expression}': {where}",
        )

    @cached_property
    def _without_unit(self) -> list[Row]:
        """Rows for messages without a unit; for those behind the last one where that end is reached."""
        rows = list(without_first_units(self.store, self.view, self.reading))
        if max(self._reached, self.asked.offset + 1) >= self.view.max_offset:
            rows += without_last_units(self.store, self.view, self.reading)
        return rows

    def not_covered(self) -> list[Row]:
        """Messages behind the last one listed, and records that could not be shown."""
        rows: list[Row] = [*self.unread, *self.missing.rows, *map(Damaged.row, self.damaged)]
        rows += queue_damage(self.view, self.store)
        if self._first is not None and self._first.first_skipped is not None:
            rows.append(skipped(self.view, self._first.first_skipped, self._first.skipped))
        rows += self.misdirected
        rows += cut_units(self.view, self.asked.offset, max(self._reached, self.asked.offset + 1))
        rows += self._without_unit
        end = self._first.max_offset if self._first is not None else 0
        if self._reached != self.asked.offset and self._reached < end:
            row = {"path": self.view.path, "queue_offset": self._reached, "messages": end - self._reached}
            rows.append({**row, "reason": Incomplete.LIMIT})
        return rows


def _chosen(
    batch: pa.RecordBatch, more: dict[str, list[Any]], judge: FoundFilter
) -> tuple[pa.RecordBatch, dict[str, list[Any]]]:
    if not judge.columns:
        return batch, more
    mask = judge.mask(batch)
    kept = {
        name: [one for one, good in zip(values, mask, strict=True) if good] for name, values in more.items()
    }
    return batch.filter(pa.array(mask)), kept


def _sliced(
    batch: pa.RecordBatch, more: dict[str, list[Any]], count: int
) -> tuple[pa.RecordBatch, dict[str, list[Any]]]:
    return batch.slice(0, count), {name: values[:count] for name, values in more.items()}


_NO_END = 1 << 62
"""messages looked at, where a filter that no broker knows chooses among them"""
_SCANNED = frozenset({"FOUND", "NO_MATCHED_MESSAGE"})
