"""Evidence about the release from records at the beginning and the end of the log."""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from formats.commitlog import MESSAGE_MAGIC_CODE, MESSAGE_MAGIC_CODE_V2, SysFlag, outline_of
from formats.java import java_hash
from formats.properties import CLUSTER, INNER_MULTI_DISPATCH, INNER_NUM, PROPERTY_SEPARATOR, decode_pairs
from rmqtool.errors import RmqtoolError
from rmqtool.store.releases import FIRST_5, RELEASES, Evidence, Weight, between, since, until, version_key

if TYPE_CHECKING:
    from collections.abc import Iterator

    from formats.commitlog import Outline
    from rmqtool.store.bytes import ByteSource
    from rmqtool.store.contents import StoreContents
    from rmqtool.store.segments import Segment

WINDOW = 1 << 18
"""Bytes that are searched for records at each end of the log."""
SAMPLE = 256
_PAGE = 4096
_LARGEST = 1 << 25
_MAGIC = re.compile(
    b"|".join(
        re.escape(magic.to_bytes(4, "big", signed=True))
        for magic in (MESSAGE_MAGIC_CODE, MESSAGE_MAGIC_CODE_V2)
    )
)
_CRC_NAME = b"__CRC32#\x01"
_CRC_LENGTH = 20
_ENOUGH = 3
_TYPE_BITS = 0x700
_V6, _COMPRESSED = int(SysFlag.BORNHOST_V6 | SysFlag.STOREHOST_V6), int(SysFlag.COMPRESSED)
_INNER_BATCH = int(SysFlag.INNER_BATCH)
_CLUSTER = CLUSTER.encode()

Fact: TypeAlias = "tuple[str, frozenset[str], Weight]"


def record_evidence(store: StoreContents) -> Iterator[Evidence]:
    """What the newest and the oldest records tell.

    Something new in the oldest records bounds the newest writer too; otherwise they are reported only when
    they disagree with the newest, as after an upgrade.
    """
    for segments in (store.segments, store.dledger_segments):
        last = segments.last_with_data()
        if last is None:
            continue
        newest = _facts(sample(last, end=True))
        for fact, releases, weight in newest:
            yield _evidence(last, f"{fact} (newest records)", releases, weight)
        first = next((one for one in segments if one.size and segments.has_data(one)), last)
        if first is last and first.size <= WINDOW:
            continue
        common = frozenset(RELEASES).intersection(
            *(releases for _, releases, weight in newest if weight > Weight.HINT)
        )
        for fact, releases, weight in _facts(sample(first, end=False)):
            is_new = releases == since(min(releases, key=version_key))
            if weight > Weight.HINT and (is_new or not common & releases):
                yield _evidence(first, f"{fact} (oldest records)", releases, weight, older=not is_new)


def _evidence(
    segment: Segment, fact: str, releases: frozenset[str], weight: Weight, *, older: bool = False
) -> Evidence:
    return Evidence(fact, segment.file.display_path, releases, weight, segment.file.mtime_ns, older)


def sample(segment: Segment, *, end: bool) -> list[Outline]:
    """Up to 256 intact records from the first or the last 256 KiB of data of a segment, in order.

    They are found by their magic and taken when all their lengths agree. [] when the file cannot be read.
    """
    try:
        with segment.open("pread") as source:
            stop = _data_end(source) if end else min(WINDOW, source.size)
            start = max(stop - WINDOW, 0)
            return _records(source, start, stop, end=end)
    except RmqtoolError:
        return []


