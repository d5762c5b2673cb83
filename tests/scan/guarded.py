"""Buffers with a guard page behind them, and every compiled kernel run on them.

`KERNELS` names those that take an array of bytes, by module of `rmqtool.scan.kernels`.
"""

from __future__ import annotations

import ctypes
import mmap
import zlib
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from formats.commitlog import HEADERS, MESSAGE_MAGIC_CODES, SysFlag, encode_message
from formats.crc_trailer import reserve, seal
from formats.index import key_hash
from formats.primitives import offset_of
from formats.replay import entry
from rmqtool.scan.ahead.signatures import flat
from rmqtool.scan.fields import (
    ROW_WIDTH,
    STATUS_WIDTH,
    TEXTS,
    Alike,
    AppendState,
    Check,
    DispatchColumn,
    Field,
    FoundColumn,
    IndexHeaderState,
    LookupRequest,
    Place,
    QueueKeyColumn,
    Spanned,
    Stretch,
    Sum,
    TopicColumn,
)
from rmqtool.scan.index import ITEM

if TYPE_CHECKING:
    from collections.abc import Iterator

MAGIC = MESSAGE_MAGIC_CODES[0].to_bytes(4, "big", signed=True)
KERNELS = {
    "building": {"append_units", "put_keys", "feeds_further_queues", "are_single"},
    "carve": {"carve"},
    "columns": {"gather_fields"},
    "dispatch": {"place", "stretch", "agree_units", "ascending_units"},
    "encoding": {"encode", "prepare_rows"},
    "entries": {"walk_entries"},
    "hashes": {"key_hashes", "keyed", "first_in_sieve", "agree", "chain", "compare_slots", "follow"},
    "lookup": {"look_up"},
    "sound": {"sound_columns", "sound_stretches", "sound_without_keys"},
    "spans": {
        "first_nonzero",
        "gather",
        "message_ids",
        "property_spans",
        "property_texts",
        "span_units",
    },
    "walk": {"walk", "records_at", "find_record"},
}
CALLED = {
    "checksum": {"crc32_at", "crc_at"},
    "hashes": {"extend", "folded", "same", "slot_of"},
    "encoding": {"lies_within", "put_pair", "put_properties"},
    "numbers": {"has_odd_number"},
    "record": {"frame", "contents", "remarks"},
    "spans": {"copy_text", "fetch"},
    "text": {
        "utf8_ok", "topic_issues", "masks", "pair", "note", "scan_clean_properties", "scan_odd_properties",
        "finish_odd", "begins", "made_by_broker",
    },
}  # fmt: skip
"""kernels that take an address, which only those of `KERNELS` give them"""
COLUMNS = {
    "building": {"places_and_times"},
    "columns": {"numbers"},
    "dispatch": {"rehash", "by_partition", "outline"},
    "encoding": {"number_rows", "place_rows"},
    "hashes": {"longest_chains"},
    "tally": {"tally"},
}
"""kernels that see no byte of a store, only columns that others made"""
_UNIT, _ITEM = 20, 20
AT_BORN_HOST = offset_of(HEADERS[False, False], "born_host")

