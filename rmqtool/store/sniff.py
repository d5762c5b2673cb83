"""What a file is, by its bytes alone: for files that were copied away from their store.

Each test asks for more than a magic number where there is none. The order matters: strict tests come first.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import numpy as np

from formats.commitlog import BLANK_MAGIC_CODE, MESSAGE_MAGIC_CODES
from formats.consumequeue import EXT_MIN_SIZE, BatchUnit, ExtHead, Unit
from formats.dledger import ENTRY_HEAD_SIZE, EntryHead, IndexUnit
from formats.dledger import MAGIC as DLEDGER_MAGIC
from formats.primitives import dtype_of, offset_of
from formats.replay import MAGIC as REPLAY_MAGIC
from formats.timer import TIMER_MAGIC_BITS, TIMER_UNIT_SIZE, WHEEL_SIZE, TimerUnit
from rmqtool.store.kinds import CONFIG_NAMES, ROOT_FILES, FileKind, role_of

if TYPE_CHECKING:
    from rmqtool.store.bytes import ByteSource

_HEAD = 8192
_TEXT_LIMIT = 1 << 16
_SEARCH = 1 << 20
_MAX_MILLIS = 1 << 43
_EPOCH = re.compile(rb"\d+\r?\n\d+\r?\n(-?\d+--?\d+\r?\n)*")
_IDENTITY = re.compile(rb"[^#\x00-\x1f]+#[^#\x00-\x1f]+#-?\d+\s*")
_DLEDGER_TEXT = re.compile(rb"(#.*\n)*\s*(endIndex|committedIndex|currTerm|voteLeader)\s*=", re.ASCII)
_CONFIG_KEYS = (
    b"topicConfigTable", b"subscriptionGroupTable", b"offsetTable", b"filterDataByTopic", b"lmqOffsetTable",
    b"topicQueueMappingInfoMap", b"messageRequestModeMap", b"transactionCount", b"dataVersion", b'"table"',
)  # fmt: skip

_UNIT = dtype_of(Unit)
_BATCH_UNIT = dtype_of(BatchUnit)
_DLEDGER_UNIT = dtype_of(IndexUnit)
_EXT_TIME, _EXT_BIT_MAP = (offset_of(ExtHead, name) for name in ("msg_store_time", "bit_map_size"))


def _i16(head: bytes, at: int) -> int:
    return int.from_bytes(head[at : at + 2], "big", signed=True)


def _i32(head: bytes, at: int) -> int:
    return int.from_bytes(head[at : at + 4], "big", signed=True)


def _i64(head: bytes, at: int) -> int:
    return int.from_bytes(head[at : at + 8], "big", signed=True)


def sniff(source: ByteSource) -> FileKind | None:
    """Kind of a file by its content, None when nothing fits or when it holds nothing but zeros.

    Reads the first pages only, except that a possible index file is solved for its geometry and a file
    without a recognisable start is searched for a record magic in its first MiB. Raises `UnreadableError`
    when the medium refuses.
    """
    size = source.size
    if size == 0:
        return None
    head = source.window(0, _HEAD).tobytes()
    if size == WHEEL_SIZE:
        return FileKind.TIMERWHEEL
    found = _by_start(head, size) or _by_text(head, size)
    if found is None and size == 4096:
        found = _fixed_page(head)
    if found is None and not head.strip(b"\0"):
        return None
    return found or _by_units(head, size) or _index(source) or _search(source)


def _by_start(head: bytes, size: int) -> FileKind | None:
    if head.startswith(REPLAY_MAGIC):
        return FileKind.REPLAY
    if len(head) >= 8 and _i32(head, 4) in (*MESSAGE_MAGIC_CODES, BLANK_MAGIC_CODE):
        return FileKind.COMMITLOG
    if _is_dledger_entry(head):
        return FileKind.DLEDGER_DATA
    if size % _DLEDGER_UNIT.itemsize == 0 and _is_dledger_index(head):
        return FileKind.DLEDGER_INDEX
    return FileKind.TIMERLOG if _is_timer(head) else None


def _is_timer(head: bytes) -> bool:
    if len(head) < TIMER_UNIT_SIZE:
        return False
    unit = TimerUnit.parse(head)
    return bool(unit.size == TIMER_UNIT_SIZE and 0 <= unit.magic <= TIMER_MAGIC_BITS and not unit.reserved)


def _is_dledger_entry(head: bytes) -> bool:
    """An entry, and the record in it."""
    if len(head) < ENTRY_HEAD_SIZE + 8:
        return False
    entry = EntryHead.parse(head)
    return bool(
        entry.magic == DLEDGER_MAGIC
        and entry.size == ENTRY_HEAD_SIZE + entry.body_size
        and _i32(head, ENTRY_HEAD_SIZE + 4) in MESSAGE_MAGIC_CODES
    )


def _is_dledger_index(head: bytes) -> bool:
    if len(head) < 2 * _DLEDGER_UNIT.itemsize:
        return False
    first, second = np.frombuffer(head, _DLEDGER_UNIT, 2)
    follows = second["magic"] == DLEDGER_MAGIC and int(second["index"]) == int(first["index"]) + 1
    return bool(
        first["magic"] == DLEDGER_MAGIC
        and first["position"] >= 0
        and first["size"] > ENTRY_HEAD_SIZE
        and (follows or (second["magic"] == 0 and second["index"] == 0))
    )


def _by_text(head: bytes, size: int) -> FileKind | None:
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    if text[:1] == b"{":
        return _json_kind(text, size)
    if head == b"lock":
        return FileKind.LOCK
    if _EPOCH.fullmatch(head) and size <= _TEXT_LIMIT:
        return FileKind.EPOCH
    if size < 4096 and _IDENTITY.fullmatch(head):
        return FileKind.BROKER_IDENTITY
    return FileKind.DLEDGER_TEXT if _DLEDGER_TEXT.match(head) else None


def _json_kind(text: bytes, size: int) -> FileKind | None:
    if b"queueOffsetMap" in text:
        return FileKind.COMPACTION_POSITION
    if b"timingCount" in text:
        return FileKind.TIMERMETRICS
    if any(key in text for key in _CONFIG_KEYS):
        return FileKind.CONFIG
    try:
        return FileKind.CONFIG if size <= _HEAD and isinstance(json.loads(text), dict) else None
    except (ValueError, RecursionError):
        return None


def _fixed_page(head: bytes) -> FileKind | None:
    """Checkpoint and timercheck share the length: only the second has a data version behind byte 40."""
    if any(head[56:]):
        return None
    longs = [_i64(head, at) for at in range(0, 56, 8)]
    if any(longs[5:]):
        return FileKind.TIMERCHECK if 0 <= longs[0] < _MAX_MILLIS and 0 <= longs[5] < _MAX_MILLIS else None
    return FileKind.CHECKPOINT if all(0 <= value < _MAX_MILLIS for value in longs[:3]) else None


def _by_units(head: bytes, size: int) -> FileKind | None:
    if _is_ext(head):
        return FileKind.CONSUMEQUEUE_EXT
    if size % _BATCH_UNIT.itemsize == 0 and _is_batch_units(head):
        return FileKind.BATCHCONSUMEQUEUE
    if size % _UNIT.itemsize == 0 and _is_units(head):
        return FileKind.CONSUMEQUEUE
    return None


def _is_ext(head: bytes) -> bool:
    at = units = 0
    while at + EXT_MIN_SIZE <= len(head):
        length = _i16(head, at)
        if length in (0, -1):
            break
        bit_map = length - EXT_MIN_SIZE
        stored = _i64(head, at + _EXT_TIME)
        if bit_map < 0 or _i16(head, at + _EXT_BIT_MAP) != bit_map or not 0 < stored < _MAX_MILLIS:
            return False
        units += 1
        at += length
    return units > 0


def _is_batch_units(head: bytes) -> bool:
    units = np.frombuffer(head, _BATCH_UNIT, len(head) // _BATCH_UNIT.itemsize)
    used = units[units["size"] != 0]
    if len(used) == 0 or units["size"][0] == 0:
        return False
    valid = (
        (used["physical_offset"] >= 0)
        & (used["size"] > 0)
        & (used["base_offset"] >= 0)
        & (used["batch_size"] > 0)
    )
    valid &= (used["reserved"] == 0) & (used["store_timestamp"] > 0) & (used["store_timestamp"] < _MAX_MILLIS)
    return bool(valid.all() and (np.diff(used["base_offset"]) > 0).all())


def _is_units(head: bytes) -> bool:
    units = np.frombuffer(head, _UNIT, len(head) // _UNIT.itemsize)
    used = units[(units["size"] != 0) | (units["physical_offset"] != 0)]
    if len(used) == 0 or units["size"][0] == 0:
        return False
    # A damaged unit or two must not hide what the file is; random bytes are valid and ordered by half at
    # most.
    valid = (used["physical_offset"] >= 0) & (used["physical_offset"] < 1 << 50) & (used["size"] > 0)
    return bool(valid.mean() > 0.9)


def _index(source: ByteSource) -> FileKind | None:
    from rmqtool.store.index_solver import solve_index

    if source.size < 64 or (source.size - 40) % 4:
        return None
    return FileKind.INDEX if solve_index(source) else None


def _search(source: ByteSource) -> FileKind | None:
    data = source.window(0, _SEARCH).tobytes()
    if any(data.find(magic.to_bytes(4, "big", signed=True)) >= 0 for magic in MESSAGE_MAGIC_CODES):
        return FileKind.COMMITLOG
    return None


def by_name(name: str) -> FileKind | None:
    """Kind of a file by a name that only one place in a store uses; None for other names."""
    if name in ROOT_FILES:
        return ROOT_FILES[name]
    if name == "currterm":
        return FileKind.DLEDGER_TEXT
    if name.startswith("position-checkpoint"):
        return FileKind.COMPACTION_POSITION
    if (
        name in CONFIG_NAMES
        or name.split(".", maxsplit=1)[0] in ("timercheck", "timermetrics")
        or name.endswith((".bak", ".tmp"))
    ):
        placed = role_of(("config",)).place(name)
        return None if placed.kind is FileKind.UNKNOWN else placed.kind
    return None
