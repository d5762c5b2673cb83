"""Every record of every API golden, dumped and compared with what the Java store itself reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import fixtures
from tests.golden.comparison import DUMP_OPTIONS, record_differences
from tests.helpers import rmq

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.mark.share
@pytest.mark.parametrize("name", fixtures.golden_names("api"))
def test_records_are_java_s(
    golden: Callable[[str], fixtures.Golden], store_unchanged: Callable[[Path], Path], name: str
) -> None:
    opened = golden(name)
    expected = opened.expected
    result = rmq("dump", store_unchanged(opened.path), *DUMP_OPTIONS)
    assert (result.exit_code, result.stderr) == (0, "")
    messages = result.of_type("message")
    assert [row["physical_offset"] for row in messages] == [r["physicalOffset"] for r in expected["records"]]
    for row, record in zip(messages, expected["records"], strict=True):
        assert record_differences(row, record, opened.release) == []
    blanks = [[row["physical_offset"], row["length"]] for row in result.of_type("blank")]
    assert blanks == expected["blanks"]
    assert result.of_type("gap") == []


@pytest.mark.share
@pytest.mark.parametrize("name", fixtures.golden_names("api"))
def test_the_summary_counts_what_java_counts(golden: Callable[[str], fixtures.Golden], name: str) -> None:
    opened = golden(name)
    rows = rmq("dump", opened.path, *DUMP_OPTIONS).rows
    assert [row["type"] for row in rows].count("summary") == 1
    summary = rows[-1]
    assert summary["type"] == "summary"
    expected = {
        "messages": len(opened.expected["records"]),
        "blanks": len(opened.expected["blanks"]),
        "gaps": 0,
        "first_offset": opened.expected["minPhyOffset"],
        "end_offset": opened.expected["maxPhyOffset"],
        "complete": True,
    }
    assert {key: summary[key] for key in expected} == expected


@pytest.mark.parametrize("name", ["v498-basic", "v533-v2", "v498-expired-head"])
def test_a_directory_and_single_files_dump_the_same_records(
    golden: Callable[[str], fixtures.Golden], name: str
) -> None:
    directory = golden(name).path / "commitlog"
    whole = rmq("dump", golden(name).path, *DUMP_OPTIONS)
    alone = rmq("dump", directory, *DUMP_OPTIONS)
    offsets = [row["physical_offset"] for row in whole.of_type("message")]
    assert [row["physical_offset"] for row in alone.of_type("message")] == offsets
    files = [rmq("dump", path, *DUMP_OPTIONS) for path in sorted(directory.iterdir())]
    assert [row["physical_offset"] for file in files for row in file.of_type("message")] == offsets
