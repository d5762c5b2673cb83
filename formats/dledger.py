"""DLedger's data files, whose entries hold a record each, and their index files.

docs/format/dledger.md; `DLedgerEntryCoder`, `DLedgerMmapFileStore`.
"""

from __future__ import annotations

import construct as cs

from formats.primitives import Schema, sizeof

EntryHead = Schema(
    cs.Struct(
        "magic" / cs.Int32sb,
        "size" / cs.Int32sb,
        "index" / cs.Int64sb,
        "term" / cs.Int64sb,
        "position" / cs.Int64sb,
        "channel" / cs.Int32sb,
        "chain_crc" / cs.Int32sb,
        "body_crc" / cs.Int32sb,
        "body_size" / cs.Int32sb,
    )
)
"""In front of the record: `size` counts both, `position` is where the entry begins in the data files."""

ENTRY_HEAD_SIZE = sizeof(EntryHead)

IndexUnit = Schema(
    cs.Struct(
        "magic" / cs.Int32sb,
        "position" / cs.Int64sb,
        "size" / cs.Int32sb,
        "index" / cs.Int64sb,
        "term" / cs.Int64sb,
    )
)
"""Unit n describes entry n: `size` bytes at `position` of the data files, written in `term`."""

MAGIC = 1
"""`magic` of every entry, and of every unit"""
