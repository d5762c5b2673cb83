"""Names on disk that are not text, or would move the cursor: the same everywhere, every form stays valid."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import orjson
import pytest

from fixtures.builder import HandmadeLog
from formats.consumequeue import Unit
from tests.cli.dumping import NDJSON
from tests.helpers import rmq

if TYPE_CHECKING:
    from pathlib import Path

RAW = b"T\xff\x1b[2J"
HOSTILE = "[/x]\x1b[2J\\n\n"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    log = HandmadeLog(segment_size=1024)
    log.put("TopicTest", b"x", {"UNIQ_KEY": "7F0000010BCC18B4AAC27C8E6D5A0000"})
    log.write(tmp_path / "commitlog")
    unit = Unit.build({"physical_offset": 0, "size": 150, "tags_code": 0})
    for name in (RAW, HOSTILE.encode().replace(b"/", b"\xe2\x88\x95")):
        queue = os.path.join(os.fsencode(tmp_path), b"consumequeue", name, b"0")
        os.makedirs(queue)
        with open(os.path.join(queue, b"%020d" % 0), "wb") as file:
            file.write(unit + bytes(20))
    (tmp_path / "config").mkdir()
    (tmp_path / "config/topics.json").write_text('{"topicConfigTable":{"\\ud800":{"perm":6},"B\\u001b":{}}}')
    return tmp_path


def test_units_of_a_topic_that_is_no_utf_8(store: Path) -> None:
    result = rmq("dump", store / "consumequeue", *NDJSON)
    assert result.exit_code == 0, result.stderr
    odd = [row for row in result.of_type("unit") if "topic_hex" in row]
    assert [(row["topic"], row["topic_hex"]) for row in odd] == [(None, RAW.hex())]
    assert odd[0]["path"] == f"consumequeue/T\\xff\\u001b[2J/0/{0:020d}"


def test_a_topic_of_controls_is_the_same_in_info_and_dump(store: Path) -> None:
    hostile = HOSTILE.replace("/", "\u2215")
    dumped = {row.get("topic") for row in rmq("dump", store / "consumequeue", *NDJSON).of_type("unit")}
    reported = orjson.loads(rmq("info", store, "--json").stdout)
    assert hostile in dumped
    for name in ("files", "queues", "topics"):
        assert hostile in {row.get("topic") for row in reported[name]}
        assert RAW.hex() in {row.get("topic_hex") for row in reported[name]}
    assert {b"\xed\xa0\x80".hex(), RAW.hex()} == {
        row["topic_hex"] for row in reported["topics"] if row["topic"] is None
    }


@pytest.mark.parametrize("form", ["table", "ndjson", "json", "csv"])
@pytest.mark.parametrize(
    "command", [("info",), ("verify",), ("dump", "consumequeue"), ("dump", "config"), ("show", "0")]
)
def test_every_form_of_every_command(store: Path, command: tuple[str, ...], form: str) -> None:
    verb, *rest = command
    place = [store / rest[0]] if verb == "dump" else [store, *rest]
    result = rmq(verb, *place, "--format", form)
    assert result.exit_code in {0, 1}, result.stderr
    assert "internal" not in result.stderr
    if form == "json":
        orjson.loads(result.stdout)
    elif form == "ndjson":
        assert [orjson.loads(line) for line in result.stdout.splitlines()][-1]["type"] == "summary"
    assert "\x1b" not in result.stdout
    assert "\x1b" not in result.stderr


def test_the_table_shows_bytes_as_escapes(store: Path) -> None:
    assert "T\\xff\\x1b[2J" in rmq("info", store).stdout


def test_an_id_is_looked_for_in_odd_topics_too(store: Path) -> None:
    assert rmq("show", store, "7F0000010BCC18B4AAC27C8E6D5A0000").exit_code == 0


@pytest.mark.parametrize(
    "content",
    [
        '{"a":1e999,"b":1' + 30 * "0" + "}",
        "{'a':NaN}",
        '{"\\ud800":"\\udfff"}',
        '{"a":' * 300 + "1" + "}" * 300,
    ],
)
@pytest.mark.parametrize("form", ["json", "ndjson", "csv", "table"])
def test_config_that_json_cannot_hold(store: Path, content: str, form: str) -> None:
    (store / "config/topics.json").write_text(content)
    for verb in (("dump", store / "config"), ("info", store), ("verify", store)):
        result = rmq(*verb, "--format", form)
        assert result.exit_code in {0, 1}, result.stderr
        if form in {"json", "ndjson"}:
            [
                orjson.loads(line)
                for line in (result.stdout.splitlines() if form == "ndjson" else [result.stdout])
            ]


def test_a_change_of_a_store_and_with_a_donor_of_names_that_are_no_utf_8(tmp_path: Path) -> None:
    """Planned, saved, carried out in place and on a copy, and put back."""
    store, donor, journal = (tmp_path / os.fsdecode(name) for name in (b"s\xff\\", b"d\xff\x1b", b"j\xff"))
    log = HandmadeLog(segment_size=4096)
    for number in range(40):
        log.put("T", b"x" * 100, {"KEYS": f"k{number}"})
    log.write(store / "commitlog")
    log.write(donor / "commitlog")
    segment = store / "commitlog" / f"{0:020d}"
    with segment.open("r+b") as file:
        file.seek(1000)
        file.write(b"\xee" * 50)
    damaged = segment.read_bytes()
    planned = rmq("recover", store, "--donor", donor, "--save-plan", tmp_path / "plan", *NDJSON)
    summary = planned.rows[-1]
    assert (planned.exit_code, summary["store"]) == (1, f"{tmp_path}/s\\xff\\\\")
    assert summary["parameters"]["donors"] == [f"{tmp_path}/d\\xff\\u001b"]
    copied = rmq("recover", store, "--plan", tmp_path / "plan", "--output", tmp_path / "out", "--apply")
    assert copied.exit_code == 0, copied.stderr
    whole = (donor / "commitlog" / f"{0:020d}").read_bytes()
    assert (tmp_path / "out/commitlog" / f"{0:020d}").read_bytes() == whole
    words = ("--plan", tmp_path / "plan", "--in-place", "--backup", journal, "--apply")
    changed = rmq("recover", store, *words)
    assert (changed.exit_code, segment.read_bytes()) == (0, whole), changed.stderr
    undone = rmq("undo", journal, "--apply")
    assert (undone.exit_code, segment.read_bytes()) == (0, damaged), undone.stderr