def _data_end(source: ByteSource) -> int:
    """End of the last page that is not all zero, by bisection: behind the data of a segment lie zeros."""
    low, high = 0, -(-source.size // _PAGE)
    while low < high:
        middle = (low + high) // 2
        if source.window(middle * _PAGE, _PAGE).any() or source.window((middle + 1) * _PAGE, _PAGE).any():
            low = middle + 1
        else:
            high = middle
    return min(low * _PAGE, source.size)


def _records(source: ByteSource, start: int, stop: int, *, end: bool) -> list[Outline]:
    data = source.window(start, stop - start).tobytes()
    places = [found.start() for found in _MAGIC.finditer(data, 4)]
    parsed = (_parse(source, data, start, at - 4) for at in (reversed(places) if end else places))
    records = list(islice((one for one in parsed if one is not None), SAMPLE))
    return records[::-1] if end else records


def _parse(source: ByteSource, data: bytes, start: int, at: int) -> Outline | None:
    size = int.from_bytes(data[at : at + 4], "big", signed=True)
    if not 0 < size <= _LARGEST:
        return None
    raw = data[at : at + size]
    if len(raw) < size:
        raw = source.window(start + at, size).tobytes()
    return outline_of(raw)


def _facts(records: list[Outline]) -> list[Fact]:
    found: list[Fact] = []

    def has(property_name: str, record: Outline) -> bool:
        return property_name.encode() + b"\x01" in record.properties

    if any(record.magic == MESSAGE_MAGIC_CODE_V2 for record in records):
        found.append(("magic V2", since("5.1.0"), Weight.CERTAIN))
    if any(record.sys_flag & _V6 for record in records):
        found.append(("IPv6 hosts", since("4.6.0"), Weight.CERTAIN))
    if any(record.sys_flag & _COMPRESSED and record.sys_flag & _TYPE_BITS for record in records):
        found.append(("compression type bits", since("4.9.4"), Weight.LIKELY))
    if any(record.sys_flag & _INNER_BATCH and has(INNER_NUM, record) for record in records):
        found.append(("inner batches", since(FIRST_5), Weight.CERTAIN))
    if any(record.properties[-_CRC_LENGTH:].startswith(_CRC_NAME) for record in records):
        found.append(("__CRC32# trailers", since("5.2.0"), Weight.CERTAIN))
    if any(has(INNER_MULTI_DISPATCH, record) for record in records):
        found.append(("multi dispatch", since("4.9.3"), Weight.LIKELY))
    return [*found, *_separator(records), *_order(records)]


def _separator(records: list[Outline]) -> Iterator[Fact]:
    """The separator behind the last property: kept up to 4.9.0, dropped up to 5.1.4, kept again."""
    ends = [record.properties[-1] == PROPERTY_SEPARATOR for record in records if record.properties]
    kept = until("4.9.0") | since("5.2.0")
    dropped = between("4.9.1", "5.1.4")
    if not ends:
        return
    if all(ends):
        yield "properties end with a separator", kept, Weight.LIKELY
    elif not any(ends):
        yield "properties end without a separator", dropped, Weight.LIKELY
    else:
        # Clients encode too: where both forms occur neither says who the broker was.
        share = sum(ends) / len(ends)
        yield (
            f"{share:.0%} of the properties end with a separator",
            kept if share > 0.5 else dropped,
            Weight.HINT,
        )


def _order(records: list[Outline]) -> Iterator[Fact]:
    """The order in which a broker re-encodes properties: that of a HashMap of 16, since 5.1.0 of 128 buckets.

    Only records with CLUSTER are the broker's own encoding; copies made for retry topics go another way.
    """
    small = large = 0
    for record in records:
        if _CLUSTER not in record.properties:
            continue
        names = [
            pair.name for pair in decode_pairs(record.properties) if pair.is_pair and pair.name is not None
        ]
        if CLUSTER not in names or len(set(names)) != len(names) or record.topic.startswith(b"%"):
            continue
        by_16, by_128 = _follows(names, 16), _follows(names, 128)
        small += by_16 and not by_128
        large += by_128 and not by_16
    if large >= _ENOUGH:
        yield "properties in the order of HashMap(128)", since("5.1.0"), Weight.LIKELY
    elif small >= _ENOUGH and not large:
        yield "properties in the order of HashMap(16)", between("4.6.0", FIRST_5), Weight.LIKELY


def _follows(names: list[str], buckets: int) -> bool:
    while len(names) > 0.75 * buckets:
        buckets *= 2
    places = [(h ^ (h >> 16)) & (buckets - 1) for h in (java_hash(name) & 0xFFFFFFFF for name in names)]
    return places == sorted(places)
