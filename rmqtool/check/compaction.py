"""Logs of topics with `cleanup.policy=COMPACTION`: their records, and the units that lead to them.

What has expired in the commit log lies here only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from rmqtool.broker.compaction import compaction_units
from rmqtool.check.findings import finding
from rmqtool.errors import RmqtoolError
from rmqtool.scan.events import Gap, Records
from rmqtool.scan.fields import TORN, CrcState, Field
from rmqtool.scan.opened import scanned
from rmqtool.store.kinds import FileKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import numpy.typing as npt

    from rmqtool.check.findings import Finding
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store

    Rows = npt.NDArray[np.int64]

_PLACE = [Field.POSITION, Field.STORE_SIZE, Field.QUEUE_OFFSET]
_WRONG = {"bad-crc": 1, "torn": 2, "of another queue": 4}
"""what a record may be while its unit leads to it, as bits"""


def compaction_files(store: Store, *kinds: FileKind) -> list[StoreFile]:
    """Files that a broker loads: not those that it is at making or deleting."""
    return [one for one in store.of_kind(*kinds) if one.note is None and one.size]


def check_compaction(store: Store, options: ReadOptions, *, unclean: bool) -> Iterator[Finding]:
    """Findings about all compaction logs. unclean: a start puts behind the last unit what is missing."""
    logs = {_key(one): one for one in compaction_files(store, FileKind.COMPACTION_LOG)}
    queues = {_key(one): one for one in compaction_files(store, FileKind.COMPACTION_CQ)}
    for key in sorted(logs.keys() ^ queues.keys()):
        one = logs.get(key) or queues[key]
        yield finding("CMP-PAIR", path=one.display_path, topic=one.topic, queue_id=one.queue_id)
    last = {key[:2]: key for key in sorted(logs)}
    for key in sorted(logs.keys() & queues.keys()):
        try:
            yield from _file(logs[key], queues[key], options, unclean and last[key[:2]] == key)
        except RmqtoolError as error:
            yield finding("DIR-UNREADABLE", path=logs[key].display_path, found=str(error))
        options.done(logs[key].size + queues[key].size)


def damage_in(found: Iterable[Finding]) -> list[Finding]:
    """What is wrong in the files themselves; over one without its other one a start is refused."""
    return [one for one in found if one.code != "CMP-PAIR"]


def messages_of(found: Iterable[Finding]) -> int:
    """How many messages cannot be served."""
    return sum(int(one.found or 0) for one in found if one.code.startswith("CMP-"))


def _key(file: StoreFile) -> tuple[str, int, int]:
    return file.topic or "", file.queue_id or 0, file.base_offset or 0


def _file(file: StoreFile, queue: StoreFile, options: ReadOptions, unclean: bool) -> Iterator[Finding]:
    base = file.base_offset or 0
    units = compaction_units(queue)
    records, gaps = _read(file, base, options)
    facts: dict[str, Any] = {"topic": file.topic, "queue_id": file.queue_id}
    place: dict[str, Any]
    for part, flags in _WRONG.items():
        rows = records[records[:, -1] & flags != 0]
        if len(rows):
            place = dict(zip(("position", "length", "queue_offset"), rows[0].tolist(), strict=False))
            yield finding("CMP-RECORD", path=file.display_path, **place, **facts, part=part, found=len(rows))
    at = units["physical_offset"].astype(np.int64) - base
    index = np.minimum(np.searchsorted(records[:, 0], at), len(records) - 1)
    right = np.zeros(len(units), bool)
    if len(records):
        right = (records[index, 0] == at) & (records[index, 1] == units["size"])
        right &= records[index, 2] == units["base_offset"]
    number = _gap_of(at, gaps)
    number[right] = -1
    for gap, count in zip(gaps, np.bincount(number + 1, minlength=len(gaps) + 1)[1:].tolist(), strict=True):
        place = {"position": gap.position, "length": gap.length}
        place |= {"part": gap.reason.name.lower(), "found": count}
        yield finding("CMP-GAP", path=file.display_path, **place, **facts)
    wrong = units[~right & (number < 0)]
    if len(wrong):
        first = int(wrong["base_offset"][0])
        yield finding("CMP-UNIT", path=queue.display_path, **facts, queue_offset=first, found=len(wrong))
    served = np.zeros(len(records), bool)
    served[index[right]] = True
    if unclean:
        served |= records[:, 0] > (at[-1] if len(at) else -1)
    if not served.all():
        first = int(np.argmin(served))
        place = {"position": int(records[first, 0]), "queue_offset": int(records[first, 2])}
        count = int((~served).sum())
        yield finding("CMP-UNSERVED", path=file.display_path, **place, **facts, found=count)


def _gap_of(at: npt.NDArray[np.int64], gaps: list[Gap]) -> npt.NDArray[np.int64]:
    """The number of the gap in which each position lies, -1 for none."""
    starts = np.array([one.position for one in gaps], np.int64)
    ends = np.array([one.position + one.length for one in gaps], np.int64)
    number = np.searchsorted(starts, at, "right") - 1
    number[at >= np.append(ends, 0)[number]] = -1
    return number


def _read(file: StoreFile, base: int, options: ReadOptions) -> tuple[Rows, list[Gap]]:
    """Position, size, queue offset and `_WRONG` of every record, and what lies between them that is none.

    Compaction leaves its last file as it is, so that any may end in zeros: what is missing there units tell.
    """
    rows, gaps = [np.zeros((0, len(_PLACE) + 1), np.int64)], []
    with scanned(file, base, options, active=True) as (_, scan):
        for event in scan:
            if isinstance(event, Records):
                rows.append(np.column_stack((event.rows[:, _PLACE], _wrong(event, file))))
            elif isinstance(event, Gap):
                gaps.append(event)
    return np.concatenate(rows), gaps


def _wrong(run: Records, file: StoreFile) -> npt.NDArray[np.int64]:
    rows, topic = run.rows, np.frombuffer((file.topic or "").encode("utf-8", "surrogateescape"), np.uint8)
    bad = rows[:, Field.CRC_STATE] == CrcState.BAD
    torn = ~bad & (rows[:, Field.ISSUES] & int(TORN) != 0)
    other = (rows[:, Field.QUEUE_ID] != file.queue_id) | (rows[:, Field.TOPIC_LENGTH] != len(topic))
    named = np.flatnonzero(~other)
    places = rows[named, Field.TOPIC_POSITION] - run.origin
    other[named] = (run.window[places[:, None] + np.arange(len(topic))] != topic).any(axis=1)
    found: npt.NDArray[np.int64] = bad * 1 + torn * 2 + (other & ~bad & ~torn) * 4
    return found
