"""Every schema of the package by name, and values that fit it."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from formats import (
    batch,
    checkpoint,
    commitlog,
    consumequeue,
    crc_trailer,
    dledger,
    index,
    message_id,
    primitives,
    timer,
)
from formats import properties as props

I8, I16, I32, I64 = (st.integers(-(1 << bits - 1), (1 << bits - 1) - 1) for bits in (8, 16, 32, 64))
BIG = 1 << 16

FIXED: dict[str, primitives.Schema] = {
    "primitives.HostV4": primitives.HostV4,
    "primitives.HostV6": primitives.HostV6,
    **{f"commitlog.HEADERS {key}": schema for key, schema in commitlog.HEADERS.items()},
    "commitlog.Blank": commitlog.Blank,
    "consumequeue.Unit": consumequeue.Unit,
    "consumequeue.BatchUnit": consumequeue.BatchUnit,
    "crc_trailer.CrcTrailer": crc_trailer.CrcTrailer,
    "index.Header": index.Header,
    "index.Slot": index.Slot,
    "index.Item": index.Item,
    "index.index_file(3, 2)": index.index_file(3, 2),
    "message_id.OffsetIdV4": message_id.OffsetIdV4,
    "message_id.OffsetIdV6": message_id.OffsetIdV6,
    "message_id.UniqueIdV4": message_id.UniqueIdV4,
    "message_id.UniqueIdV6": message_id.UniqueIdV6,
    "checkpoint.Checkpoint": checkpoint.Checkpoint,
    "checkpoint.Lock": checkpoint.Lock,
    "dledger.EntryHead": dledger.EntryHead,
    "dledger.IndexUnit": dledger.IndexUnit,
    "timer.TimerUnit": timer.TimerUnit,
    "timer.WheelSlot": timer.WheelSlot,
    "timer.TimerCheck": timer.TimerCheck,
}

VARIABLE: dict[str, primitives.Schema] = {
    "commitlog.Message": commitlog.Message,
    "batch.ClientMessage": batch.ClientMessage,
    "batch.ClientMessages": batch.ClientMessages,
    "consumequeue.ExtUnit": consumequeue.ExtUnit,
    "properties.Properties": props.Properties,
    "checkpoint.Abort": checkpoint.Abort,
}

SCHEMAS = FIXED | VARIABLE

TEXT = st.text(st.characters(exclude_characters="\x01\x02", exclude_categories=["Cs"]), max_size=20)


@st.composite
def addresses(draw: st.DrawFn) -> tuple[bytes, int]:
    """An (ip, port) of either width."""
    return draw(st.binary(min_size=4, max_size=4) | st.binary(min_size=16, max_size=16)), draw(I32)


@st.composite
def message_arguments(draw: st.DrawFn) -> dict[str, Any]:
    """Arguments of `encode_message`: any values that fit the fields."""
    return {
        "topic": draw(TEXT | st.integers(0, 300).map("x".__mul__)),
        "body": draw(st.binary(max_size=200)),
        "properties": draw(st.binary(max_size=200)),
        "queue_id": draw(I32),
        "flag": draw(I32),
        "queue_offset": draw(I64),
        "physical_offset": draw(I64),
        "sys_flag": draw(I32),
        "born_timestamp": draw(I64),
        "born_host": draw(addresses()),
        "store_timestamp": draw(I64),
        "store_host": draw(addresses()),
        "reconsume_times": draw(I32),
        "prepared_transaction_offset": draw(I64),
        "magic": draw(st.sampled_from([None, commitlog.MESSAGE_MAGIC_CODE_V2])),
    }


def messages() -> st.SearchStrategy[bytes]:
    """Whole records."""
    return message_arguments().map(lambda arguments: commitlog.encode_message(**arguments))


def client_batches() -> st.SearchStrategy[bytes]:
    """Bodies of batches."""
    one = st.tuples(st.binary(max_size=40), st.binary(max_size=40), I32)
    return st.lists(one, max_size=5).map(batch.encode_batch)


def ext_units() -> st.SearchStrategy[bytes]:
    """Extension units."""
    return st.builds(consumequeue.encode_ext_unit, I64, I64, st.binary(max_size=40))


def bytes_for(name: str) -> st.SearchStrategy[bytes]:
    """Bytes that the schema of this name accepts."""
    constant = {
        "commitlog.Blank": I32.map(lambda length: commitlog.Blank.build({"total_size": length})),
        "crc_trailer.CrcTrailer": st.integers(0, 0x7FFFFFFF).map(crc_trailer.build),
        "checkpoint.Lock": st.just(b"lock"),
        "checkpoint.Abort": st.just(b"") | st.integers(0, 1 << 22).map(lambda pid: str(pid).encode()),
        "commitlog.Message": messages(),
        "batch.ClientMessage": client_batches().filter(bool),
        "batch.ClientMessages": client_batches(),
        "consumequeue.ExtUnit": ext_units(),
        "properties.Properties": st.binary(max_size=80) | st.text("ab\x01\x02é").map(str.encode),
    }
    if name in constant:
        return constant[name]
    size = primitives.sizeof(FIXED[name])
    head = min(size, 200)
    return st.binary(min_size=head, max_size=head).map(lambda raw: raw.ljust(size, b"\0"))
