"""A whole salvage: files in, one new store out, or one for each broker that they come from."""

from __future__ import annotations

import os
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rmqtool.errors import StoreIOError, UsageError
from rmqtool.repair.salvage.carve import Carver
from rmqtool.repair.salvage.files import Files
from rmqtool.repair.salvage.hosts import attributed
from rmqtool.repair.salvage.moved import WORDS, Moved, Why
from rmqtool.repair.salvage.segments import SegmentSize, infer
from rmqtool.repair.salvage.store import lay_out, write_store
from rmqtool.repair.salvage.tables import Found, Run, empty, taken
from rmqtool.repair.salvage.tabulate import Names
from rmqtool.scan.text import format_host
from rmqtool.store.coverage import unreadable
from rmqtool.store.kinds import SALVAGE_REPORT
from rmqtool.store.writing import Folder, way_to

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from types import TracebackType

    import numpy.typing as npt

    from rmqtool.repair.salvage.sources import Sources
    from rmqtool.repair.salvage.store import Laid
    from rmqtool.repair.salvage.write import Written
    from rmqtool.store.access import OpenMode
    from rmqtool.store.config import StoreConfig

    Ints = npt.NDArray[np.int64]

Stores = Literal["auto", "one", "by-host"]

REPORT = SALVAGE_REPORT
"""a directory with it is what a salvage made or is making, and may be replaced by one"""

_FOREIGN = 0.5
"""share of a host's records without room at their place that speaks for a store of its own"""
_MOST, REMAINING = 64, "remaining-hosts"
"""stores that are made, and the directory of the last where there are more hosts"""
_IN_NAMES = str.maketrans({":": "_", "[": None, "]": None})


@dataclass(frozen=True)
class SalvageOptions:
    """How to salvage. release: whose files the new store gets; it and segment_size: None to infer it.

    config: sizes and switches of the new store.
    """

    release: str | None = None
    stores: Stores = "auto"
    segment_size: int | None = None
    config: StoreConfig | None = None
    jobs: int = 1
    how: OpenMode = "auto"
    advance: Callable[[int], object] | None = None


@dataclass
class Outcome:
    """One store that was written. name: directory inside of the output, empty for the output itself."""

    name: str
    hosts: list[str]
    segment_size: SegmentSize
    laid: Laid
    written: Written
    other_hosts: int = 0
    """records that state none of `hosts`"""


@dataclass
class Salvaged:
    """All that a salvage has to tell."""

    sources: Sources
    names: Names = field(default_factory=Names)
    found: Found = field(default_factory=empty)
    attributed: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """records that state another store host than the log in which they lie, by the host of that log"""
    outcomes: list[Outcome] = field(default_factory=list)

    @property
    def records(self) -> int:
        """Valid records found, copies included."""
        return int(self.found.runs[:, Run.COUNT].sum())

    def by_source(self, kind: Literal["found", "duplicates", "moved", "unplaced"]) -> Ints:
        """A number for each source."""
        counts = np.zeros(len(self.sources.files), np.int64)
        if kind == "found":
            np.add.at(counts, self.found.runs[:, Run.SOURCE], self.found.runs[:, Run.COUNT])
        for one in self.outcomes:
            refused = np.array(one.written.refused, np.int64).reshape(-1, len(Moved))
            if kind == "duplicates":
                counts += one.laid.duplicates
            elif kind == "moved":
                np.add.at(counts, one.laid.moved[:, Moved.SOURCE], 1)
                np.subtract.at(counts, refused[:, Moved.SOURCE], 1)
            elif kind == "unplaced":
                np.add.at(counts, refused[:, Moved.SOURCE], 1)
        return counts

    def reasons(self) -> dict[str, int]:
        """How many records moved, by reason."""
        reported: dict[str, int] = {}
        for one in self.outcomes:
            values, counts = np.unique(one.laid.moved[:, Moved.WHY], return_counts=True)
            for why, count in zip(values.tolist(), counts.tolist(), strict=True):
                word = WORDS[Why(why)]
                reported[word] = reported.get(word, 0) + count
        return reported

    def not_covered(self) -> list[dict[str, Any]]:
        """Rows of what could not be read."""
        bad = [
            unreadable(file.path, one.reason, one.start, one.length)
            for file in self.sources.files
            for one in file.bad
        ]
        return [*self.sources.not_covered, *bad]


def carve(sources: Sources, options: SalvageOptions) -> Salvaged:
    """Finds every valid record; nothing is written."""
    reported = Salvaged(sources)
    search(reported, options)
    return reported


def search(reported: Salvaged, options: SalvageOptions) -> None:
    """Fills `reported.found` and `attributed`."""
    files = reported.sources.files
    carver = Carver(files, reported.names, jobs=options.jobs, how=options.how, advance=options.advance)
    reported.found, reported.attributed = attributed(carver.run(), reported.names.hosts)


def write(salvaged: Salvaged, output: str, options: SalvageOptions) -> None:
    """Makes the store or stores in the empty directory `output`."""
    with Files(salvaged.sources.files, salvaged.names, options.how) as files:
        for name, hosts, size, laid in _split(salvaged, files, options):
            root = os.path.join(output, name) if name else output
            if name:
                os.mkdir(root)
            written = write_store(
                laid, files, root, release=options.release, config=options.config, jobs=options.jobs
            )
            shown = [format_host(salvaged.names.hosts[host]) for host in hosts]
            others = int(salvaged.attributed[hosts].sum())
            salvaged.outcomes.append(Outcome(name, shown, size, laid, written, others))


