"""The layout tables in docs/format say what the schemas say."""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module
from pathlib import Path

import pytest

import formats
from formats import batch, commitlog, consumequeue, crc_trailer, dledger, ha, index, message_id, replay, timer
from formats import checkpoint as cp
from formats.errors import FormatError
from formats.primitives import Schema, dtype_of, offset_of

DOCS = Path(__file__).parents[2] / "docs" / "format"
MARK = re.compile(r"<!-- layout: (\S+) -->\n((?:\|.*\n)+)")
LAYOUTS: dict[str, dict[str, Schema]] = {
    "commitlog.HEADERS": {
        "v4/v4": commitlog.HEADERS[(False, False)],
        "v6/v4": commitlog.HEADERS[(True, False)],
        "v4/v6": commitlog.HEADERS[(False, True)],
        "v6/v6": commitlog.HEADERS[(True, True)],
    },
    "commitlog.Blank": {"Offset": commitlog.Blank},
    "crc_trailer.CrcTrailer": {"Offset": crc_trailer.CrcTrailer},
    "batch.ClientMessage": {"Offset": batch.ClientMessage},
    "message_id.OffsetIdV4": {"Offset": message_id.OffsetIdV4},
    "message_id.UniqueIdV4": {"Offset": message_id.UniqueIdV4},
    "consumequeue.Unit": {"Offset": consumequeue.Unit},
    "consumequeue.BatchUnit": {"Offset": consumequeue.BatchUnit},
    "consumequeue.ExtUnit": {"Offset": consumequeue.ExtUnit},
    "ha.SlaveReport": {"Offset": ha.SlaveReport},
    "ha.TransferHeader": {"Offset": ha.TransferHeader},
    "index.Header": {"Offset": index.Header},
    "index.Item": {"Offset": index.Item},
    "checkpoint.Checkpoint": {"Offset": cp.Checkpoint},
    "dledger.EntryHead": {"Offset": dledger.EntryHead},
    "dledger.IndexUnit": {"Offset": dledger.IndexUnit},
    "timer.TimerUnit": {"Offset": timer.TimerUnit},
    "timer.WheelSlot": {"Offset": timer.WheelSlot},
    "timer.TimerCheck": {"Offset": timer.TimerCheck},
    "replay.Header": {"Offset": replay.Header},
    "replay.EntryHead": {"Offset": replay.EntryHead},
    "replay.End": {"Offset": replay.End},
}


def tables() -> dict[str, list[dict[str, str]]]:
    found = {}
    for page in sorted(DOCS.glob("*.md")):
        for name, text in MARK.findall(page.read_text(encoding="utf-8")):
            header, _, *rows = (
                [cell.strip() for cell in line.split("|")[1:-1]] for line in text.splitlines()
            )
            assert name not in found, f"{name} is described twice"
            found[name] = [dict(zip(header, row, strict=True)) for row in rows]
    return found


TABLES = tables()


def leaves(schema: Schema) -> list[str]:
    """The dotted names of all fields that are not structs."""
    names = []
    for member in schema.subcon.subcons:
        if member.name is None:
            continue
        inner = getattr(member.subcon, "subcon", None)
        nested = getattr(inner, "subcons", None)
        names += [f"{member.name}.{part.name}" for part in nested] if nested else [member.name]
    return names


def type_name(schema: Schema, path: str) -> str:
    dtype = dtype_of(schema)
    for name in path.split("."):
        dtype = dtype[name]
    return "bytes" if dtype.kind == "V" else f"{dtype.kind}{8 * dtype.itemsize}"


def test_every_layout_is_described() -> None:
    assert set(TABLES) == set(LAYOUTS)


@pytest.mark.parametrize("name", LAYOUTS)
def test_offsets(name: str) -> None:
    rows = TABLES[name]
    for column, schema in LAYOUTS[name].items():
        described = {row["Field"].strip("`"): int(row[column]) for row in rows}
        assert described == {field: offset_of(schema, field) for field in described}


@pytest.mark.parametrize("name", LAYOUTS)
def test_types(name: str) -> None:
    for schema in LAYOUTS[name].values():
        for row in TABLES[name]:
            field = row["Field"].strip("`")
            if row["Type"]:
                assert row["Type"] == type_of_fixed(schema, field), field


def type_of_fixed(schema: Schema, field: str) -> str:
    try:
        return type_name(schema, field)
    except FormatError:  # of variable length as a whole: take the members one by one
        member = next(part for part in schema.subcon.subcons if part.name == field)
        dtype = dtype_of(member)
        return f"{dtype.kind}{8 * dtype.itemsize}"


@pytest.mark.parametrize("name", sorted(set(LAYOUTS) - {"batch.ClientMessage", "consumequeue.ExtUnit"}))
def test_no_field_is_missing(name: str) -> None:
    described = [row["Field"].strip("`") for row in TABLES[name]]
    for schema in LAYOUTS[name].values():
        assert described == leaves(schema)


def test_overheads_in_the_text() -> None:
    text = (DOCS / "commitlog.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (v[46][^|]*) \| (\d+) \| (\d+) \|$", text, flags=re.MULTILINE)
    flags = {"v4/v4": 0, "v6/v4": 0x10, "v4/v6": 0x20, "v6/v6": 0x30}
    described = {hosts: (int(v1), int(v2)) for cell, v1, v2 in rows for hosts in cell.strip().split(", ")}
    magics = (commitlog.MESSAGE_MAGIC_CODE, commitlog.MESSAGE_MAGIC_CODE_V2)
    assert described == {
        hosts: tuple(commitlog.overhead(magic, flag) for magic in magics) for hosts, flag in flags.items()
    }


def test_pages_named_in_docstrings_exist() -> None:
    modules = [import_module(f"formats.{one.name}") for one in pkgutil.iter_modules(formats.__path__)]
    named = {page for one in modules for page in re.findall(r"docs/format/([\w-]+\.md)", one.__doc__ or "")}
    pages = {page.name for page in DOCS.glob("*.md")}
    assert named
    assert named <= pages
