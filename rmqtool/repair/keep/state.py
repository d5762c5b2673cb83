"""Checkpoint and abort file after a repair: so that the next start is a normal, clean one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from formats.checkpoint import CHECKPOINT_SIZE, Checkpoint, parse_checkpoint
from rmqtool.errors import RmqtoolError
from rmqtool.repair.content import Inline
from rmqtool.repair.keep.away import directory_away
from rmqtool.repair.keep.rocksdb import has_rocksdb_queues
from rmqtool.repair.plan import Action, Change, Edit
from rmqtool.store.whole import read_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from formats.primitives import Container
    from rmqtool.repair.keep.repaired_log import RepairedLog
    from rmqtool.store.layout import Store


_MARKERS = ("abort", "checkpoint")


@dataclass(frozen=True, slots=True)
class LogFacts:
    """What the repaired log says; times are store times in ms.

    last_start: physical offset of the last record. full_index_timestamp: end time of the last full index
    file, 0 without one.
    """

    highest_timestamp: int
    last_timestamp: int
    last_start: int
    end: int
    full_index_timestamp: int

    @classmethod
    def of(cls, log: RepairedLog, full_index_timestamp: int) -> LogFacts:
        """Those of a repaired log."""
        survey = log.survey
        return cls(
            survey.highest_timestamp, survey.last_timestamp, survey.last_start, log.end, full_index_timestamp
        )


def state_edits(store: Store, log: LogFacts, *, changed: bool) -> Iterator[Edit]:
    """`abort` goes; the checkpoint is set where it cannot be, or where the last stop was not clean.

    changed: whether the plan changes anything else. A checkpoint that is merely old stays, and one that is
    not there: it costs nothing after a clean stop (`DefaultMessageStore#load`).
    """
    if has_rocksdb_queues(store):
        # queues in RocksDB are brought in step by the recovery after an unclean stop, which finds no damage
        yield from _checkpoint(store, log, changed=changed)
        return
    unclean = False
    for file in store.files:
        if file.path == "abort":
            unclean = True
            yield Edit(
                Change(
                    action=Action.REMOVE,
                    path="abort",
                    why="abort",
                    message="the repaired store counts as cleanly stopped",
                )
            )
    for one in store.directories:
        if one.path in _MARKERS:
            unclean |= one.path == "abort"
            message = f"a directory in the place of the {one.path} file"
            yield from directory_away(store, one.path, one.path, message)
    yield from _checkpoint(store, log, changed=changed or unclean)


def _checkpoint(store: Store, log: LogFacts, *, changed: bool) -> Iterator[Edit]:
    if any(one.path == "checkpoint" for one in store.directories):
        return  # its place becomes free; brokers make a new one
    file = store.file("checkpoint")
    held = None
    if file is not None:
        try:
            held = parse_checkpoint(read_whole(file))
        except RmqtoolError:
            held = None
    whole = file is not None and file.size == CHECKPOINT_SIZE and held is not None
    if whole and held is not None and not (changed and _behind(held, log)) and _possible(held, log):
        return
    if file is None and not changed:
        return  # brokers make a new one
    made = Checkpoint.build(
        {
            "physic_msg_timestamp": log.last_timestamp,
            "logics_msg_timestamp": log.last_timestamp,
            "index_msg_timestamp": log.full_index_timestamp,
            "master_flushed_offset": held.master_flushed_offset if held is not None and whole else 0,
            "confirm_physical_offset": _confirm(held, log),
        }
    )
    if whole and held is not None and file is not None and read_whole(file) == made:
        return
    yield Edit(
        Change(
            action=Action.PUT,
            path="checkpoint",
            length=CHECKPOINT_SIZE,
            size=CHECKPOINT_SIZE,
            why="checkpoint",
            message=f"set by the log: its last record was stored at {log.last_timestamp}",
            facts={
                "physic_msg_timestamp": log.last_timestamp,
                "logics_msg_timestamp": log.last_timestamp,
                "index_msg_timestamp": log.full_index_timestamp,
            },
        ),
        Inline(made),
    )


def _behind(held: Container, log: LogFacts) -> bool:
    """After an unclean stop: the times are not those that a clean one would have written."""
    times = (held.physic_msg_timestamp, held.logics_msg_timestamp, held.index_msg_timestamp)
    return times != (log.last_timestamp, log.last_timestamp, log.full_index_timestamp)


def _possible(held: Container, log: LogFacts) -> bool:
    times = (held.physic_msg_timestamp, held.logics_msg_timestamp, held.index_msg_timestamp)
    in_time = all(0 <= one <= log.highest_timestamp for one in times) or not log.highest_timestamp
    return in_time and 0 <= held.confirm_physical_offset <= log.end


def _confirm(held: Container | None, log: LogFacts) -> int:
    """Start of the last record, as recovery sets it in 5.x; 0 stays 0, as 4.x never writes it."""
    if held is None or not held.confirm_physical_offset:
        return 0
    if 0 < held.confirm_physical_offset <= log.end:
        return int(held.confirm_physical_offset)
    return log.last_start