def _split(
    salvaged: Salvaged, files: Files, options: SalvageOptions
) -> list[tuple[str, list[int], SegmentSize, Laid]]:
    """(directory, hosts, size of segments, layout) of each store."""
    hosts, counts = _by_host(salvaged.found.runs[:, Run.HOST], salvaged.found.runs[:, Run.COUNT])
    if options.stores != "by-host" or len(hosts) == 1:
        size, laid = _lay_out(salvaged.found, files, options)
        mixed = options.stores == "auto" and _is_mixture(salvaged.found, laid)
        if not mixed:
            return [("", hosts, size, laid)]
    parts = []
    for name, some in _divided(hosts, counts, salvaged.names.hosts):
        own = taken(salvaged.found, np.flatnonzero(np.isin(salvaged.found.runs[:, Run.HOST], some)))
        parts.append((name, some, *_lay_out(own, files, options)))
    return parts


def _divided(hosts: list[int], counts: list[int], addresses: Sequence[bytes]) -> list[tuple[str, list[int]]]:
    """Directories and hosts of stores; the hosts with the fewest records share the last one.

    Anybody can write records of any number of hosts, and each store takes room for its files.
    """
    most = sorted(hosts, key=dict(zip(hosts, counts, strict=True)).__getitem__, reverse=True)
    alone = sorted(most[: _MOST if len(most) <= _MOST else _MOST - 1])
    names = [format_host(addresses[host]).translate(_IN_NAMES) for host in alone]
    rest = sorted(most[len(alone) :])
    return [*zip(names, ([one] for one in alone), strict=True), *([(REMAINING, rest)] if rest else [])]


def _lay_out(found: Found, files: Files, options: SalvageOptions) -> tuple[SegmentSize, Laid]:
    if options.segment_size is not None:
        size = SegmentSize(options.segment_size, "given")
    else:
        size = infer(found, files.sources)
    return size, lay_out(found, files, size.size)


def _is_mixture(found: Found, laid: Laid) -> bool:
    """Whether most of what one host stored has no room beside what others did."""
    hosts, counts = _by_host(found.runs[:, Run.HOST], found.runs[:, Run.COUNT])
    if len(hosts) < 2:
        return False
    gone = laid.moved[~np.isin(laid.moved[:, Moved.WHY], [Why.HEADERS, Why.BORDER, Why.NARROW])]
    homeless = dict(zip(*_by_host(gone[:, Moved.HOST], np.ones(len(gone), np.int64)), strict=True))
    return any(homeless.get(host, 0) > _FOREIGN * count for host, count in zip(hosts, counts, strict=True))


def _by_host(hosts: Ints, counts: Ints) -> tuple[list[int], list[int]]:
    distinct, inverse = np.unique(hosts, return_inverse=True)
    sums = np.zeros(len(distinct), np.int64)
    np.add.at(sums, inverse, counts)
    return distinct.tolist(), sums.tolist()


class Target:
    """The output directory: filled beside its place, and put there once it is whole.

    Used as a context manager that gives a path into the directory to fill, which is held and this user's
    alone; what is not whole goes.
    """

    def __init__(self, path: str, *, force: bool) -> None:
        self.path = os.path.abspath(path)
        self._part = f"{self.path}.rmqtool-part"
        self._force = force
        self._stack = ExitStack()

    def check(self) -> None:
        """Raises `UsageError` when something lies there that may not be replaced, or another user's link."""
        if os.path.lexists(self._part) and not self._force:
            raise UsageError(
                f"{self._part} is left of an interrupted salvage, or one is running; see --force"
            )
        parent = os.path.dirname(self.path)
        if not os.path.isdir(parent):
            raise UsageError(f"--output: {parent} is not a directory")
        with way_to(parent, "--output")[0] as folder:
            self._check_existing(folder)

    def _check_existing(self, folder: Folder) -> None:
        found = os.path.join(folder.here, os.path.basename(self.path))
        if not os.path.lexists(found):
            return
        if not os.path.isdir(found) or os.path.islink(found):
            raise UsageError(f"--output: {self.path} is not a directory")
        if not os.listdir(found):
            return
        if not self._force:
            raise UsageError(f"--output: {self.path} is not empty; --force replaces what a salvage made")
        if not os.path.isfile(os.path.join(found, REPORT)):
            raise UsageError(f"--output: {self.path} was not made by a salvage; nothing replaces it")

    def __enter__(self) -> str:
        self.check()
        try:
            folder, _ = way_to(os.path.dirname(self.path), "--output")
            self._folder = self._stack.enter_context(folder)
            self._folder.remove_made(os.path.basename(self._part), REPORT)
            self._made = self._stack.enter_context(self._folder.make(os.path.basename(self._part)))
            try:
                self._made.write(REPORT, b"")
            except OSError:
                self._folder.remove_held(os.path.basename(self._part), self._made)
                raise
        except FileExistsError:
            self._stack.close()
            raise UsageError(f"{self._part} was not made by a salvage; nothing replaces it") from None
        except OSError as error:
            self._stack.close()
            raise StoreIOError(f"{self._part}: {error.strerror}") from error
        return self._made.here

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        name, part = os.path.basename(self.path), os.path.basename(self._part)
        now = part
        try:
            if error is not None:
                self._folder.remove_held(now, self._made)
                return
            self._check_existing(self._folder)
            self._folder.remove_made(name, REPORT)
            self._made.show()
            self._folder.rename(part, name)
            now = name
            self._folder.sync()
        except OSError as refused:
            with suppress(OSError):
                self._folder.remove_held(now, self._made)
            if error is None:
                raise StoreIOError(f"{self.path}: {refused.strerror}") from refused
        finally:
            self._stack.__exit__(kind, error, trace)
