"""What a command cannot read, decode or show is said: never an exit 0 over it, never a leak past --redact."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.builder import HandmadeLog
from rmqtool.errors import UsageError
from rmqtool.output.times import zone_of
from tests.disks import refuse
from tests.helpers import rmq

if TYPE_CHECKING:
    from pathlib import Path

NDJSON = ("--format", "ndjson")
SECRET = "secret-body-and-key"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    log = HandmadeLog(segment_size=1024)
    for number in range(12):
        log.put("TopicTest", SECRET.encode(), {"KEYS": f"{SECRET}-{number}", "UNIQ_KEY": f"u{number}"})
    log.write(tmp_path / "commitlog")
    queue = tmp_path / "consumequeue/TopicTest/0"
    queue.mkdir(parents=True)
    (queue / f"{0:020d}").write_bytes(bytes(11) + b"\x7e" + bytes(28))
    (tmp_path / "config").mkdir()
    return tmp_path


def unlisted(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Directories called `name` cannot be listed."""
    refuse(monkeypatch, "scandir", when=lambda path: os.path.basename(path.rstrip("/")) == name)


@pytest.mark.parametrize("options", [(), ("--quiet",)])
def test_a_log_that_cannot_be_listed_is_not_an_empty_one(
    store: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    unlisted(monkeypatch, "commitlog")
    result = rmq("dump", store, *NDJSON, *options)
    assert result.exit_code == 3
    summary = result.rows[-1]
    assert (summary["complete"], summary["incomplete_reason"]) == (False, "unreadable")
    missing = {"path": "commitlog", "reason": "unreadable", "error": "Permission denied"}
    assert summary["not_covered"] == [missing]
    assert result.stderr.count("Permission denied") == 1


def test_other_directories_are_no_matter_of_the_log(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unlisted(monkeypatch, "config")
    assert rmq("dump", store, *NDJSON).exit_code == 0


def test_a_queue_that_cannot_be_listed(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (store / "consumequeue/TopicTest/1").mkdir()
    unlisted(monkeypatch, "1")
    result = rmq("dump", store / "consumequeue", *NDJSON)
    assert result.exit_code == 3
    assert [one["path"] for one in result.rows[-1]["not_covered"]] == ["consumequeue/TopicTest/1"]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"{}", 0),
        (b"", 0),
        (b'{"offsetTable":{"a@b":{0:1}}}', 0),
        (b'{"offsetTable":{"a@', 1),
        (bytes(200), 1),
    ],
)
def test_a_config_file_that_is_none_is_damage(store: Path, content: bytes, code: int) -> None:
    path = store / "config/consumerOffset.json"
    path.write_bytes(content)
    for target in (path, path.parent):
        result = rmq("dump", target, *NDJSON)
        assert result.exit_code == code
        assert result.rows[-1]["damaged"] == code


def test_an_epoch_file_with_a_wrong_checksum_is_damage(store: Path) -> None:
    path = store / "epochFileCheckpoint"
    path.write_bytes(b"1\n12345\n1-0\n")
    result = rmq("dump", path, *NDJSON)
    assert result.of_type("epoch_file")[0]["crc"] == "bad"
    assert result.exit_code == 1


def test_a_unit_that_can_point_nowhere_is_damage(store: Path) -> None:
    path = store / f"consumequeue/TopicTest/0/{0:020d}"
    path.write_bytes(b"\xff" * 20 + path.read_bytes()[20:])
    result = rmq("dump", path, *NDJSON)
    assert result.of_type("unit")[0]["state"] == "invalid"
    assert (result.exit_code, result.rows[-1]["damaged"]) == (1, 1)


def test_a_folder_of_which_nothing_is_decoded(golden: Any) -> None:
    folder = golden("b533-timer").path / "timerlog"
    result = rmq("dump", folder, *NDJSON)
    assert {row["type"] for row in result.rows[:-1]} == {"undecoded"}
    assert result.exit_code == 6


