"""What a store counts while it is open: `StoreStatsService`. The writer publishes it, others read it.

Puts are counted by the power of two that bounds their time, which costs nothing to speak of; rates and
percentiles are those of the last seconds.
"""

from __future__ import annotations

import os
import stat
import time
from collections import deque
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import orjson

from rmqtool.broker.disk import room_of
from rmqtool.store.kinds import STATUS_FILE
from rmqtool.store.lock import probe
from rmqtool.store.writing import Folder, Owner, open_regular

if TYPE_CHECKING:
    from collections.abc import Callable

_SPAN = 10
"""seconds that rates and percentiles are of"""
_BUCKETS = 65
_MILLION = 1e6
_now = time.perf_counter_ns
_MOST = 1 << 16
"""bytes of the file that are read"""
_STALE = 10.0
"""seconds behind which what a writer published says nothing of it any more"""
_TRIAL = f".{STATUS_FILE}.tmp"


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds within which a put was done: half of them, 99 of 100, all."""

    p50: float
    p99: float
    max: float


@dataclass(frozen=True, slots=True)
class PutCounters:
    """messages: since the store was opened. per_second, latency_ms: of the last ten seconds.

    latency_ms: by powers of two, the upper bound; of a call with many messages each has its time. None
    without a put.
    """

    messages: int
    per_second: float
    latency_ms: Latency | None


@dataclass(frozen=True, slots=True)
class GetCounters:
    """hit, miss: gets with messages and without (`getMessageTimesTotalFound`, `…Miss`). bytes: of records.

    All but per_second, messages in the last ten seconds, are since the store was opened.
    """

    per_second: float
    hit: int
    miss: int
    messages: int
    bytes: int


@dataclass(frozen=True, slots=True)
class StoreStatistics:
    """What `MessageStore.stats` answers. disk_ratio: used part of the disk, 0 to 1."""

    put: PutCounters
    get: GetCounters
    dispatch_behind_bytes: int
    flush_behind_bytes: int
    disk_ratio: float


class Statistics:
    """Counters of an open store. root: for the room on its disk; behind: bytes not dispatched and flushed."""

    def __init__(self, root: str, behind: Callable[[], tuple[int, int]]) -> None:
        self._root, self._behind = root, behind
        self._times = [0] * _BUCKETS
        self.hits = self.misses = self.messages = self.bytes = 0
        self._samples: deque[tuple[float, list[int], int]] = deque(maxlen=_SPAN + 1)
        self.tick()

    def put(self, count: int, began: int) -> None:
        """So many messages were put with one call, which began at `began`, of `time.perf_counter_ns`."""
        self._times[(_now() - began).bit_length()] += count

    def got(self, messages: int, size: int) -> None:
        """A get was answered with so many messages and bytes."""
        if messages:
            self.hits += 1
            self.messages += messages
            self.bytes += size
        else:
            self.misses += 1

    def tick(self) -> None:
        """Once a second."""
        self._samples.append((time.monotonic(), self._times.copy(), self.messages))

    def now(self) -> StoreStatistics:
        """All counters."""
        began, times, messages = self._samples[0]
        span = max(time.monotonic() - began, 1e-9)
        recent = [one - before for one, before in zip(self._times, times, strict=True)]
        dispatch, flush = self._behind()
        return StoreStatistics(
            PutCounters(sum(self._times), round(sum(recent) / span, 1), _latency(recent)),
            GetCounters(
                round((self.messages - messages) / span, 1),
                self.hits,
                self.misses,
                self.messages,
                self.bytes,
            ),
            dispatch,
            flush,
            disk_ratio(self._root),
        )


def _latency(counts: list[int]) -> Latency | None:
    """From counts by the number of bits of nanoseconds."""
    total = sum(counts)
    if total <= 0:
        return None
    sums = list(accumulate(counts))

    def within(part: float) -> float:
        return (1 << next(bits for bits, count in enumerate(sums) if count >= part * total)) / _MILLION

    return Latency(within(0.5), within(0.99), within(1))


def disk_ratio(root: str) -> float:
    """Used part of the disk that a store lies on, as a broker counts it in per cent."""
    return room_of(root).used_percent / 100


def publish(folder: Folder, found: StoreStatistics) -> None:
    """Counters into a file that brokers pass over; whoever may not read the store may not read it either.

    What the disk refuses is left: a store goes on without.
    """
    reported = {"pid": os.getpid(), "time": int(time.time() * 1000), **asdict(found)}
    with suppress(OSError):
        mode = stat.S_IRUSR | stat.S_IWUSR | os.fstat(folder.descriptor).st_mode & 0o044
        folder.remove(_TRIAL)
        with open(folder.create(_TRIAL, mode), "wb") as file:
            Owner.of(folder.descriptor).give(file.fileno())
            file.write(orjson.dumps(reported))
        folder.rename(_TRIAL, STATUS_FILE)


def withdraw(folder: Folder) -> None:
    """No counters any more."""
    with suppress(OSError):
        folder.remove(_TRIAL)
        folder.remove(STATUS_FILE)


def published(root: str) -> dict[str, Any] | None:
    """What the process that has the store open published last; None without one, or when it does not."""
    state = probe(root)
    if not state.held:
        return None
    try:
        descriptor = open_regular(os.path.join(os.path.realpath(root), STATUS_FILE))
        with open(descriptor, "rb") as file:
            reported = orjson.loads(file.read(_MOST))
    except (OSError, orjson.JSONDecodeError):
        return None
    if not isinstance(reported, dict) or type(reported.get("time")) is not int:
        return None
    if state.pid not in (None, reported.get("pid")) or abs(time.time() - reported["time"] / 1000) > _STALE:
        return None
    return reported
