"""Whose log a record is from, where the store host that it states is damaged.

No CRC covers the store host. A record that lies in a file just where the log around it would have it is of
that log; addresses of brokers may differ in a bit or two themselves, so a host alone says nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rmqtool.repair.salvage.tables import Found, Run, merged

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    Ints = npt.NDArray[np.int64]
    Flags = npt.NDArray[np.bool_]

_FEW = 2
"""bits of a field that damage may have changed"""


def attributed(found: Found, hosts: Sequence[bytes]) -> tuple[Found, Ints]:
    """The runs with the host of the log that they lie in, and records that state another one, by that host.

    hosts: by number. A file's runs at one distance from their physical offsets are of one log, whose host is
    that of most of its records. Of this log are, too:

    * what lies between two of its runs at the place that it states, if it is one record or states nearly its
      host;
    * one record next to it, in the order of the file, at the place that it states and nearly of its host;
    * one record between two of its runs whose host and physical offset are nearly those of the place.
    """
    runs = found.runs
    if len(np.unique(runs[:, Run.HOST])) < 2:
        return found, np.zeros(len(hosts), np.int64)
    shift = runs[:, Run.OFFSET] - runs[:, Run.POSITION]
    log, main = _logs(runs, shift)
    lone = runs[:, Run.COUNT] == 1
    before, behind = _nearest(main)
    file, rows = runs[:, Run.SOURCE], _wide(hosts)
    between = (before >= 0) & (behind >= 0) & (log[before] == log[behind])
    belongs = runs[:, Run.HOST].copy()
    for near in (behind, before):
        near_host = _bits(rows[runs[:, Run.HOST]], rows[runs[near, Run.HOST]]) <= _FEW
        place = runs[:, Run.POSITION] + shift[near]
        exact = runs[:, Run.OFFSET] == place
        near_place = _bits(_raw(runs[:, Run.OFFSET]), _raw(place)) <= _FEW
        own = exact & (between & lone | near_host & (between | lone))
        own |= between & lone & near_host & near_place
        chosen = ~main & (near >= 0) & (file == file[near]) & own
        belongs[chosen] = runs[near[chosen], Run.HOST]
    counts = np.zeros(len(hosts), np.int64)
    other = belongs != runs[:, Run.HOST]
    np.add.at(counts, belongs[other], runs[other, Run.COUNT])
    runs = runs.copy()
    runs[:, Run.HOST] = belongs
    return merged(Found(runs, found.pieces)), counts


def _logs(runs: Ints, shift: Ints) -> tuple[Ints, Flags]:
    """A number of each run's log, and which runs state the host of theirs: two records of it or more do."""
    _, log = np.unique(np.stack((runs[:, Run.SOURCE], shift), axis=1), axis=0, return_inverse=True)
    log = log.reshape(-1)
    claims, claim = np.unique(np.stack((log, runs[:, Run.HOST]), axis=1), axis=0, return_inverse=True)
    claim = claim.reshape(-1)
    counts = np.zeros(len(claims), np.int64)
    np.add.at(counts, claim, runs[:, Run.COUNT])
    everywhere = np.zeros(runs[:, Run.HOST].max() + 1, np.int64)
    np.add.at(everywhere, runs[:, Run.HOST], runs[:, Run.COUNT])
    order = np.lexsort((everywhere[claims[:, 1]], counts, claims[:, 0]))
    best = order[np.append(claims[order[1:], 0] != claims[order[:-1], 0], True)]
    wins = np.zeros(len(claims), np.bool_)
    wins[best] = counts[best] > 1
    return log, wins[claim]


def _nearest(main: Flags) -> tuple[Ints, Ints]:
    """Numbers of the runs before and behind each one that state the host of their log, -1 without one."""
    numbers = np.arange(len(main))
    before = np.maximum.accumulate(np.where(main, numbers, -1))
    behind = np.minimum.accumulate(np.where(main, numbers, len(main))[::-1])[::-1]
    return before, np.where(behind == len(main), -1, behind)


def _wide(hosts: Sequence[bytes]) -> npt.NDArray[np.uint8]:
    """A row for each; its last byte stands for the width, so that two widths differ in many bits."""
    rows = [host.ljust(20, b"\0") + (b"\0" if len(host) == 8 else b"\xff") for host in hosts]
    return np.frombuffer(b"".join(rows), np.uint8).reshape(-1, 21)


def _raw(numbers: Ints) -> npt.NDArray[np.uint8]:
    return np.ascontiguousarray(numbers).view(np.uint8).reshape(-1, 8)


def _bits(one: npt.NDArray[np.uint8], other: npt.NDArray[np.uint8]) -> Ints:
    """In how many bits the rows differ."""
    differ: Ints = np.unpackbits(one ^ other, axis=1).sum(axis=1, dtype=np.int64)
    return differ
