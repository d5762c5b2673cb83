"""Queue offsets that nothing accounts for once the holes have their records.

`order` looks at each queue by itself, so one hole may explain what several queues miss. Where another queue
gets it, the log has no room for what is missing in front of a record, as if there were no hole. The plan
for the result of this one would see that, and put the queue in another order: so this one does.
"""

from __future__ import annotations

from collections import defaultdict
from itertools import chain
from typing import TYPE_CHECKING

from rmqtool.repair.keep.model import Run
from rmqtool.repair.keep.outliers import SHORT, is_short, parts_of, put_in_order, rows_of
from rmqtool.repair.keep.room import Room
from rmqtool.repair.keep.stale import loosen

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from rmqtool.repair.keep.hole_layout import HoleLayout
    from rmqtool.repair.keep.model import QueueKey, Survey
    from rmqtool.repair.keep.order import Order
    from rmqtool.repair.keep.room import Missing
    from rmqtool.repair.keep.slot_assignment import Claims

    Rows = Sequence[Sequence[Run]]

_ROUNDS = 8
"""how often all is decided again at most: damage that goes on refuting costs no more than the log's length"""


def refute(
    survey: Survey,
    order: Order,
    claims: Claims,
    layouts: Iterable[Sequence[HoleLayout]],
    without: Iterable[Missing],
) -> bool:
    """Records with such a queue offset are refuted, whole ones become holes; whether there are any more.

    layouts: of all holes, with what they take. without: what no hole has room for. A queue in which records
    that agree have no room skips queue offsets: it stays. One of which not all that it misses in front has
    room begins later.
    """
    without = list(without)
    lacking = {one.key for one in without if one.key[0] not in survey.batches} - order.twice
    if not lacking or order.rounds >= _ROUNDS:
        return False
    order.rounds += 1
    begins_later = _without_fronts(order, [one for one in without if one.key in lacking])
    order.chosen.update({key: _single(order.chosen.get(key, ())) for key in lacking})
    rows = {key: rows_of(parts) for key, parts in _filled(order.chosen, claims, layouts).items()}
    order.left = Room((), _loose(rows, survey.batches))
    begin, known = survey.segments[0].base, len(order.refuted)
    remaining: dict[QueueKey, list[Run]] = {}
    for key in sorted(lacking):
        found = put_in_order([*chain.from_iterable(rows[key])], order.left, begin, batch=False)
        starts = {one.start for one in found.outliers}
        agree = any(_count(row) > SHORT for row in rows_of(found.outliers))
        chosen = order.chosen[key]
        kept = [one for one in chosen if one.start not in starts]
        if found.twice or agree:
            continue
        order.refuted |= starts
        if len(kept) < len(chosen):
            remaining[key] = kept
    loosen(survey, order.reduce(remaining, begin))
    return begins_later or len(order.refuted) > known


def _without_fronts(order: Order, without: Sequence[Missing]) -> bool:
    """Queues miss nothing in front of their first record where some of it has no room; whether any did."""
    lowest: dict[QueueKey, int] = {}
    for one in without:
        lowest[one.key] = min(one.first, lowest.get(one.key, one.first))
    left = [one for one in order.missing if one.first or lowest.get(one.key, one.last + 1) > one.last]
    changed = len(left) < len(order.missing)
    order.missing = left
    return changed


def _single(runs: Iterable[Run]) -> list[Run]:
    """Runs in parts, unless they are some: see `Run.first_end`."""
    return [part for run in runs for part in (parts_of([run]) if run.first_end > 0 else [run])]


def _filled(
    chosen: Mapping[QueueKey, Sequence[Run]], claims: Claims, layouts: Iterable[Sequence[HoleLayout]]
) -> dict[QueueKey, list[Run]]:
    """What queues have in the result, in the order of the log."""
    found = defaultdict(list, {key: list(runs) for key, runs in chosen.items() if runs})
    for run in (*_claimed(claims), *_placed(chain.from_iterable(layouts))):
        found[run.key].append(run)
    return {key: sorted(runs, key=lambda one: one.start) for key, runs in found.items()}


def _claimed(claims: Claims) -> Iterator[Run]:
    for one in chain.from_iterable(claims.frames.values()):
        if one.key is not None and one.slot is not None:
            last = one.slot + one.count - 1
            yield Run(one.key, one.slot, last, one.start, one.start, one.end, one.end)


def _placed(layouts: Iterable[HoleLayout]) -> Iterator[Run]:
    """Of these only the order is known."""
    for layout in layouts:
        for start, one in enumerate(layout.placed, layout.start):
            yield Run(one.key, one.slot, one.slot + one.positions - 1, start, start, start + 1, start + 1)


def _loose(rows: Mapping[QueueKey, Rows], batches: Collection[str]) -> list[Run]:
    """What of the result may be wrong, as the next plan has it."""
    found: list[Run] = []
    for key, some in rows.items():
        if len(some) == 1 and _count(some[0]) > SHORT:
            continue
        batch = key[0] in batches
        runs = [_joined(row) for row in some]
        found += [part for part in (runs if batch else parts_of(runs)) if is_short(part, batch=batch)]
    return found


def _joined(row: Sequence[Run]) -> Run:
    first, last = row[0], row[-1]
    return Run(first.key, first.first, last.last, first.start, last.last_start, last.end, first.first_end)


def _count(row: Iterable[Run]) -> int:
    return sum(one.count for one in row)