_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def before_guard(data: bytes, page: int = mmap.PAGESIZE) -> Iterator[np.ndarray]:
    """The bytes at the very end of readable memory: a page that nobody may touch follows them."""
    pages = max(-(-len(data) // page), 1)
    region = mmap.mmap(-1, (pages + 1) * page)
    whole = np.frombuffer(region, np.uint8)
    address = whole.ctypes.data
    try:
        end = pages * page
        whole[end - len(data) : end] = np.frombuffer(data, np.uint8)
        assert _libc.mprotect(ctypes.c_void_p(address + end), ctypes.c_size_t(page), 0) == 0
        yield whole[end - len(data) : end]
    finally:
        _libc.mprotect(ctypes.c_void_p(address), ctypes.c_size_t((pages + 1) * page), 3)
        del whole


def run_all_kernels(buffer: np.ndarray, kernels: Any) -> int:
    """Every compiled kernel on this buffer, as if the file went on behind it and as if it did not.

    Returns a checksum of all that they answered and wrote.
    """
    given = _Seen(kernels)
    _run_on_records(buffer, given)
    _run_on_entries(buffer, given)
    _run_on_items(buffer, given.hashes)
    _run_on_units(buffer, given.dispatch)
    _run_lookups(buffer, given.lookup)
    _run_spans(buffer, kernels)
    _run_writing(max(buffer.size // _UNIT, 1), given.building)
    return given.checksum


class _Seen:
    """Kernels whose answers and arrays go into a checksum."""

    def __init__(self, kernels: Any, whole: _Seen | None = None) -> None:
        self._kernels = kernels
        self._whole = whole or self
        self.checksum = 0

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._kernels, name)
        if name in {"building", "dispatch", "encoding", "hashes", "lookup"} or (
            name == "carve" and not callable(found)
        ):
            return _Seen(found, self._whole)

        def kernel(*arguments: Any) -> Any:
            answer = found(*arguments)
            whole = self._whole
            whole.checksum = zlib.crc32(repr((name, answer)).encode(), whole.checksum)
            for one in flat(arguments):
                if isinstance(one, np.ndarray):
                    told = one[LookupRequest.SEGMENT_SIZE :] if name == "look_up" else one  # no addresses
                    whole.checksum = zlib.crc32(told.tobytes(), whole.checksum)
            return answer

        return kernel


def _run_on_records(buffer: np.ndarray, kernels: Any) -> None:
    rows = np.zeros((64, ROW_WIDTH), np.int64)
    status = np.zeros(STATUS_WIDTH, np.int64)
    for file_size in (buffer.size, buffer.size + 1000):
        kernels.walk(buffer, 0, 0, file_size, 0, int(Check.VERIFY), rows, status)
        count = int(status[0])
        odd = [0, 1, -1, buffer.size - 9, buffer.size, 1 << 40, -(1 << 63), (1 << 63) - 1]
        places = np.array([*odd, *rows[:count, Field.POSITION]], np.int64)
        found = np.zeros((len(places), ROW_WIDTH), np.int64)
        kernels.records_at(buffer, places, 0, file_size, 0, int(Check.VERIFY), found)
        _run_on_sound(buffer, file_size, kernels)
        for any_offset in (0, 1):
            for start in (0, 1, max(buffer.size - 9, 0), buffer.size):
                kernels.find_record(buffer, start, 0, file_size, 0, 0, any_offset, rows[-1:], status)
        _run_encoding(buffer, rows[:count], kernels.encoding)
        places = np.ascontiguousarray(rows[:count, Field.PROPERTIES_POSITION])
        lengths = np.ascontiguousarray(np.maximum(rows[:count, Field.PROPERTIES_LENGTH], 0))
        spans = np.zeros((int((lengths // 4 + 1).sum()), 4), np.int64)
        counts, empty = np.zeros(count, np.int64), np.zeros(count, bool)
        total = kernels.property_spans(buffer, places, lengths, spans, counts, empty)
        spans = spans[:total]
        ends = np.zeros((2, total + 1), np.int32)
        with (
            before_guard(bytes(int(spans[:, 1].sum()))) as names,
            before_guard(bytes(int(spans[:, 3].sum()))) as values,
        ):
            kernels.property_texts(buffer, spans, ends[0], names, ends[1], values)
        _run_on_columns(buffer, rows[:count], kernels)
        out = np.zeros(int(lengths.sum()), np.uint8)
        kernels.gather(buffer, places, lengths, np.zeros(count + 1, np.int32), out)
        widths = np.minimum(buffer.size - np.maximum(places, 0), 20)
        ids = np.zeros(int((2 * widths + 16).sum()), np.uint8)
        kernels.message_ids(buffer, places, widths, places, ids)
        _run_on_rows(buffer, rows[:count], kernels)
        for border in (buffer.size // 2, buffer.size):
            kernels.carve.carve(buffer, 0, border, 0, file_size, 1 << 22, -1, rows, status)
            _run_on_rows(buffer, rows[: int(status[0])], kernels)
    for start in (0, buffer.size // 2, buffer.size):
        kernels.first_nonzero(buffer, start)


def _run_on_columns(buffer: np.ndarray, rows: np.ndarray, kernels: Any) -> None:
    sizes = [int(np.maximum(rows[:, field + 1], 0).sum()) for field in TEXTS]
    ends = tuple(np.zeros(len(rows) + 1, np.int32) for _ in TEXTS)
    with ExitStack() as stack:
        out = tuple(stack.enter_context(before_guard(bytes(size))) for size in sizes)
        kernels.gather_fields(buffer, 0, rows, int(Alike.ALL), np.array(TEXTS, np.int64), ends, out)


def _run_on_rows(buffer: np.ndarray, rows: np.ndarray, kernels: Any) -> None:
    keys, owners = np.zeros(200, np.int32), np.zeros(200, np.int32)
    kernels.hashes.key_hashes(buffer, 0, rows, 0, keys, owners)
    kernels.building.feeds_further_queues(buffer, 0, rows)
    kernels.building.are_single(buffer, 0, rows)
    known = np.zeros((8, len(QueueKeyColumn)), np.int64), np.zeros(4096, np.uint8), np.zeros(32, np.int32)
    columns = np.zeros((len(DispatchColumn), 64), np.int64)
    kernels.dispatch.place(buffer, 0, rows, 0, 0, known, np.zeros(3, np.int64), columns)
    columns, newest = np.zeros((len(Stretch), 64), np.int64), np.zeros(8, np.int64)
    kernels.dispatch.stretch(buffer, 0, rows, 0, 0, (*known, newest), np.zeros(3, np.int64), columns)
    kernels.hashes.keyed(buffer, 0, rows, np.zeros(3, np.int64))
    for bits in (np.zeros(8, np.uint8), np.full(1024, 255, np.uint8)):
        kernels.hashes.first_in_sieve(buffer, 0, rows, bits)


def _run_on_sound(buffer: np.ndarray, file_size: int, kernels: Any) -> None:
    for block in (1, 2):
        known = np.zeros((8, len(QueueKeyColumn)), np.int64), np.zeros(4096, np.uint8), np.zeros(32, np.int32)
        kernels.sound_stretches(
            buffer,
            0,
            0,
            np.array([file_size, 0, file_size]),
            int(Check.VERIFY),
            1000,
            np.zeros((block, ROW_WIDTH), np.int64),
            np.zeros(STATUS_WIDTH, np.int64),
            (*known, np.zeros(8, np.int64)),
            np.zeros(3, np.int64),
            np.zeros((len(Stretch), 64), np.int64),
            np.zeros(3, np.int64),
            np.zeros(len(Sum), np.int64),
        )
        kernels.sound_columns(
            buffer,
            0,
            0,
            np.array([file_size, 0, file_size]),
            int(Check.VERIFY),
            1000,
            np.zeros((block, ROW_WIDTH), np.int64),
            np.zeros(STATUS_WIDTH, np.int64),
            known,
            np.zeros(3, np.int64),
            np.zeros((len(DispatchColumn), 64), np.int64),
            (np.zeros(64, np.int32), np.zeros(64, np.int32)),
            np.zeros((len(Place), 64), np.int64),
            np.zeros(len(Sum), np.int64),
        )
        kernels.sound_without_keys(
            buffer,
            0,
            0,
            np.array([file_size, 0, file_size]),
            int(Check.TEXT),
            1000,
            np.zeros(1024, np.uint8),
            np.zeros((block, ROW_WIDTH), np.int64),
            np.zeros(STATUS_WIDTH, np.int64),
            np.zeros(len(Sum), np.int64),
        )


def _run_on_entries(buffer: np.ndarray, kernels: Any) -> None:
    rows, status = np.zeros((64, ROW_WIDTH), np.int64), np.zeros(STATUS_WIDTH, np.int64)
    for behind in (0, 1000):
        kernels.walk_entries(buffer, 0, 0, buffer.size + behind, int(Check.ALL), rows, status)


def _run_on_items(buffer: np.ndarray, hashes: Any) -> None:
    """As the items of an index file, and as slots and items of a whole one."""
    count = buffer.size // _ITEM
    longs = np.zeros(count, np.int64)
    hashes.agree(buffer, np.zeros(count, np.int32), np.zeros(count, np.int32), longs, longs, 0, 1)
    for slots in (1, 7, 100):
        state, bad = np.zeros(slots, np.int64), np.zeros((4, 3), np.int64)
        hashes.chain(buffer, 1, slots, state, bad, 0)
        hashes.compare_slots(buffer, state, np.zeros(4, np.int64), np.zeros(4, np.int64))
        heads = np.array([0, 1, count - 1, count, count + 1, 1 << 40, -1], np.int64)
        for start in (0, min(4 * slots, buffer.size)):
            hashes.follow(buffer, start, heads, np.zeros(64, np.int32))


def question(
    *,
    slots: int,
    files: np.ndarray,
    segments: np.ndarray,
    size: int,
    topic: bytes,
    keys: list[bytes],
    **given: int,
) -> np.ndarray:
    """`Asked` for `lookup.look_up`; files, segments: tables, which have to stay."""
    values = dict.fromkeys(LookupRequest, 0) | {
        LookupRequest.FILES: files.ctypes.data,
        LookupRequest.FILE_COUNT: len(files),
        LookupRequest.ALL_FILES: 1,
        LookupRequest.SLOTS: slots,
        LookupRequest.SEGMENTS: segments.ctypes.data,
        LookupRequest.SEGMENT_COUNT: len(segments),
        LookupRequest.SEGMENT_SIZE: size,
        LookupRequest.ROOM: 40,
        LookupRequest.STEPS: 1000,
        LookupRequest.WRITTEN: 1 << 40,
        LookupRequest.HIGH: size * len(segments),
        LookupRequest.BEGIN: -(1 << 63),
        LookupRequest.END: (1 << 63) - 1,
        LookupRequest.LIMIT: 32,
        LookupRequest.KEYS: len(keys),
    }
    values |= {LookupRequest[name.upper()]: value for name, value in given.items()}
    text = b"".join([topic, *keys])
    ends = np.cumsum([len(one) for one in (topic, *keys)]).tolist()
    head = [*values.values(), *ends, *[0] * len(keys), *[0] * (values[LookupRequest.ROOM] * len(FoundColumn))]
    raw = np.frombuffer(text + bytes(-len(text) % 8), np.int64)
    return np.concatenate([np.array(head, np.int64), raw])


def _run_lookups(buffer: np.ndarray, lookup: Any) -> None:
    """As slots and items of an index file, and as a segment into which items lead."""
    size = max(buffer.size, 1)
    keys = [b"b", b"", b"w" * 119, b"v"]
    segments = np.array([[0, buffer.size, buffer.ctypes.data]])
    told: dict[str, Any] = {"segments": segments, "size": size, "topic": b"T", "keys": keys}
    for slots in (1, 7):
        items = min(4 * slots, buffer.size)
        if buffer.size >= 4 * slots:
            at, room = buffer.ctypes.data, (buffer.size - items) // _ITEM
            file = np.array([[at, 0, at + items, room]])
            lookup.look_up(question(slots=slots, files=file, **told))
            lookup.look_up(question(slots=slots, files=np.tile(file, (3, 1)), written=1, **told))
    # places of the buffer, on one chain of items with the right hash; what is not sure ends a walk
    places = [-1, 1 << 62, 0, 1, size // 2, *range(size - 9, size + 2)]
    items = np.zeros(len(places) + 1, ITEM)
    items["key_hash"], items["prev"] = key_hash("T", keys[0].decode()), np.arange(len(items)) - 1
    items["physical_offset"][1:] = places
    with before_guard(items.tobytes()) as own:
        newest = np.zeros(1, np.int32)
        file = np.array([[newest.ctypes.data, 1, own.ctypes.data, len(items)]])
        for high in (size, size - 1):
            asked = question(slots=1, files=file, **told, high=high)
            for number in range(1, len(items)):
                newest[0] = number
                lookup.look_up(asked)


def _run_spans(buffer: np.ndarray, kernels: Any) -> None:
    count = buffer.size // _UNIT
    asked = np.zeros(len(Spanned) + 2 * count, np.int64)
    for some in (count, count + 1, 1 << 62, -1):
        asked[: Spanned.BASE] = buffer.ctypes.data, some, 1000
        assert kernels.span_units(asked) == (some if 0 < some == count else -1)


def _run_on_units(buffer: np.ndarray, dispatch: Any) -> None:
    dispatch.ascending_units(buffer, -1)
    count = buffer.size // _UNIT + 3
    columns = np.zeros((len(DispatchColumn), count), np.int64)
    columns[DispatchColumn.SLOT] = np.arange(count)
    chosen, right = np.arange(count), np.zeros(count, bool)
    for first in (0, 1, -5, 1 << 50):
        dispatch.agree_units(buffer, first, columns, chosen, right)


def _run_encoding(buffer: np.ndarray, rows: np.ndarray, encoding: Any) -> None:
    """Records that were found, written again into memory that ends where they end."""
    lengths = rows[:, [Field.BODY_LENGTH, Field.TOPIC_LENGTH, Field.PROPERTIES_LENGTH]]
    rows = np.ascontiguousarray(rows[(lengths >= 0).all(axis=1)])
    born = rows[:, Field.POSITION] + AT_BORN_HOST
    wide = (rows[:, Field.SYS_FLAG] & int(SysFlag.BORNHOST_V6)) != 0
    hosts = np.stack([born, born + np.where(wide, 20, 8) + 8], axis=1)
    sizes = rows[:, Field.STORE_SIZE]
    with before_guard(bytes(int(sizes.sum()))) as out:
        encoding.encode(rows, hosts, (buffer,) * 4, 0, np.cumsum(sizes) - sizes, out)
    ends = np.arange(min(buffer.size, 64) + 1) + max(buffer.size - 64, 0)
    count = len(ends) - 1
    none, topics = np.zeros(0, np.int64), np.ones((1, len(TopicColumn)), np.int64)
    numbers, refused = (np.zeros(count, np.int64), np.full(count, -1), none, none), np.zeros(count, np.int64)
    prepared = np.zeros((count, ROW_WIDTH), np.int64)
    names = sum(len(f"{name}\x01\x02") for name in ("UNIQ_KEY", "KEYS", "TAGS"))
    with before_guard(bytes(count * (names + 4 + 3))) as out:
        for offsets in (ends, ends + 1, ends - buffer.size, ends[::-1].copy()):
            encoding.prepare_rows(
                5 * (offsets, buffer), numbers, topics, (3, 0, 0, 99, 999), out, prepared, refused
            )


def _run_writing(count: int, building: Any) -> None:
    """What writes units and items, into memory that ends where they end."""
    columns = np.zeros((len(DispatchColumn), count), np.int64)
    columns[DispatchColumn.SLOT] = np.arange(count) % 5
    columns[DispatchColumn.OFFSET] = np.arange(count) * 100
    state = np.zeros(len(AppendState), np.int64)
    state[AppendState.KNOWN] = -1
    with ExitStack() as stack:
        units = stack.enter_context(before_guard(bytes(count * _UNIT)))
        building.append_units(columns, np.arange(count), 0, 0, state, units, np.zeros(count, np.int64))
        items = stack.enter_context(before_guard(bytes(count * _ITEM)))
        keys = np.arange(count, dtype=np.int32), np.zeros(count, np.int32)
        records = np.zeros(1, np.int64), np.zeros(1, np.int64)
        for room in (1, count, count + 1, 1 << 30):
            header = np.zeros(len(IndexHeaderState), np.int64)
            header[IndexHeaderState.INDEX_COUNT] = 1
            building.put_keys(keys, records, 0, room, header, np.zeros(7, np.int32), items)


def guarded_inputs() -> Iterator[bytes]:
    texts = [
        b"",
        b"a\x01b",
        b"TAGS\x01" + b"v" * 59,
        b"UNIQ_KEY\x01" + b"w" * 119,
        b"\x01",
        b"\xe4\xb8",
        b"\xff",
    ]
    for topic in ("T", "T" * 64, "T" * 127, "ü"):
        for text in texts:
            record = encode_message(topic, b"b" * 10, text)
            yield record
            yield from (record[:-cut] for cut in (1, 2, 60))
            yield record + encode_message(topic, b"", text, physical_offset=len(record))
            yield seal(encode_message(topic, bytes(8) + b'{"code":', reserve(text)))
            yield entry(record) + entry(record)[:-3]
    for length in range(140):
        yield bytes(length)
        yield b"\xda" * length
        yield (MAGIC * 40)[:length]
    rng = np.random.default_rng(11)
    for length in (1, 63, 64, 71, 72, 73, 4096, 5000):
        yield rng.choice(np.frombuffer(b"\0\1\2\xda\xa3\x20\xa7\xcb", np.uint8), length).tobytes()
