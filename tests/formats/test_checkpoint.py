"""checkpoint, abort, lock, epoch file, brokerIdentity."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats import checkpoint as cp
from formats.errors import FormatError
from formats.primitives import sizeof

HEAD = bytes.fromhex("0000018BCFE5687B 0000018BCFE5687B 0000000000000000 0000000000000084 0000000000000084")
EPOCH = b"2\n773307083\n7-7000\n8-8000\n"
ENTRIES = (cp.EpochEntry(7, 7000), cp.EpochEntry(8, 8000))


def test_checkpoint_vector() -> None:
    raw = HEAD.ljust(4096, b"\0")
    parsed = cp.Checkpoint.parse_exact(raw)
    assert parsed.physic_msg_timestamp == parsed.logics_msg_timestamp == 1700000000123
    assert parsed.index_msg_timestamp == 0
    assert parsed.master_flushed_offset == parsed.confirm_physical_offset == 132
    assert cp.Checkpoint.build(parsed) == raw
    assert (sizeof(cp.Checkpoint), cp.CHECKPOINT_HEAD_SIZE) == (4096, 40)


def test_checkpoint_from_its_fields() -> None:
    fields = dict.fromkeys(
        ["physic_msg_timestamp", "logics_msg_timestamp", "index_msg_timestamp", "master_flushed_offset"], 1
    )
    raw = cp.Checkpoint.build({**fields, "confirm_physical_offset": -1})
    assert raw == (bytes(7) + b"\1") * 4 + b"\xff" * 8 + bytes(4056)


@pytest.mark.parametrize("length", [0, 1, 8, 24, 40, 4095, 4097, 5000])
def test_checkpoint_of_another_length(length: int) -> None:
    """Read as by a broker: zeros where bytes are missing, nothing behind 4096."""
    raw = HEAD.ljust(5000, b"\7")[:length]
    parsed = cp.parse_checkpoint(raw)
    assert cp.Checkpoint.build(parsed) == raw[:4096].ljust(4096, b"\0")


@pytest.mark.parametrize(
    ("physic", "logics", "index", "expected"),
    [
        (1700000000123, 1700000000999, 5, (1699999997123, 5)),
        (10_000, 9_000, 7_000, (6_000, 6_000)),
        (2_999, 10_000, 9, (0, 0)),
        (-5, 10_000, -1, (0, -1)),
    ],
)
def test_where_recovery_starts(physic: int, logics: int, index: int, expected: tuple[int, int]) -> None:
    raw = b"".join(n.to_bytes(8, "big", signed=True) for n in (physic, logics, index))
    parsed = cp.parse_checkpoint(raw)
    assert (cp.min_timestamp(parsed), cp.min_timestamp_index(parsed)) == expected


@pytest.mark.parametrize(("raw", "pid"), [(b"", None), (b"29388", 29388), (b"0", 0)])
def test_abort(raw: bytes, pid: int | None) -> None:
    assert cp.Abort.parse_exact(raw) == pid
    assert cp.Abort.build(pid) == raw


@pytest.mark.parametrize("raw", [b"\n", b"12\n", b"-1", b"x", b"012", b"\xff", b"1" * 5000])
def test_abort_with_something_else(raw: bytes) -> None:
    with pytest.raises(FormatError):
        cp.Abort.parse(raw)


def test_lock() -> None:
    assert cp.Lock.build(None) == b"lock"
    assert cp.Lock.parse_exact(b"lock") == b"lock"
    for raw in (b"", b"loc", b"LOCK"):
        with pytest.raises(FormatError):
            cp.Lock.parse(raw)


def test_epoch_vector() -> None:
    parsed = cp.EpochFile.parse(EPOCH)
    assert (parsed.entries, parsed.count, parsed.crc) == (ENTRIES, 2, 773307083)
    assert parsed.is_valid
    assert cp.EpochFile.of(ENTRIES) == parsed
    assert parsed.build() == EPOCH


@given(
    st.lists(st.builds(cp.EpochEntry, st.integers(0, (1 << 31) - 1), st.integers(-(1 << 63), (1 << 63) - 1))),
    st.sampled_from([b"\n", b"\r\n"]),
)
def test_epoch_files_round_trip(entries: list[cp.EpochEntry], separator: bytes) -> None:
    made = cp.EpochFile.of(entries, separator)
    parsed = cp.EpochFile.parse(made.build())
    assert parsed == made
    assert parsed.is_valid
    assert len(made.build().split(separator)) == len(entries) + 3


@pytest.mark.parametrize(
    "raw",
    [
        EPOCH.replace(b"2\n", b"3\n", 1),
        EPOCH.replace(b"773307083", b"773307084"),
        EPOCH.replace(b"8000", b"8001"),
        b"1\n773307083\n7-7000\n",
        b"3\n773307083\n7-7000\n8-8000\n9-9000\n",
    ],
)
def test_epoch_files_that_a_broker_refuses(raw: bytes) -> None:
    parsed = cp.EpochFile.parse(raw)
    assert not parsed.is_valid
    assert parsed.build() == raw


def test_epoch_file_without_last_line_end() -> None:
    parsed = cp.EpochFile.parse(EPOCH[:-1])
    assert parsed.is_valid
    assert parsed.build() == EPOCH[:-1]


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        (b"", "epoch"),
        (b"2\n", "epoch"),
        (b"x\n1\n", "epoch.line 1"),
        (b"2147483648\n1\n", "epoch.line 1"),
        (b"1\n\n1-2\n", "epoch.line 2"),
        (b"1\n1\n12\n", "epoch.line 3"),
        (b"1\n1\n1-2\n\n", "epoch.line 4"),
        (b"1\n1\n1-9223372036854775808\n", "epoch.line 3"),
        (b"1\n1\n" + b"9" * 5000 + b"-1", "epoch.line 3"),
        (b"1\r\n1\r\n1-2\n3-4\r\n", "epoch.line 3"),
    ],
)
def test_texts_that_are_no_epoch_file(raw: bytes, path: str) -> None:
    with pytest.raises(FormatError) as caught:
        cp.EpochFile.parse(raw)
    assert caught.value.path == path


def test_broker_identity() -> None:
    made = cp.BrokerIdentity("DefaultCluster", "broker-a", 1)
    assert made.build() == b"DefaultCluster#broker-a#1"
    assert cp.BrokerIdentity.parse(b"DefaultCluster#broker-a#1") == made
    for raw in (b"", b"a#b", b"a#b#c", b"a#b#1\n", b"a#b#1#2", b"\xff#b#1"):
        with pytest.raises(FormatError):
            cp.BrokerIdentity.parse(raw)
    with pytest.raises(FormatError):
        cp.BrokerIdentity("a#", "b", 1).build()
