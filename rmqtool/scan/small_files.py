"""Small files as rows: checkpoint, abort, lock, epochs, identity, configuration."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.scan.file_rows import cut_row, short_row, undecodable
from rmqtool.store.whole import read_whole

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.scan.file_rows import FileAccess, Row, RowBatch
    from rmqtool.store.files import StoreFile


def read_checkpoint(reader: FileAccess, file: StoreFile) -> Iterator[RowBatch | Row]:
    """The three times of a checkpoint, and what lies behind them."""
    from formats.checkpoint import CHECKPOINT_HEAD_SIZE, CHECKPOINT_SIZE, parse_checkpoint

    raw = read_whole(file, reader.access)
    parsed = parse_checkpoint(raw)
    names = [name for name in parsed if name not in {"_io", "reserved"}]
    yield {
        "type": "checkpoint",
        "path": file.display_path,
        **{name: int(parsed[name]) for name in names},
        "length": file.size,
        "rest_is_zero": not any(raw[CHECKPOINT_HEAD_SIZE:]),
    }
    if any(raw[CHECKPOINT_HEAD_SIZE:CHECKPOINT_SIZE]):
        yield _filled(file, raw, CHECKPOINT_HEAD_SIZE, min(len(raw), CHECKPOINT_SIZE))
    if file.size < CHECKPOINT_SIZE:
        yield short_row(file, CHECKPOINT_SIZE)
    elif file.size > CHECKPOINT_SIZE:
        yield cut_row(file, file.size, CHECKPOINT_SIZE)


def _filled(file: StoreFile, raw: bytes, start: int, end: int) -> Row:
    """Bytes where every release leaves zeros."""
    place = {"path": file.display_path, "position": start, "length": end - start}
    found = raw[start:end].lstrip(b"\0")[:64].hex()
    return {"type": "gap", **place, "reason": "not_zero", "expected": 0, "found": found}


def read_abort(reader: FileAccess, file: StoreFile) -> Iterator[RowBatch | Row]:
    """The process number in an abort file."""
    from formats.checkpoint import Abort
    from formats.errors import FormatError

    raw = read_whole(file, reader.access)
    try:
        yield {"type": file.kind.value, "path": file.display_path, "pid": Abort.parse(raw)}
    except FormatError as error:
        yield undecodable(file, raw, str(error))


def read_lock(reader: FileAccess, file: StoreFile) -> Iterator[RowBatch | Row]:
    """Who holds a store."""
    from rmqtool.store.lock import probe

    state = probe(file.location)
    raw = read_whole(file, reader.access)
    reported = {"held": state.held, "pid": state.pid, "reason": state.reason}
    yield {"type": "lock", "path": file.display_path, "content_hex": raw[:64].hex(), **reported}
    if raw not in {b"", b"lock"}:
        yield undecodable(file, raw, "is neither empty nor the word lock")


def read_epoch(reader: FileAccess, file: StoreFile) -> Iterator[RowBatch | Row]:
    """Header and entries of an epoch file."""
    from formats.checkpoint import EpochFile
    from formats.errors import FormatError

    raw = read_whole(file, reader.access)
    try:
        parsed = EpochFile.parse(raw)
    except FormatError as error:
        yield undecodable(file, raw, str(error))
        return
    yield {
        "type": "epoch_file",
        "path": file.display_path,
        "count": parsed.count,
        "valid": parsed.is_valid,
        "crc": "ok" if parsed.crc == parsed.computed_crc else "bad",
        "stored_crc": parsed.crc,
        "computed_crc": parsed.computed_crc,
    }
    for number, entry in enumerate(parsed.entries):
        yield {"type": "epoch", "path": file.display_path, "number": number, **entry._asdict()}


def read_identity(reader: FileAccess, file: StoreFile) -> Iterator[RowBatch | Row]:
    """Who a broker is in its controller."""
    from formats.checkpoint import BrokerIdentity
    from formats.errors import FormatError

    raw = read_whole(file, reader.access)
    try:
        yield {"type": "broker_identity", "path": file.display_path, **BrokerIdentity.parse(raw)._asdict()}
    except FormatError as error:
        yield undecodable(file, raw, str(error))


def read_config(reader: FileAccess, file: StoreFile) -> Iterator[RowBatch | Row]:
    """A configuration file with its whole content."""
    from rmqtool.store.config_json import parse_config

    parsed = parse_config(read_whole(file, reader.access))
    row: Row = {
        "type": "config",
        "path": file.display_path,
        "state": parsed.state.value,
        "detail": parsed.detail,
    }
    yield row | {"content": parsed.data}
