"""What a summary says about the rest: one shape for every reason, and nothing is left out in silence."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from fixtures.builder import HandmadeLog
from formats.consumequeue import Unit
from rmqtool.scan.log import Piece
from tests.cli.dumping import NDJSON
from tests.cli.test_said_not_hidden import unlisted
from tests.disks import refuse
from tests.helpers import rmq

SEGMENT = 4096
UNITS = 6


@pytest.fixture
def log() -> HandmadeLog:
    log = HandmadeLog(segment_size=SEGMENT)
    for number in range(48):
        log.put("TopicTest", b"x" * 100, {"KEYS": f"k{number}"})
    return log


@pytest.fixture
def store(tmp_path: Path, log: HandmadeLog) -> Path:
    log.write(tmp_path / "commitlog")
    for queue, units in ((0, UNITS), (1, 2)):
        path = tmp_path / f"consumequeue/TopicTest/{queue}/{0:020d}"
        path.parent.mkdir(parents=True)
        parts = [Unit.build({"physical_offset": n, "size": 150, "tags_code": 1}) for n in range(units)]
        path.write_bytes(b"".join(parts).ljust(200, b"\0"))
    return tmp_path


def summary(*args: object) -> dict[str, Any]:
    reported: dict[str, Any] = rmq("dump", *args, *NDJSON).rows[-1]
    return reported


def test_the_rest_behind_a_limit(store: Path, log: HandmadeLog) -> None:
    cut = log.records[20].physical_offset
    reported = summary(store, "--limit", 20)
    segment = cut // SEGMENT * SEGMENT
    whole = sum(path.stat().st_size for path in (store / "commitlog").iterdir())
    (row,) = reported["not_covered"]
    assert row == {
        "path": f"commitlog/{segment:020d}",
        "position": cut - segment,
        "physical_offset": cut,
        "length": whole - cut,
        "reason": "limit",
        "files": whole // SEGMENT - segment // SEGMENT,
        "last_path": f"commitlog/{whole - SEGMENT:020d}",
    }


def test_the_rest_ends_where_the_wanted_range_ends(store: Path, log: HandmadeLog) -> None:
    first, last = log.records[1].physical_offset, log.records[5].physical_offset
    (row,) = summary(store, "--limit", 1, "--offset-range", f"0:{last}")["not_covered"]
    assert (row["position"], row["length"], "files" in row) == (first, last - first, False)


def test_a_sample_says_how_many_it_left_out(store: Path) -> None:
    (row,) = summary(store, "--sample", 10)["not_covered"]
    assert (row["position"], row["messages"], row["reason"]) == (0, 38, "limit")
    assert summary(store, "--sample", 48)["complete"]
    (row,) = summary(store, "--sample", 48, "--limit", 5)["not_covered"]
    assert row["messages"] == 43


@pytest.mark.parametrize("limit", [UNITS + 2, UNITS + 3])
def test_a_limit_that_is_just_enough(store: Path, limit: int) -> None:
    reported = summary(store / "consumequeue", "--limit", limit)
    assert reported["complete"] is True
    assert "not_covered" not in reported
    assert reported["by_type"]["tail"] == 2


@pytest.mark.parametrize("limit", [0, 1, UNITS, UNITS + 1])
def test_units_behind_a_limit(store: Path, limit: int) -> None:
    reported = summary(store / "consumequeue", "--limit", limit)
    (row,) = reported["not_covered"]
    queue, slot = (0, limit) if limit < UNITS else (1, limit - UNITS)
    assert (row["path"], row["position"]) == (f"consumequeue/TopicTest/{queue}/{0:020d}", 20 * slot)
    assert row["length"] == 200 * (2 - queue) - 20 * slot
    assert row.get("files", 1) == 2 - queue
    assert reported["incomplete_reason"] == "limit"


@pytest.mark.parametrize("limit", [0, 3, 17, 500])
def test_items_behind_a_limit(golden: Any, limit: int) -> None:
    index = golden("b533-full").path / "index"
    result = rmq("dump", index, *NDJSON, "--limit", limit)
    reported = result.rows[-1]
    counted = [row for row in result.rows[:-1] if row["type"] in {"index_item", "index_slot"}]
    assert len(counted) == min(limit, len(counted))
    assert reported["complete"] is (limit == 500)
    if limit != 500:
        (row,) = reported["not_covered"]
        assert row["position"] > 0


def test_damaged_bodies_behind_the_limit_are_not_counted(store: Path, log: HandmadeLog) -> None:
    for number in (3, 9, 30):
        at = log.records[number].physical_offset
        with (store / f"commitlog/{at // SEGMENT * SEGMENT:020d}").open("r+b") as file:
            file.seek(at % SEGMENT + 100)
            file.write(b"y")
    for limit, bad in ((3, 0), (4, 1), (9, 1), (10, 2), (47, 3), (48, 3)):
        result = rmq("dump", store, *NDJSON, "--limit", limit)
        assert (result.rows[-1]["bad_crc"], result.exit_code) == (bad, int(bad > 0))
    assert summary(store, "--key", "k1")["bad_crc"] == 3


def interrupt_after(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """The reader of the log is interrupted in front of piece `count`."""
    from rmqtool.cli import dump_log

    usual = dump_log.scan_log

    def scan(*args: Any) -> Any:
        for number, piece in enumerate(usual(*args)):
            if number == count:
                raise KeyboardInterrupt
            assert isinstance(piece, Piece)
            yield piece

    monkeypatch.setattr(dump_log, "scan_log", scan)


def test_the_rest_behind_an_interrupt(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    interrupt_after(monkeypatch, 4)
    result = rmq("dump", store, *NDJSON)
    reported = result.rows[-1]
    assert (result.exit_code, reported["incomplete_reason"]) == (130, "interrupted")
    (row,) = reported["not_covered"]
    last = result.rows[-2]
    assert row["reason"] == "interrupted"
    assert row["physical_offset"] == last["physical_offset"] + last.get("length", last.get("store_size"))
    assert row["physical_offset"] + row["length"] == SEGMENT * len(list((store / "commitlog").iterdir()))


@pytest.mark.parametrize("form", ["raw", "hex", "table", "csv"])
def test_an_interrupt_is_told_in_every_form(store: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    interrupt_after(monkeypatch, 4)
    result = rmq("dump", store, "--format", form)
    assert result.exit_code == 130
    assert "Incomplete (interrupted), left: commitlog/" in result.stderr


def test_an_interrupt_between_files(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rmqtool.scan.files import FileReader

    usual = FileReader.read

    def read(self: FileReader, file: Any) -> Any:
        if "/1/" in file.path:
            raise KeyboardInterrupt
        return usual(self, file)

    monkeypatch.setattr(FileReader, "read", read)
    reported = rmq("dump", store / "consumequeue", *NDJSON).rows[-1]
    (row,) = reported["not_covered"]
    assert (row["path"], row["position"], row["length"]) == (f"consumequeue/TopicTest/1/{0:020d}", 0, 200)


def special(path: Path, kind: str) -> None:
    path.unlink(missing_ok=True)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        here = os.getcwd()
        os.chdir(path.parent)  # the name of a socket is short
        try:
            with socket.socket(socket.AF_UNIX) as bound:
                bound.bind(path.name)
        finally:
            os.chdir(here)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "loop":
        path.symlink_to(path.name)
    else:
        path.symlink_to("nowhere")


@pytest.mark.parametrize("kind", ["fifo", "socket", "device", "link", "loop"])
@pytest.mark.parametrize("place", ["commitlog", "consumequeue/TopicTest/0"])
def test_what_is_no_file_is_neither_opened_nor_passed_over(store: Path, place: str, kind: str) -> None:
    special(store / place / f"{0:020d}", kind)
    signal.alarm(60)
    try:
        for target in (store / place.partition("/")[0], *([store] if place == "commitlog" else [])):
            result = rmq("dump", target, *NDJSON)
            assert result.exit_code == 3, (target, result.stderr)
            reported = result.rows[-1]
            (row,) = [one for one in reported["not_covered"] if one["path"] == f"{place}/{0:020d}"]
            assert row["reason"] == "unreadable"
            assert row["error"] in result.stderr
    finally:
        signal.alarm(0)


def test_a_link_in_a_circle_hides_nothing(store: Path) -> None:
    (store / "consumequeue/TopicTest/0/again").symlink_to(store / "consumequeue")
    assert rmq("dump", store / "consumequeue", *NDJSON).exit_code == 0


def test_a_file_of_another_name_among_segments(store: Path) -> None:
    path = store / f"commitlog/{0:020d}"
    path.rename(path.with_suffix(".bak"))
    result = rmq("dump", store, *NDJSON)
    assert result.exit_code == 3
    (row,) = result.rows[-1]["not_covered"]
    assert (row["path"], row["length"]) == (f"commitlog/{0:020d}.bak", SEGMENT)


def test_a_folder_of_which_a_part_is_decoded(golden: Any) -> None:
    config = golden("b533-full").path / "config"
    result = rmq("dump", config, *NDJSON)
    reported = result.rows[-1]
    assert result.exit_code == 6
    assert reported["by_type"]["config"] > 1
    assert (reported["complete"], reported["incomplete_reason"]) == (False, "unreadable")
    undecoded = {row["path"] for row in result.of_type("undecoded")}
    assert {row["path"] for row in reported["not_covered"]} == undecoded


def test_an_unknown_file_is_no_newer_format(store: Path) -> None:
    (store / "consumequeue/TopicTest/0/readme").write_text("hello")
    result = rmq("dump", store / "consumequeue", *NDJSON)
    assert (result.exit_code, result.rows[-1]["complete"]) == (3, False)


# ---- show ----------------------------------------------------------------------------------------


def shown(store: Path, *options: object) -> tuple[int, dict[str, Any], str]:
    result = rmq("show", store, *options, "--json")
    return result.exit_code, json.loads(result.stdout), result.stderr


@pytest.fixture
def full(golden: Any, tmp_path: Path) -> Path:
    return Path(shutil.copytree(golden("b533-full").path, tmp_path / "full"))


def test_show_of_a_sound_store_is_complete(full: Path) -> None:
    code, reported, _ = shown(full, 2488)
    assert (code, reported["complete"], "not_covered" in reported) == (0, True, False)
    assert reported["unit"]["agrees"]
    assert reported["index_items"]


@pytest.mark.parametrize("name", ["commitlog", "consumequeue", "index", "TopicTx"])
def test_show_says_what_it_could_not_list(full: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    unlisted(monkeypatch, name)
    code, reported, error = shown(full, 2488)
    assert (code, reported["incomplete_reason"]) == (3, "unreadable")
    (row,) = reported["not_covered"]
    assert row["path"].rpartition("/")[2] == name
    assert row["error"] == "Permission denied"
    assert error.count("Permission denied") == 1


@pytest.mark.parametrize("place", ["consumequeue/TopicTx/1", "index"])
@pytest.mark.parametrize("kind", ["fifo", "closed"])
def test_show_says_what_it_could_not_read(
    full: Path, monkeypatch: pytest.MonkeyPatch, place: str, kind: str
) -> None:
    path = min((full / place).iterdir())
    if kind == "fifo":
        special(path, "fifo")
    else:
        refuse(monkeypatch, "open", when=lambda name, *_: name == str(path))
    for target in (2488, "7F00000100002A9F00000000000009B8"):
        code, reported, error = shown(full, target)
        assert code == 3, error
        assert [row["path"] for row in reported["not_covered"]] == [path.relative_to(full).as_posix()]
        assert reported["type"] == "message"


def test_show_is_interrupted_while_it_searches(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rmqtool.query import key_scan as scan

    def interrupted(*args: Any) -> Any:
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(scan, "scan_log", interrupted)
    code, reported, _ = shown(store, "7F0000010BCC18B4AAC27C8E6D5A0000")
    assert (code, reported["incomplete_reason"], reported["what"]) == (130, "interrupted", "nothing")
    (row,) = reported["not_covered"]
    assert (row["position"], row["files"]) == (0, len(list((store / "commitlog").iterdir())))


# ---- info ----------------------------------------------------------------------------------------


def test_info_names_a_directory_once(full: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    unlisted(monkeypatch, "index")
    for options in ((), ("--quiet",)):
        result = rmq("info", full, "--json", *options)
        assert result.exit_code == 3
        assert result.stderr.count("Permission denied") == 1
        (row,) = json.loads(result.stdout)["not_covered"]
        assert row == {"path": "index", "reason": "unreadable", "error": "Permission denied"}


@pytest.mark.parametrize("form", ["json", "ndjson", "table", "csv"])
def test_info_is_interrupted(full: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    from rmqtool.query import inventory

    def interrupted(*args: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(inventory, "index_rows", interrupted)
    result = rmq("info", full, "--format", form)
    assert result.exit_code == 130
    if form in {"json", "ndjson"}:
        reported = json.loads(result.stdout)
        assert (reported["complete"], reported["incomplete_reason"]) == (False, "interrupted")
        assert reported["not_covered"][0]["files"] > 10
    else:
        assert "Incomplete (interrupted)" in result.stderr