@pytest.mark.parametrize(
    "option", ["--topic", "--tag", "--key", "--uniq-key", "--property", "--body-contains"]
)
def test_a_filter_that_is_no_utf_8(store: Path, option: str) -> None:
    result = rmq("dump", store, option, "a=\udcff")
    assert result.exit_code == 2
    assert result.stderr == f"rmqtool: {option}: 'a=\\udcff' is not UTF-8 text\n"


@pytest.mark.parametrize("text", ["+08:60", "+08:99", "+\u0663"])
def test_an_offset_of_no_zone(text: str) -> None:
    with pytest.raises(UsageError):
        zone_of(text)


def test_a_sample_keeps_physical_order(store: Path) -> None:
    with (store / f"commitlog/{0:020d}").open("r+b") as file:
        file.seek(200)
        file.write(b"\xff" * 300)
    whole = rmq("dump", store, *NDJSON).rows[:-1]
    assert "gap" in {row["type"] for row in whole}
    for size in (1, 3, 6, 100):
        rows = rmq("dump", store, *NDJSON, "--sample", size).rows[:-1]
        assert [row["physical_offset"] for row in rows] == sorted(row["physical_offset"] for row in rows)
        assert sum(row["type"] == "message" for row in rows) == min(
            size, sum("topic" in row for row in whole)
        )
        assert [row for row in rows if row["type"] != "message"] == [
            row for row in whole if row["type"] != "message"
        ]


@pytest.mark.parametrize("form", ["raw", "hex"])
@pytest.mark.parametrize("option", ["--body", "--body-sha256"])
@pytest.mark.parametrize("verb", [("dump",), ("show", "0")])
def test_whole_records_have_no_body_forms(store: Path, form: str, option: str, verb: tuple[str, ...]) -> None:
    result = rmq(verb[0], store, *verb[1:], "--format", form, option)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "cannot be combined" in result.stderr


@pytest.mark.parametrize("form", ["table", "json", "ndjson", "csv"])
@pytest.mark.parametrize("offset", [0, 100])
def test_damaged_records_are_redacted_too(store: Path, form: str, offset: int) -> None:
    with (store / f"commitlog/{0:020d}").open("r+b") as file:
        file.seek(4)
        file.write(bytes(4))
    result = rmq("show", store, offset, "--redact", "body,keys,hosts,properties", "--format", form)
    assert result.exit_code == 1
    hidden = SECRET[:6].encode()
    assert "secret" not in result.stdout
    assert hidden.hex() not in result.stdout
    assert hidden.hex(" ") not in result.stdout


def test_the_read_rate_holds_for_all_files(store: Path) -> None:
    path = store / f"consumequeue/TopicTest/0/{0:020d}"
    begun = time.monotonic()
    assert rmq("dump", path, *NDJSON, "--max-read-rate", "100").exit_code == 0
    assert time.monotonic() - begun >= 0.4


@pytest.mark.parametrize("terminal", [False, True])
def test_output_to_a_file_leaves_the_bar_on_the_screen(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *, terminal: bool
) -> None:
    from rmqtool.cli import context
    from rmqtool.cli.options import OutputOptions

    monkeypatch.setattr(context, "is_terminal", lambda stream: terminal)
    shown = context.Context(OutputOptions())
    cleared: list[bool] = []
    with shown.progress("reading", 100) as bar:
        monkeypatch.setattr(bar, "clear", lambda: cleared.append(True))
        shown.out.write(b"x")
        shown.out.flush()
        assert bool(cleared) is terminal


def test_abort_is_unknown_without_the_root(store: Path) -> None:
    (store / "abort").write_bytes(b"")
    for path, exists in ((store, True), (store / "commitlog", None)):
        result = rmq("info", path, "--json")
        assert json.loads(result.stdout)["abort"]["exists"] is exists
    assert "shut down cleanly" not in rmq("info", store / "commitlog").stdout


