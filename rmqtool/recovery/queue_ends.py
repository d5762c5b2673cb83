"""What a start makes of every queue, held against the queue offsets that messages in the log have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.broker.batch_consume_queue import BatchConsumeQueue
from rmqtool.broker.consume_queue import ConsumeQueue
from rmqtool.broker.deleted_topics import is_somebodys
from rmqtool.broker.traits import ReputStart
from rmqtool.recovery.holes import Holes, holes
from rmqtool.recovery.outcome import QueueOutcome

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from rmqtool.broker.start import AnyQueue
    from rmqtool.recovery.matching import Matches
    from rmqtool.recovery.observed_start import ObservedStart
    from rmqtool.recovery.spans import Key, Lag

    Span = tuple[int, int]


def queue_outcomes(
    start: ObservedStart,
    loaded_max: Mapping[Key, int],
    matches: Mapping[Key, Matches] | None,
    *,
    whole: bool,
) -> tuple[QueueOutcome, ...]:
    """Every queue that has files or messages, by name.

    loaded_max: ends directly after the load. matches: of all records of the log, None where not all were held
    against their entries. whole: the files before the start segment were read too.
    """
    if start.settings.rocksdb_queues:
        return ()
    queues, spans = start.queues, _wanted_spans(start)
    known = matches or {}
    spans = _light_spans(start, known, spans) | spans
    later = _cut_later(start)
    return tuple(
        _outcome(
            key,
            queues.get(key),
            spans.get(key),
            loaded_max.get(key, 0),
            known[key] if key in known and known[key].compared else None,
            whole=whole,
            later=later.get(key, 0),
            messages=_messages(key, start, known),
        )
        for key in sorted({*queues, *spans})
    )


def _cut_later(start: ObservedStart) -> dict[Key, int]:
    """Entries that this start leaves, as it knew less than all of the log, and the next one takes away.

    Where dispatching begins where the queues end, those behind that place are built again.
    """
    if start.truncated or start.end is None:
        return {}
    offset = start.end.offset
    cut = {key: one.cut_later(offset) for key, one in start.queues.items() if isinstance(one, ConsumeQueue)}
    begin = max((end for _, end in cut.values()), default=0)
    again = start.traits.reput_start is ReputStart.QUEUES
    return {key: count for key, (count, end) in cut.items() if count and (end < begin or not again)}


def lags(start: ObservedStart) -> tuple[Lag, ...]:
    """What queues lacked of the log before the start."""
    if start.settings.rocksdb_queues:
        return ()
    return tuple(one for one in start.spans.lags if is_somebodys(start.store.topics, one.topic))


def _wanted_spans(start: ObservedStart) -> dict[Key, tuple[int, int]]:
    """Queue offsets in the log."""
    return {key: span for key, span in start.spans.of().items() if is_somebodys(start.store.topics, key[0])}


def _light_spans(
    start: ObservedStart, matches: Mapping[Key, Matches], own: Collection[Key]
) -> dict[Key, Span]:
    """Queue offsets in the log of queues that records feed besides their `own`.

    Release 5 numbers some of these queues otherwise than its records (`MultiDispatchUtils`): where entries do
    not lead to the messages of their queue offsets, or the last one to a message of a higher one, these tell
    nothing of the queue's end; entries that do, and go with the start, tell of it all the same.
    """
    spans = {
        key: one.taken if one.wrong or one.ahead else one.span
        for key, one in matches.items()
        if key not in own
    }
    return {
        key: span
        for key, span in spans.items()
        if span is not None and is_somebodys(start.store.topics, key[0])
    }


def _messages(key: Key, start: ObservedStart, matches: Mapping[Key, Matches]) -> int:
    """How many messages of a queue state a queue offset in its span."""
    own, seen = start.spans.messages[key], matches.get(key)
    return own if own or seen is None else seen.compared + seen.beyond


def _outcome(
    key: Key,
    queue: AnyQueue | None,
    span: tuple[int, int] | None,
    loaded: int,
    seen: Matches | None,
    *,
    whole: bool,
    later: int,
    messages: int,
) -> QueueOutcome:
    """seen: all records against the entries at their queue offsets, None where that is not known.

    A wrong queue offset makes the span wide: no more of it is harmed than there are `messages`.
    """
    if queue is None:
        low, high = span or (0, 0)
        hidden = min(high - low, messages)
        repeated = max(min(high, max(low, 0) + messages), 0)
        return QueueOutcome(
            *key, 0, 0, 0, repeated=repeated, repeated_to=high, hidden=hidden, hidden_from=low
        )
    first, end = queue.min_offset, queue.max_offset
    low, high = span or (first, end)
    gaps = holes(queue, low, high) if span is not None else Holes()
    before = min(max(first - low, 0), messages)
    late = messages if seen is None or isinstance(queue, BatchConsumeQueue) else seen.beyond
    if span is None or not whole:
        # what the messages of files that were not read have is not known: blanks stand for some of them
        hidden = max(before, queue.blanked, gaps.count)
        begin: int | None = min(low, first)
    elif seen is not None and isinstance(queue, BatchConsumeQueue):
        # its entries lie close together: only records tell that one is not there
        hidden, begin = seen.missed, seen.first_missed
    else:
        # a blank at a queue offset that no record has hides nothing; one that a start takes in hides more
        behind = seen.beyond if seen is not None and queue.phantom is not None else 0
        lacking = gaps.count if seen is None else min(gaps.count, seen.missed + behind)
        hidden = before + lacking
        begin = low if first > low else gaps.first
    return QueueOutcome(
        *key,
        first,
        end,
        loaded,
        misplaced=queue.misplaced,
        lost=max(queue.recovered_max - loaded, 0) + later,
        later=later,
        repeated=max(min(high - end, max(late, 1)), 0),
        repeated_to=high,
        hidden=hidden,
        hidden_from=begin if hidden else None,
        doubled=queue.doubled,
    )
