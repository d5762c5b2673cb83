"""What is worth telling about records that a start reads, noted while they pass by."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from formats.commitlog import SysFlag
from formats.system_topics import HALF_TOPIC
from rmqtool.broker.columns import of_topic, properties_match
from rmqtool.scan.bodies import BodyError, decompress
from rmqtool.scan.fields import CrcState, Field, Issue
from rmqtool.scan.torn import torn_properties

if TYPE_CHECKING:
    import numpy.typing as npt

    from rmqtool.scan.events import Records
    from rmqtool.scan.kernel_types import Kernels

    Flags = npt.NDArray[np.bool_]
    Offsets = npt.NDArray[np.int64]

_REAL_TOPIC = r"(?:^|\x02)REAL_TOPIC\x01"


@dataclass
class Counted:
    """How many records show something, and the physical offset of the first of them."""

    count: int = 0
    first: int | None = None
    bytes: int = 0
    bases: set[int] = field(default_factory=set)
    """first offsets of the files in which they lie"""

    def add(self, offsets: npt.NDArray[np.int64], length: int = 0, base: int | None = None) -> None:
        """More of them, by the offset where each lies; `length` of all together, `base` of their file."""
        if len(offsets):
            low = int(offsets.min())
            self.first = low if self.first is None else min(self.first, low)
            self.count += len(offsets)
            self.bytes += length
            if base is not None:
                self.bases.add(base)

    def plus(self, other: Counted) -> Counted:
        """Both together."""
        firsts = [one for one in (self.first, other.first) if one is not None]
        return Counted(
            self.count + other.count,
            min(firsts, default=None),
            self.bytes + other.bytes,
            self.bases | other.bases,
        )


@dataclass
class Witness:
    """Fed with the runs that recovery reads and with those of the files in front.

    broken: records whose body does not match its CRC. displaced: records that state another physical offset
    than where they lie. torn: those with a zero byte in the topic, a topic that is not UTF-8, or
    torn properties, which no release notices: it has a queue for what Java makes of such a topic.
    harmed: records with one of these three. poison: half messages that cannot be checked, because their body
    does not decompress or their real topic is gone. latest: youngest store time, ms.
    """

    kernels: Kernels
    broken: Counted = field(default_factory=Counted)
    harmed: Counted = field(default_factory=Counted)
    displaced: Counted = field(default_factory=Counted)
    torn: Counted = field(default_factory=Counted)
    poison: Counted = field(default_factory=Counted)
    latest: int | None = None
    unnamed: list[Offsets] = field(default_factory=list)
    """where records lie whose topic has a zero byte or is not UTF-8: no entry of a queue matches them"""

    def take(self, run: Records, base: int) -> None:
        """A run of records whose topics and properties were looked at; `base` of their file."""
        rows = run.rows
        if not len(rows):
            return
        places = rows[:, Field.POSITION] + base
        broken = rows[:, Field.CRC_STATE] == CrcState.BAD
        displaced = rows[:, Field.STORED_PHYSICAL_OFFSET] != places
        unnamed = (rows[:, Field.ISSUES] & int(Issue.TOPIC_NUL | Issue.TOPIC_UTF8)) != 0
        if unnamed.any():
            self.unnamed.append(places[unnamed])
        torn = unnamed | torn_properties(run)
        harmed = broken | displaced | torn
        if harmed.any():
            self.broken.add(places[broken])
            self.displaced.add(places[displaced])
            self.torn.add(places[torn])
            self.harmed.add(places[harmed], int(rows[harmed, Field.STORE_SIZE].sum()), base)
        self.poison.add(places[_poison(run, self.kernels)])
        self._note_time(int(rows[:, Field.STORE_TIMESTAMP].max()))

    def add(self, other: Witness) -> None:
        """What was noted about other records too."""
        self.broken = self.broken.plus(other.broken)
        self.harmed = self.harmed.plus(other.harmed)
        self.displaced = self.displaced.plus(other.displaced)
        self.torn = self.torn.plus(other.torn)
        self.poison = self.poison.plus(other.poison)
        self.unnamed += other.unnamed
        if other.latest is not None:
            self._note_time(other.latest)

    def _note_time(self, youngest: int) -> None:
        self.latest = youngest if self.latest is None else max(self.latest, youngest)


def _poison(run: Records, kernels: Kernels) -> Flags:
    """Half messages on which `TransactionalMessageServiceImpl#check` gets stuck."""
    half = of_topic(run, HALF_TOPIC)
    if not half.any():
        return half
    found: Flags = half & ~properties_match(run, kernels, half, _REAL_TOPIC)
    compressed = (run.rows[:, Field.SYS_FLAG] & int(SysFlag.COMPRESSED)) != 0
    for index in np.flatnonzero(half & compressed & ~found).tolist():
        row = run.rows[index]
        start = int(row[Field.BODY_POSITION]) - run.origin
        body = run.window[start : start + max(int(row[Field.BODY_LENGTH]), 0)].tobytes()
        try:
            decompress(body, int(row[Field.SYS_FLAG]))
        except BodyError:
            found[index] = True
    return found
