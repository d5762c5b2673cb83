"""Finding the records of a unique client id: by the index where it answers, else by reading the log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from formats.commitlog import Message
from formats.errors import FormatError
from formats.index import key_hash
from formats.properties import UNIQ_KEY, decode
from formats.tags_code import SCHEDULE_TOPIC
from rmqtool.errors import RmqtoolError
from rmqtool.query.index_lookup import open_index
from rmqtool.query.locate import What, look_at, record_bytes
from rmqtool.query.message_filter import MessageFilter

if TYPE_CHECKING:
    from collections.abc import Callable

    from rmqtool.store.index_geometry import IndexGeometry
    from rmqtool.store.layout import Store

_SYSTEM_TOPICS = (
    SCHEDULE_TOPIC,
    "RMQ_SYS_TRANS_HALF_TOPIC",
    "RMQ_SYS_TRACE_TOPIC",
    "TRANS_CHECK_MAX_TIME_TOPIC",
    "rmq_sys_wheel_timer",
)
"""topics that records may be in although neither queues nor settings name them"""


@dataclass(frozen=True)
class Matches:
    """Physical offsets of records with the id, in order; `source` is `index` or `scan`.

    An answer of the index may lack records that were never indexed. unreadable: what a scan could not read.
    """

    offsets: tuple[int, ...]
    source: str
    unreadable: tuple[dict[str, Any], ...] = ()


@dataclass(frozen=True)
class Reading:
    """How the log is read when the index does not answer; see `scan.log.LogScan`."""

    jobs: int = 1
    safe_io: bool = False
    bytes_per_second: int | None = None
    advance: Callable[[int], object] | None = None


def find_uniq_key(store: Store, uniq_key: str, reading: Reading) -> Matches:
    """Records whose UNIQ_KEY is `uniq_key` as given, in upper or in lower case."""
    forms = frozenset({uniq_key, uniq_key.upper(), uniq_key.lower()})
    indexed = _by_index(store, forms)
    if indexed:
        return Matches(tuple(sorted(indexed)), "index")
    return _by_scan(store, forms, reading)


def _topics(store: Store) -> list[str]:
    named = {queue.topic for kind in ("consumequeue", "batchconsumequeue") for queue in store.queues(kind)}
    return sorted({*(topic for topic in named if topic), *store.topics, *_SYSTEM_TOPICS})


def _by_index(store: Store, forms: frozenset[str]) -> set[int]:
    hashes = {key_hash(topic, form) for topic in _topics(store) for form in forms}
    found: set[int] = set()
    known: dict[int, IndexGeometry] = {}
    for file in store.index_files():
        try:
            with open_index(store, file, known) as reader:
                if reader is not None:
                    found |= {item.physical_offset for one in hashes for item in reader.find(one)}
        except RmqtoolError:
            continue
    return {offset for offset in found if _has_key(store, offset, forms)}


def _has_key(store: Store, physical_offset: int, forms: frozenset[str]) -> bool:
    try:
        place = look_at(store.segments, physical_offset)
        if place.what is not What.RECORD:
            return False
        properties = decode(bytes(Message.parse(record_bytes(place)).properties))
    except (RmqtoolError, FormatError):
        return False
    return properties.get(UNIQ_KEY) in forms


def _by_scan(store: Store, forms: frozenset[str], reading: Reading) -> Matches:
    import pyarrow as pa

    from rmqtool.query.select import Selector
    from rmqtool.scan.engine import choose_kernels
    from rmqtool.scan.events import Unreadable
    from rmqtool.scan.fields import Check
    from rmqtool.scan.log import LogScan, data_bytes, scan_log
    from rmqtool.store.live import is_live

    selector = Selector(MessageFilter(uniq_keys=forms), choose_kernels(data_bytes(store.segments)))
    how = LogScan(
        columns=("physical_offset",),
        choose=selector.choose,
        checks=Check.TEXT,
        jobs=reading.jobs,
        safe_io=reading.safe_io,
        bytes_per_second=reading.bytes_per_second,
        live=is_live(store),
        advance=reading.advance,
    )
    offsets: list[int] = []
    unreadable: list[dict[str, Any]] = []
    for piece in scan_log(store.segments, how):
        if isinstance(piece.content, pa.RecordBatch):
            offsets += piece.content["physical_offset"].to_pylist()
        elif isinstance(piece.content, Unreadable):
            lost = piece.content
            row = {"path": piece.segment.file.shown, "position": lost.position, "length": lost.length}
            unreadable.append({**row, "error": lost.reason})
    return Matches(tuple(offsets), "scan", tuple(unreadable))
