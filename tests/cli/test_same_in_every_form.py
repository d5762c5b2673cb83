"""A command says the same in every form: verdict, counts, what is not covered, exit code."""

from __future__ import annotations

import json
import re

import pytest

from fixtures.compound import make
from rmqtool.output.sentences import describe
from tests.cli.conforming import problems
from tests.helpers import rmq

COMMANDS = {
    "verify": (),
    "verify quick": ("--quick",),
    "dump": ("--body", "none"),
    "stats": (),
    "tail": ("-n", "3"),
    "query-key": ("Orders", "k"),
    "query-key scan": ("k", "--source", "scan"),
    "query-id": ("0A00000200002A9F0000000000000000",),
    "query-offset": ("Orders", "0", "0"),
    "query-time": ("Orders", "0", "0"),
    "sql": ("select count(*) as n from messages",),
}
"""those that list rows and close with a summary"""
DOCUMENTS = {"info": (), "show": ("0",), "doctor": (), "recover": (), "rebuild": ()}
HEADLINES = {
    "safe": "Safe to start",
    "damaged": "DAMAGED",
    "unsafe": "DO NOT START",
    "uncertain": "Not certain",
}


@pytest.fixture(scope="module", params=[20_004, 20_008])
def damaged(request, tmp_path_factory):
    """A store with several damages, and the option with its settings."""
    made = make(request.param, tmp_path_factory.mktemp("forms"))
    return made.root, "--store-config", made.conf


def in_form(name, damaged, *form):
    root, *options = damaged
    more = (COMMANDS | DOCUMENTS)[name]
    return rmq(name.split()[0], root, *more, *options, *form)


def without_time(summary):
    return {key: value for key, value in summary.items() if key not in ("type", "seconds")}


@pytest.mark.share
@pytest.mark.parametrize("name", COMMANDS)
def test_listings(damaged, name):
    table, ndjson = in_form(name, damaged), in_form(name, damaged, "--format", "ndjson")
    document = in_form(name, damaged, "--json")
    assert table.exit_code == ndjson.exit_code == document.exit_code
    reported = json.loads(document.stdout)
    assert problems(reported) == []
    *rows, last = ndjson.rows
    assert len(rows) == len(reported["rows"])
    summary = without_time(reported["summary"])
    assert without_time(last) == summary
    assert describe(summary) in re.sub(r", in [0-9.e-]+ s\b", "", table.stderr)
    assert all(f"{row['path']}: {row['error']}" in table.stderr for row in summary.get("not_covered", ())[:8]
               if "error" in row)  # fmt: skip
    if summary["complete"]:
        assert table.exit_code in (0, 1)
    elif summary["incomplete_reason"] != "limit":
        assert table.exit_code == (1 if name == "dump" else 3)


@pytest.mark.share
@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents(damaged, name):
    page, document = in_form(name, damaged), in_form(name, damaged, "--json")
    assert page.exit_code == document.exit_code
    reported = json.loads(document.stdout)
    assert problems(reported) == []
    if name == "doctor":
        assert page.stdout.startswith(HEADLINES[reported["verdict"]])
        for one in (one for one in reported["consequences"] if one["severity"] != "note"):
            assert one["code"] in page.stdout or "more, all of them with --json" in page.stdout
    elif name in ("recover", "rebuild"):
        changes = reported["summary"]["changes"]
        assert page.stdout.startswith(f"{changes:,} change" if changes else "Nothing to change")
