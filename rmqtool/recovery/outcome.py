"""The outcome of a broker start as data; names and meaning are those of the JSON that `doctor` prints."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from rmqtool.check.catalogue import Severity
from rmqtool.recovery.existing import ExistingDamage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rmqtool.broker.load import Refusal
    from rmqtool.broker.record_check import StopReason
    from rmqtool.broker.start import Mode
    from rmqtool.recovery.config_tables import ConfigOutcome
    from rmqtool.recovery.consequences.consequence import Consequence
    from rmqtool.recovery.loss import Loss
    from rmqtool.recovery.spans import Lag
    from rmqtool.store.lock import LockState


class Verdict(StrEnum):
    """Whether a store is safe to start."""

    SAFE = "safe"
    DAMAGED = "damaged"
    """the start destroys nothing more, but something is damaged or unreadable already"""
    UNSAFE = "unsafe"
    UNCERTAIN = "uncertain"

    @property
    def safe(self) -> bool | None:
        """`safe_to_start` of the contract."""
        return {Verdict.UNSAFE: False, Verdict.UNCERTAIN: None}.get(self, True)


def verdict_of_all(verdicts: Iterable[Verdict]) -> Verdict:
    """The worst of them; what is not certain for one release is not certain."""
    order = (Verdict.SAFE, Verdict.DAMAGED, Verdict.UNCERTAIN, Verdict.UNSAFE)
    return max(verdicts, key=order.index, default=Verdict.UNCERTAIN)


@dataclass(frozen=True, slots=True)
class QueueOutcome:
    """A queue after dispatch has caught up, offsets in messages; max is the next to be given.

    loaded_max: max directly after the load. misplaced: units that were put at another slot than that of
    their message. lost: units that were there and are taken away; later: those of them that go with the next
    start.
    repeated: offsets that the next messages get although messages in the log have them; repeated_to: the one
    behind the highest of these. hidden: offsets of messages in the log that lie before the queue's beginning,
    or whose unit is zero, blank or in a file that is not there; hidden_from: the lowest. doubled: messages
    that get no unit as another has their slot.
    """

    topic: str
    queue_id: int
    min_offset: int
    max_offset: int
    loaded_max: int
    misplaced: int = 0
    lost: int = 0
    repeated: int = 0
    hidden: int = 0
    hidden_from: int | None = None
    doubled: int = 0
    later: int = 0
    repeated_to: int = 0


@dataclass(frozen=True, slots=True)
class Truncation:
    """A file that stays while what lies behind `position` in it is given up."""

    path: str
    position: int


@dataclass(frozen=True, slots=True)
class TimingDependent:
    """A part of the outcome that the files do not decide. what: stable name."""

    what: str
    message: str


@dataclass(frozen=True)
class Outcome:
    """What happens when a broker of `version` starts on the store.

    starts: the process stays, None when that could not be found out in time. refusal: why not. stop_offset:
    where recovery ends. min and max_physical_offset: of the commit log after the load, -1 and 0 without
    files. deletes: files that recovery removes and does not make again. index_dropped: those of them that are
    index files. confirm_offset: what the checkpoint will say, None where the release writes none. reput_from:
    where dispatching goes on. skipped: ranges that dispatching passes over for good. lags: what queues lack
    of the log before the start, where recovery reads it. not_looked_at: parts of the store that have a say
    and were not modelled or read. unread_by_choice: some of them for want of time, or because they were not
    asked for. consequences: what follows from all that, the worst first.
    version_known: whether the release is one of those that are known here.
    """

    version: str
    mode: Mode
    starts: bool | None
    refusal: Refusal | None = None
    start_segment: int | None = None
    bytes_to_scan: int = 0
    stop_offset: int | None = None
    stop_reason: StopReason | None = None
    min_physical_offset: int = -1
    max_physical_offset: int = 0
    confirm_offset: int | None = None
    reput_from: int | None = None
    skipped: tuple[tuple[int, int], ...] = ()
    dispatched: int = 0
    deletes: tuple[str, ...] = ()
    truncates: tuple[Truncation, ...] = ()
    index_dropped: tuple[str, ...] = ()
    queues: tuple[QueueOutcome, ...] = ()
    config: tuple[ConfigOutcome, ...] = ()
    lock: LockState | None = None
    loss: Loss | None = None
    lags: tuple[Lag, ...] = ()
    assumed_settings: dict[str, Any] = field(default_factory=dict)
    timing_dependent: tuple[TimingDependent, ...] = ()
    not_looked_at: tuple[str, ...] = ()
    unread_by_choice: bool = False
    consequences: tuple[Consequence, ...] = ()
    already_damaged: ExistingDamage = field(default_factory=ExistingDamage)
    version_known: bool = True

    @property
    def verdict(self) -> Verdict:
        """Unsafe when the start costs something; index items that it drops do not count."""
        if self.starts is False or any(one.severity is Severity.ERROR for one in self.consequences):
            return Verdict.UNSAFE
        if not self.complete or not self.version_known:
            return Verdict.UNCERTAIN
        return Verdict.DAMAGED if self.already_damaged else Verdict.SAFE

    @property
    def safe_to_start(self) -> bool | None:
        """Whether a start costs nothing; None when what was not looked at may still cost something."""
        return self.verdict.safe

    @property
    def complete(self) -> bool:
        """Nothing that has a say was left out."""
        return not self.not_looked_at
