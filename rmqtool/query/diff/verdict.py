"""Which of two stores is ahead, which one to keep, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rmqtool.query.diff.records import Differing


@dataclass(frozen=True, slots=True)
class Verdict:
    """verdict: equal, a_ahead, b_ahead or diverged. keep: a, b or both. why: in a sentence."""

    verdict: str
    keep: str
    why: str


def judge(
    logs: Sequence[tuple[int, int]],
    found: Sequence[Differing],
    *,
    only: tuple[int, int],
    moved: int,
    changed: int,
    differs: bool,
) -> Verdict:
    """logs: where each begins and ends. differs: any byte of what both should have, or one has more."""
    (start_a, end_a), (start_b, end_b) = logs
    if not differs:
        return Verdict("equal", "both", "the logs hold the same bytes")
    inside = [_inside(one, max(start_a, start_b), min(end_a, end_b)) for one in found]
    if not any(inside) and not changed and not moved:
        return _longer((start_a, end_a), (start_b, end_b), only)
    return _diverged(found, only, moved, changed)


def _inside(found: Differing, start: int, end: int) -> bool:
    """Whether something differs in the range that both logs have."""
    return bool(((found.spans[:, 0] < end) & (found.spans[:, 1] > start)).any())


def _longer(a: tuple[int, int], b: tuple[int, int], only: tuple[int, int]) -> Verdict:
    if a[1] != b[1]:
        ahead, other, count = ("a", "b", only[0]) if a[1] > b[1] else ("b", "a", only[1])
        more = abs(a[1] - b[1])
        why = f"{other} is {more:,} bytes behind, {_messages(count)}; what both have is the same"
        return Verdict(f"{ahead}_ahead", ahead, why)
    if a[0] != b[0]:
        ahead, other = ("a", "b") if a[0] < b[0] else ("b", "a")
        why = f"both end at {a[1]}; {ahead} reaches back further, {other} has let old segments go"
        return Verdict(f"{ahead}_ahead", ahead, why)
    return Verdict("diverged", "both", "bytes differ that belong to no message")


def _diverged(found: Sequence[Differing], only: tuple[int, int], moved: int, changed: int) -> Verdict:
    damaged = found[0].damaged, found[1].damaged
    if bool(damaged[0]) != bool(damaged[1]) and not only[damaged.index(max(damaged))]:
        keep, other = ("b", "a") if damaged[0] else ("a", "b")
        count = max(damaged)
        return Verdict("diverged", keep, f"{other} is damaged in {_places(count)}, {keep} is intact there")
    if not any(only):
        if changed:
            return Verdict("diverged", "both", f"{_messages(changed)} with other bytes at the same place")
        return Verdict("diverged", "both", f"both have the same messages, {moved:,} of them at other offsets")
    if not all(only):
        keep, other = ("a", "b") if only[0] else ("b", "a")
        return Verdict("diverged", keep, f"{_messages(max(only))} only in {keep}, none only in {other}")
    times = [one.last_timestamp or 0 for one in found]
    by = times if times[0] != times[1] else list(only)
    keep, other = ("a", "b") if by[0] >= by[1] else ("b", "a")
    what = "was written to last" if times[0] != times[1] else "has more messages that the other lacks"
    lost = only[other == "b"]
    why = f"{keep} {what}; {_messages(lost)} only in {other}: --export-only-in {other} keeps them"
    return Verdict("diverged", keep, why)


def _messages(count: int) -> str:
    return f"{count:,} {'message' if count == 1 else 'messages'}"


def _places(count: int) -> str:
    return f"{count:,} {'place' if count == 1 else 'places'}"
