"""The table: every wording has a line that it explains, and every line of the real stores is explained."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import typer.core

import fixtures
from rmqtool.cli.commands import COMMANDS, load_command
from rmqtool.explain.derived import DERIVED
from rmqtool.explain.entry import SEVERITIES, Entry
from rmqtool.explain.match import Table

TABLE = Table()
LINES = [
    (entry_id, origin, line.replace("\\t", "\t"))
    for entry_id, origin, line in (
        row.split("\t") for row in Path(__file__).with_name("lines.tsv").read_text("utf-8").splitlines()
    )
]
"""id, release and `Class#method` (or - where no logger writes it), the line with its values filled in"""


def test_every_line_is_explained_by_its_own_entry() -> None:
    wrong = [
        (entry_id, line, found and found.entry.id)
        for entry_id, _, line in LINES
        if (found := TABLE.find(line)) is None or found.entry.id != entry_id
    ]
    assert wrong == []


def test_every_wording_has_a_line() -> None:
    lines: dict[str, list[str]] = {}
    for entry_id, _, line in LINES:
        lines.setdefault(entry_id, []).append(line)
    missing = [
        (entry.id, wording)
        for entry in TABLE.entries
        for wording, pattern in zip(entry.lines, entry.patterns, strict=True)
        if not any(pattern.search(line) for line in lines.get(entry.id, []))
    ]
    assert missing == []


def test_the_table_is_large() -> None:
    assert len(TABLE.entries) > 300
    assert sum(origin[0].isdigit() for _, origin, _ in LINES) > 700


def test_ids_are_unique_and_severities_known() -> None:
    ids = [entry.id for entry in TABLE.entries]
    assert len(ids) == len(set(ids))
    assert {entry.severity for entry in TABLE.entries} == set(SEVERITIES)


@pytest.mark.parametrize("entry", TABLE.entries, ids=lambda entry: entry.id)
def test_an_entry_is_complete(entry: Entry) -> None:
    assert re.fullmatch(r"[a-z-]+\.[a-z-]+", entry.id)
    assert entry.meaning.endswith((".", ".)"))
    assert entry.look.endswith((".", "?"))
    assert all(re.fullmatch(r"F\d\d", one) for one in entry.incidents)
    assert all(re.fullmatch(r"[A-Z][\w.]+(#\w+)?", one) for one in entry.source)
    assert all(len(anchor) >= 5 for anchor in entry.anchors)
    if entry.derive is not None:
        assert set(DERIVED[entry.derive].needs) <= entry.names


def test_next_commands_exist_with_their_options() -> None:
    for entry in TABLE.entries:
        for line in entry.next:
            name, *words = line.split()
            assert name in COMMANDS, entry.id
            assert words[0] == "STORE", entry.id
            options = {option for one in load_command(name).params for option in one.opts}
            assert isinstance(load_command(name), typer.core.TyperCommand)
            assert {word for word in words if word.startswith("--")} <= options, entry.id
            values = {word[1:-1] for word in words if word.startswith("{")}
            known = set().union(*(pattern.groupindex for pattern in entry.patterns))
            assert values <= known, entry.id


def logged() -> dict[str, str]:
    """Store log lines of all damaged stores, one for each form."""
    found: dict[str, str] = {}
    for case in fixtures.damage_cases():
        for line in case.facts.get("log") or case.result.get("log") or []:
            found.setdefault(re.sub(r"\d+", "#", line), line)
    return found


def test_every_line_of_the_damaged_stores_is_explained() -> None:
    lines = logged()
    assert len(lines) > 100
    unexplained = []
    for line in lines.values():
        if re.fullmatch(r"\.\.\. \d+ more lines", line):
            continue
        message = line.split("|", 2)[-1]
        unexplained += [part for part in message.split("|") if TABLE.find(part) is None]
    assert unexplained == []


@pytest.mark.parametrize(
    ("line", "entry_id"),
    [
        ("found a illegal magic code 0x0", "recovery.magic-zero"),
        ("found a illegal magic code 0x00a1", "recovery.magic-foreign"),
        ("found a illegal magic code 0x696e4d73", "recovery.magic-foreign"),
        ("CODE: 14 DESC: x", "answer.disk-full-code"),
        ("CODE: 2  DESC: x", "answer.system-busy-code"),
        ("CODE: 206  DESC: x", "answer.code"),
        ("delete file[REF:0] /s/index/20261121091723745 OK, W:0 M:0, 0", "files.deleted-index"),
        (
            "delete file[REF:0] /s/commitlog/00000000000000262144 OK, W:65536 M:65536, 6",
            "files.deleted-segment",
        ),
    ],
)
def test_special_cases_come_first(line: str, entry_id: str) -> None:
    found = TABLE.find(line)
    assert found is not None
    assert found.entry.id == entry_id


def test_looking_up_equals_finding_whatever_came_before() -> None:
    table = Table()
    lines = [f"CODE: {code} DESC: x" for code in (206, 14, 2, 15, 17, 206)]
    lines += [f"found a illegal magic code 0x{code}" for code in ("0", "1", "00", "7", "0")]
    lines += ["in-sync replicas not enough", "nothing known 1", "nothing known 22"]
    for line in lines * 2:
        expected = TABLE.find(line)
        found, _ = table.look_up(line)
        assert (found and found.entry.id) == (expected and expected.entry.id), line
