"""What `verify` says about a result, in one pass over its log that others may watch."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rmqtool.check.account import Accounting, RunSummary
from rmqtool.check.findings import Severity
from rmqtool.check.levels import Level
from rmqtool.check.log_reading import accounted_log
from rmqtool.check.verify import Verification
from rmqtool.scan.multi import LMQ_PREFIX
from rmqtool.scan.options import ReadOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    import numpy as np
    import numpy.typing as npt

    from rmqtool.check.findings import Finding
    from rmqtool.check.verify import LogEvent
    from rmqtool.scan.kernel_types import Kernels
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store
    from rmqtool.store.segments import Segment, SegmentSet

    See = Callable[[Segment, npt.NDArray[np.int64] | None], object]

VERIFIED = "the result was verified: it has no error that the store does not have"
_MOST = 10_000
"""errors that are held against those of the source one by one; of more the codes are counted"""


@dataclass
class Errors:
    """What a verification calls an error. listed: by what it is about; by_code: how many of each.

    damaged: bytes of queues, by directory, that are not as brokers write them. Units of a light queue in
    front of the place that their records state are: 5.x gives such offsets to records without a unit
    (`LmqDispatch#updateLmqOffsets`). moved: as `moved_files`, whose errors are those of the source's file.
    skipping: queues whose records skip queue offsets; units of theirs that lie so are in `appended`.
    """

    moved: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    skipping: Collection[tuple[str, int]] = ()
    listed: dict[tuple[object, ...], tuple[str | None, str]] = field(default_factory=dict)
    by_code: dict[str, int] = field(default_factory=dict)
    appended: dict[tuple[object, ...], str] = field(default_factory=dict)
    damaged: dict[str, list[tuple[int, int]]] = field(default_factory=dict)

    def add(self, one: Finding) -> None:
        """Takes one finding of any severity."""
        in_front = _lies_in_front(one)
        if one.severity is Severity.NOTE or (in_front and (one.topic or "").startswith(LMQ_PREFIX)):
            return
        path, by = self.moved.get(one.path or "", (one.path, 0))
        offset = None if one.physical_offset is None else one.physical_offset - by
        about = one.code, path, one.position, offset, one.part, one.queue_id
        words = f"{one.path or '.'}: {one.message} ({one.code})"
        if in_front and (one.topic, one.queue_id) in self.skipping:
            self.appended[about] = words
            return
        directory, _, name = (one.path or "").rpartition("/")
        if name.isdecimal():  # what was found may go on in the next file
            start = int(name) + (one.position or 0)
            self.damaged.setdefault(directory, []).append((start, start + max(one.length or 0, 1)))
        if one.severity is not Severity.ERROR:
            return
        self.by_code[one.code] = self.by_code.get(one.code, 0) + 1
        if len(self.listed) < _MOST:
            self.listed[about] = one.path, words

    def has_damage_in(self, file: StoreFile) -> bool:
        """Whether something was found in a queue file."""
        begin = file.base_offset or 0
        found = self.damaged.get(file.display_path.rpartition("/")[0], ())
        return any(start < begin + file.size and begin < end for start, end in found)

    def beyond(self, before: Errors) -> list[tuple[str | None, str]]:
        """Those that a store before did not have: path and words."""
        more = {code for code, count in self.by_code.items() if count > before.by_code.get(code, 0)}
        full = len(before.listed) >= _MOST
        return [
            reported
            for about, reported in self.listed.items()
            if about not in before.listed and (about[0] in more or not full)
        ]


def _lies_in_front(one: Finding) -> bool:
    """Whether units lie in front of the places that their records state."""
    there = isinstance(one.found, int) and isinstance(one.expected, int)
    return there and one.code == "CQ-SHIFT" and one.found < one.expected


def errors_of(
    store: Store,
    reading: ReadOptions,
    kernels: Kernels,
    see: See | None = None,
    moved: Mapping[str, tuple[str, int]] | None = None,
    skipping: Collection[tuple[str, int]] = (),
) -> Errors:
    """All that `verify` finds wrong in a store at rest. see: called with each record of its log, in order."""
    found = Errors(moved or {}, skipping)
    for one in findings_of(store, reading, kernels, see):
        found.add(one)
    return found


def bytes_to_verify(store: Store) -> int:
    """What `findings_of` reads to its end."""
    return Verification(store, ReadOptions()).bytes_to_read


def findings_of(
    store: Store, reading: ReadOptions, kernels: Kernels, see: See | None = None
) -> Iterator[Finding]:
    """As `errors_of`, one finding after the other."""
    store = replace(store, at_rest=True)
    reading = replace(reading, live=False)

    def watched(segments: SegmentSet) -> Iterator[LogEvent]:
        account = replace(Accounting.of(store, kernels, Level.DEFAULT), starts=see is not None)
        for segment, event in accounted_log(segments, reading, kernels, account).events():
            if see is not None:
                see(segment, event.starts if isinstance(event, RunSummary) else None)
            yield segment, event

    yield from Verification(store, reading, external_reader=watched).findings()
