"""Timer log, timer wheel, DLedger entries: known bytes."""

from __future__ import annotations

from formats import dledger, timer
from formats.primitives import dtype_of, sizeof

UNIT = bytes.fromhex(
    "00000034 FFFFFFFFFFFFFFFF 00000001 0000018BCFE56800 0000EA60 0000000000000000 00000084 8E987641"
    "0000000000000000"
)
ENTRY = bytes.fromhex(
    "00000001 000000B4 0000000000000000 0000000000000001 0000000000000000 00000000 00000000 00000000 00000084"
)
INDEX_UNIT = bytes.fromhex("00000001 0000000000000000 000000B4 0000000000000000 0000000000000001")


def test_timer_unit() -> None:
    parsed = timer.TimerUnit.parse_exact(UNIT)
    assert (parsed.size, parsed.previous, parsed.magic) == (timer.TIMER_UNIT_SIZE, -1, 1)
    assert (parsed.write_time, parsed.delay) == (1_700_000_000_000, 60_000)
    assert (parsed.physical_offset, parsed.record_size) == (0, 132)
    assert timer.TimerUnit.build(parsed) == UNIT


def test_wheel() -> None:
    assert (sizeof(timer.WheelSlot), timer.WHEEL_SIZE) == (32, 38_707_200)
    assert dtype_of(timer.WheelSlot)["time"].str == ">i8"


def test_dledger() -> None:
    entry = dledger.EntryHead.parse_exact(ENTRY)
    assert (entry.size, entry.body_size, dledger.ENTRY_HEAD_SIZE) == (180, 132, 48)
    unit = dledger.IndexUnit.parse_exact(INDEX_UNIT)
    assert (unit.magic, unit.position, unit.size) == (entry.magic, entry.position, entry.size)
