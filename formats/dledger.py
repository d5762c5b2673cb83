"""DLedger's index files: a unit for each entry of its data files (`DLedgerMmapFileStore`)."""

from __future__ import annotations

import construct as cs

from formats.primitives import Schema

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

INDEX_MAGIC = 1
"""`magic` of every unit, as of every entry"""
