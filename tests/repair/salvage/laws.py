"""What must be true of every salvaged store, read with nothing but the declared formats."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from formats.commitlog import BLANK_MAGIC_CODE, MESSAGE_MAGIC_CODES, Message, body_crc_ok, transaction_of
from formats.properties import decode
from rmqtool.repair.salvage.run import Salvaged, SalvageOptions, Target, carve, write
from rmqtool.repair.salvage.sources import collect

NONE: Counter[tuple[Any, ...]] = Counter()


def salvaged(paths: list[Path], output: Path, **options: Any) -> Salvaged:
    """A salvage without the command line."""
    sources = collect([str(path) for path in paths])
    chosen = SalvageOptions("5.3.3", **options)
    reported = carve(sources, chosen)
    if reported.records:
        with Target(str(output), force=False) as part:
            write(reported, part, chosen)
    return reported


def log_of(root: Path) -> list[Any]:
    """All records of a commit log in order; every byte between the first and the last is accounted for."""
    files = sorted((root / "commitlog").iterdir())
    size = files[0].stat().st_size
    first = int(files[0].name)
    assert [int(file.name) for file in files] == list(range(first, first + size * len(files), size))
    assert {file.stat().st_size for file in files} == {size}
    records = []
    for file in files:
        data, at = file.read_bytes(), 0
        while True:
            assert size - at >= 8
            magic = int.from_bytes(data[at + 4 : at + 8], "big", signed=True)
            if magic == BLANK_MAGIC_CODE:
                assert int.from_bytes(data[at : at + 4], "big") == size - at
                assert file != files[-1]
                break
            if magic not in MESSAGE_MAGIC_CODES:
                assert file == files[-1]
                assert not any(data[at:])
                break
            record = Message.parse(data[at:])
            assert body_crc_ok(record)
            assert record.physical_offset == int(file.name) + at
            records.append(record)
            at += record.total_size
    return records


def is_placeholder(record: Any) -> bool:
    """Whether a salvage made it up: a filler, or a tombstone as the fixtures' messages never look."""
    if transaction_of(record.sys_flag) == "rollback" and not record.properties:
        return True
    return record.born_host.port == 0


def key_of(record: Any) -> tuple[Any, ...]:
    """What stays of a message wherever it goes."""
    return (record.topic, record.queue_id, record.body, record.born_timestamp, record.store_timestamp)


def check_queues(records: list[Any]) -> None:
    """Every queue's offsets go up by one along the log."""
    slots: dict[tuple[bytes, int], list[int]] = defaultdict(list)
    for record in records:
        if transaction_of(record.sys_flag) in ("none", "commit"):
            width = int(decode(record.properties)["INNER_NUM"]) if record.sys_flag & 0x80 else 1
            slots[record.topic, record.queue_id].extend(
                range(record.queue_offset, record.queue_offset + width)
            )
    for found in slots.values():
        assert found == list(range(found[0], found[0] + len(found)))


def check_store(
    root: Path, expected: Counter[tuple[Any, ...]], maybe: Counter[tuple[Any, ...]] = NONE
) -> list[Any]:
    """The log is whole, its queues are aligned, and it has these messages, each once, and no others.

    maybe: messages that it may have, too.
    """
    records = log_of(root)
    check_queues(records)
    real = Counter(key_of(record) for record in records if not is_placeholder(record))
    assert expected <= real
    assert real <= expected + maybe
    return records
