"""The reader of replayable files: what was written comes back, and no cut or changed byte goes unnoticed."""

from __future__ import annotations

import io

import pytest

from fixtures.builder import HandmadeLog
from formats import replay
from rmqtool.errors import NewerFormatError, NotAStoreError
from rmqtool.scan.replay import ReplayStop
from tests.scan.replay_reader import ReplayReader


def records() -> list[bytes]:
    log = HandmadeLog()
    for number in range(7):
        log.put("TopicTest", b"body" * number, {"KEYS": f"k{number}"})
    return [placed.data for placed in log.records]


RECORDS = records()
FILE = replay.header() + b"".join(map(replay.entry, RECORDS)) + replay.end(len(RECORDS))
STARTS = [len(replay.header())]
for one in RECORDS:
    STARTS.append(STARTS[-1] + replay.ENTRY_HEAD_SIZE + len(one))


def read(raw: bytes) -> tuple[list[bytes], ReplayReader]:
    reader = ReplayReader(io.BytesIO(raw))
    return list(reader), reader


def test_what_was_written_is_read() -> None:
    found, reader = read(FILE)
    assert found == RECORDS
    assert reader.end is not None
    assert reader.end.whole
    assert (reader.end.position, reader.end.count) == (len(FILE), 7)


def test_no_records() -> None:
    found, reader = read(replay.header() + replay.end(0))
    assert found == []
    assert reader.end is not None
    assert reader.end.whole


def test_the_bytes_are_those_of_the_page() -> None:
    record = b"\x00\x01\x02"
    assert replay.header() == b"RMQREPLY\x00\x00\x00\x01"
    assert replay.entry(record) == bytes.fromhex("00000003 0854897f") + record
    assert replay.end(1)[:20] == b"\0\0\0\0RMQRPEND\0\0\0\0\0\0\0\x01"


def test_every_cut_is_noticed_and_what_is_in_front_is_read() -> None:
    for length in range(len(FILE)):
        found, reader = read(FILE[:length])
        assert reader.end is not None
        assert reader.end.stop is ReplayStop.CUT, length
        whole = max(sum(start <= length for start in STARTS) - 1, 0)
        assert found == RECORDS[:whole], length
        assert reader.end.count == whole


def test_every_changed_byte_is_noticed() -> None:
    for place in range(len(replay.header()), len(FILE)):
        raw = bytearray(FILE)
        raw[place] ^= 0x01
        found, reader = read(bytes(raw))
        assert reader.end is not None
        assert not reader.end.whole, place
        assert found == RECORDS[: len(found)]
        assert len(found) == min(sum(start <= place for start in STARTS) - 1, 7)


def test_what_follows_the_end_is_reported() -> None:
    found, reader = read(FILE + b"x")
    assert found == RECORDS
    assert reader.end is not None
    assert reader.end.stop is ReplayStop.TRAILING


def test_a_lost_entry_is_told_by_the_count() -> None:
    raw = FILE[: STARTS[2]] + FILE[STARTS[3] :]
    found, reader = read(raw)
    assert found == RECORDS[:2] + RECORDS[3:]
    assert reader.end is not None
    assert reader.end.stop is ReplayStop.BAD_COUNT


def test_other_files_and_other_versions() -> None:
    with pytest.raises(NotAStoreError, match="not a replayable file"):
        ReplayReader(io.BytesIO(b"PAR1" + FILE))
    with pytest.raises(NewerFormatError, match="version 2"):
        ReplayReader(io.BytesIO(replay.MAGIC + b"\0\0\0\2"))
