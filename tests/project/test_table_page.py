"""docs/table.md lists the columns that the record table has, with their types."""

from __future__ import annotations

import re

from rmqtool.output.int64 import is_int64
from rmqtool.scan.table import COLUMNS
from tests.project.files import ROOT

ROW = re.compile(r"^\| `(\w+)` \| ([\w&;, ]+) \|", re.MULTILINE)


def documented() -> dict[str, str]:
    page = (ROOT / "docs" / "table.md").read_text(encoding="utf-8").split("A `dump` has other rows")[0]
    return dict(ROW.findall(page))


def test_columns_and_types_are_documented() -> None:
    kinds = {name: str(column.type) for name, column in COLUMNS.items()}
    short = {name: re.sub(r"(list|map).*", r"\1", kind) for name, kind in kinds.items()}
    assert {name: re.sub(r"&lt;.*", "", kind) for name, kind in documented().items()} == short
    assert list(documented()) == list(COLUMNS)


def test_int64_columns_are_strings_for_javascript() -> None:
    for name, column in COLUMNS.items():
        assert is_int64(name) == (str(column.type) == "int64"), name