@pytest.mark.parametrize("place", ["", "commitlog", "consumequeue", f"commitlog/{0:020d}"])
def test_a_part_of_a_live_store_is_live(store: Path, place: str) -> None:
    (store / "lock").write_bytes(b"lock")
    code = "import fcntl,sys; f=open(sys.argv[1],'r+'); fcntl.lockf(f,2,1,0); print(flush=True); input()"
    command = [sys.executable, "-c", code, str(store / "lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as broker:
        assert broker.stdout is not None
        broker.stdout.readline()
        result = rmq("dump", store / place, *NDJSON)
        broker.kill()
    assert f"process {broker.pid} holds it" in result.stderr


@pytest.mark.parametrize("verb", ["info", "dump", "show"])
def test_an_empty_store_argument_is_not_the_working_directory(
    store: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    monkeypatch.chdir(store)
    result = rmq(verb, "", *(["0"] if verb == "show" else []))
    assert (result.exit_code, result.stderr) == (2, "rmqtool: STORE is empty\n")


def test_all_byte_counts_are_strings_for_javascript(store: Path) -> None:
    info = json.loads(rmq("info", store, "--json", "--int64-as-string").stdout)
    assert all(isinstance(one["disk_bytes"], str) for one in info["files"])
    summary = rmq("dump", store, *NDJSON, "--int64-as-string").rows[-1]
    assert (summary["bytes"], summary["gap_bytes"]) == (str(int(summary["bytes"])), "0")


def test_one_offset_that_is_no_number_costs_the_table(store: Path) -> None:
    """Seen with 4.9.7 and 5.3.3: the whole file is refused, and the .bak loaded."""
    table = store / "config/consumerOffset.json"
    table.write_text('{"offsetTable":{"TopicTest@A":{0:5,1:"x"},"TopicTest@B":{0:7}}}')
    for release in ("4.9.8", "5.3.3"):
        alone = json.loads(rmq("doctor", store, "--as-version", release, "--json").stdout)
        loads = {"path": "config/consumerOffset.json", "loads": "empty"}
        assert (alone["verdict"], alone["config"]) == ("unsafe", [loads])
    backup = store / "config/consumerOffset.json.bak"
    backup.write_text('{"offsetTable":{"TopicTest@A":{0:"4"}}}')
    outcome = json.loads(rmq("doctor", store, "--as-version", "5.3.3", "--json").stdout)
    assert (outcome["verdict"], outcome["config"]) == (
        "unsafe",
        [{"path": "config/consumerOffset.json", "loads": "bak"}],
    )
    codes = [row["code"] for row in rmq("verify", store, *NDJSON).rows if row["type"] == "finding"]
    assert {"CFG-PRIMARY", "CFG-OFFSET-VALUE"} <= set(codes)
    listed = rmq("sql", store, "select consumer_group, committed_offset from consumer_offsets", *NDJSON)
    assert [(row["consumer_group"], row["committed_offset"]) for row in listed.rows[:-1]] == [("A", 4)]
    assert (listed.exit_code, listed.rows[-1]["incomplete_reason"]) == (3, "damage")
    assert 'offsetTable.TopicTest@A.1 is "x"' in listed.rows[-1]["not_covered"][0]["error"]


def test_what_brokers_cannot_read_is_left_out_of_the_table(store: Path) -> None:
    (store / "config/consumerOffset.json").write_text(
        '{"offsetTable":{"TopicTest@A":{0:5,1:"x"},"TopicTest@B":{0:7}}}'
    )
    planned = rmq("recover", store, "--as-version", "5.3.3", *NDJSON)
    [change] = [row for row in planned.rows if row.get("path") == "config/consumerOffset.json"]
    assert (change["why"], change["lost_values"]) == ("config-salvaged", ["offsetTable.TopicTest@A.1"])
    made = store.with_name("made")
    assert rmq("recover", store, "--as-version", "5.3.3", "--output", made, "--apply").exit_code == 0
    left = json.loads((made / "config/consumerOffset.json").read_text())
    assert left == {"offsetTable": {"TopicTest@A": {"0": 5}, "TopicTest@B": {"0": 7}}}
