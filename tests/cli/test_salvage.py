"""`salvage` from the shell: what it says, where it writes, what it leaves alone, how it ends."""

from __future__ import annotations

import csv
import errno
import json
import os
import shutil
from pathlib import Path

import pytest

from fixtures import open_golden
from fixtures.builder import HandmadeLog
from tests.disks import break_blocks, refuse, replace
from tests.helpers import differences, rmq, rmq_process, snapshot
from tests.scan.conftest import compiled_choice

SEGMENT = 4096
SNAPSHOT = Path(__file__).with_name("snapshots") / "salvage.txt"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Three segments of a hand-made log, undeleted under other names."""
    made = HandmadeLog(segment_size=SEGMENT)
    for number in range(60):
        made.put("Topic" + "AB"[number % 2], b"body %d" % number, {"KEYS": f"k{number}"}, queue_id=number % 3)
    place = tmp_path / "lost+found"
    place.mkdir()
    for number, (_, data) in enumerate(sorted(made.files().items(), reverse=True)):
        (place / f"#{1234 + number}").write_bytes(data)
    return place


def test_the_report_has_no_controls(log: Path, tmp_path: Path) -> None:
    odd = log.rename(tmp_path / "a\x9b[2J\u202e\udcff")
    assert rmq("salvage", odd, "--output", tmp_path / "new").exit_code == 0
    report = (tmp_path / "new" / "rmqtool-salvage.json").read_bytes()
    assert report.isascii()
    assert b"\\u009b" in report


def test_undeleted_segments_become_a_store(log: Path, tmp_path: Path) -> None:
    before = snapshot(log)
    output = tmp_path / "new"
    result = rmq("salvage", log, "--output", output, "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    reported = json.loads(result.stdout)
    assert reported["summary"]["schema"] == "rmqtool.salvage/1"
    assert (reported["summary"]["messages"], reported["summary"]["complete"]) == (60, True)
    store = next(row for row in reported["rows"] if row["type"] == "store")
    assert (store["segment_size"], store["first_offset"]) == (SEGMENT, 0)
    assert not differences(before, snapshot(log))
    assert sorted(os.listdir(output)) == [
        "checkpoint", "commitlog", "config", "consumequeue", "index", "rmqtool-salvage.json",
    ]  # fmt: skip
    assert json.loads((output / "rmqtool-salvage.json").read_text())["summary"]["messages"] == 60
    for file in (output / "commitlog").iterdir():
        assert file.read_bytes() in [one.read_bytes() for one in log.iterdir()]
    assert rmq("verify", output).exit_code == 0
    found = rmq("query-offset", output, "TopicA", "0", "3", "--body", "utf8", "--format", "ndjson")
    assert found.rows[0]["body_utf8"] == "body 18"
    assert rmq("doctor", output, "--as-version", "5.3.3").exit_code == 0


def test_table_and_notes(log: Path, tmp_path: Path) -> None:
    result = rmq("salvage", log, "--output", tmp_path / "new")
    lines = result.stdout.splitlines()
    assert lines[0].split()[:3] == ["path", "bytes", "records"]
    assert len(lines) == 1 + len(list(log.iterdir()))
    assert "60 messages of 10.0.0.2:10911, offsets 0 to" in result.stderr
    assert "fileReservedTime" in result.stderr
    assert rmq("salvage", log, "--output", tmp_path / "other", "--quiet").stderr == ""


def test_topics_are_served(log: Path, tmp_path: Path) -> None:
    rmq("salvage", log, "--output", tmp_path / "new")
    table = json.loads((tmp_path / "new/config/topics.json").read_text())["topicConfigTable"]
    assert {name: one["writeQueueNums"] for name, one in table.items()} == {"TopicA": 3, "TopicB": 3}


def test_two_brokers_become_two_stores(tmp_path: Path) -> None:
    paths = [open_golden(name, tmp_path).path for name in ("v498-basic", "b533-full")]
    result = rmq("salvage", *paths, "--output", tmp_path / "new", "--format", "ndjson")
    stores = {row["path"]: row for row in result.of_type("store")}
    assert result.exit_code == 0
    assert sorted(os.path.basename(path) for path in stores) == ["10.0.0.2_10911", "127.0.0.1_30911"]
    assert [rmq("verify", path).exit_code for path in stores] == [0, 0]
    one = rmq("salvage", *paths, "--output", tmp_path / "one", "--stores", "one", "--format", "ndjson")
    assert one.exit_code == 1
    assert one.rows[-1]["moved"] == 133


def test_moved_messages_have_a_line(tmp_path: Path) -> None:
    golden = open_golden("b533-dledger", tmp_path)
    result = rmq("salvage", golden.path, "--output", tmp_path / "new", "--format", "ndjson")
    assert result.exit_code == 1
    assert result.rows[-1]["moved_because"] == {"dledger": 99}
    with (tmp_path / "new/rmqtool-salvage-moved.csv").open() as stream:
        lines = list(csv.DictReader(stream))
    assert len(lines) == 99
    assert all(line["queue_offset"] == line["new_queue_offset"] for line in lines)
    assert rmq("verify", tmp_path / "new").exit_code == 0


@pytest.mark.share
@pytest.mark.parametrize(
    "name", ["v498-preblank", "v533-batchcq", "v533-props-crc", "v533-ipv6", "v533-tx", "v533-v2"]
)
def test_whole_goldens_stay_as_they_are(name: str, tmp_path: Path) -> None:
    golden = open_golden(name, tmp_path)
    result = rmq("salvage", golden.path / "commitlog", "--output", tmp_path / "new", "--format", "ndjson")
    assert result.exit_code == 0
    for file in (golden.path / "commitlog").iterdir():
        if any(file.read_bytes()):
            assert (tmp_path / "new/commitlog" / file.name).read_bytes() == file.read_bytes()
    assert rmq("verify", tmp_path / "new").exit_code == 0


def test_copies_of_compacted_messages_are_left_out(tmp_path: Path) -> None:
    golden = open_golden("b533-compaction", tmp_path)
    result = rmq("salvage", golden.path, "--output", tmp_path / "new", "--format", "ndjson")
    assert (result.exit_code, result.rows[-1]["duplicates"], result.rows[-1]["messages"]) == (0, 15, 133)


def test_what_lies_in_the_output_stays(log: Path, tmp_path: Path) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "precious").write_text("mine")
    for options in ([], ["--force"]):
        result = rmq("salvage", log, "--output", full, *options)
        assert (result.exit_code, result.stdout) == (2, "")
    assert os.listdir(full) == ["precious"]
    full.rename(tmp_path / "new.rmqtool-part")
    assert rmq("salvage", log, "--output", tmp_path / "new", "--force").exit_code == 2
    assert os.listdir(tmp_path / "new.rmqtool-part") == ["precious"]
    empty = tmp_path / "empty"
    empty.mkdir()
    assert rmq("salvage", log, "--output", empty).exit_code == 0
    assert rmq("salvage", log, "--output", empty).exit_code == 2
    assert rmq("salvage", log, "--output", empty, "--force").exit_code == 0
    assert rmq("salvage", log, empty / "commitlog", "--output", empty, "--force").exit_code == 2


def test_output_is_asked_for(log: Path, tmp_path: Path) -> None:
    assert "--output is missing" in rmq("salvage", log).stderr
    assert rmq("salvage", log, "--output", tmp_path / "no/such/place").exit_code == 2
    assert rmq("salvage", log, "--output", tmp_path / "new", "--segment-size", "12").exit_code == 2
    assert rmq("salvage", log, "--output", tmp_path / "new", "--as-version", "1.2.3").exit_code == 2
    assert rmq("salvage", "/dev/null", "--output", tmp_path / "new").exit_code == 2


def test_nothing_found_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "noise").write_bytes(b"\xda\xa3\x20\xa7" * 4000)
    result = rmq("salvage", tmp_path / "noise", "--output", tmp_path / "new", "--format", "ndjson")
    assert (result.exit_code, result.rows[-1]["records"]) == (1, 0)
    assert not (tmp_path / "new").exists()


def test_unreadable_blocks_are_reported(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = tmp_path / "image"
    image.write_bytes(b"".join(file.read_bytes() for file in sorted(log.iterdir())))
    break_blocks(monkeypatch, {image: [1]})
    result = rmq("salvage", image, "--output", tmp_path / "new", "--safe-io", "--format", "ndjson")
    assert result.exit_code == 3
    summary = result.rows[-1]
    assert (summary["complete"], summary["incomplete_reason"]) == (False, "unreadable")
    row = {"path": str(image), "position": 4096, "length": 4096, "reason": "unreadable"}
    assert {key: summary["not_covered"][0][key] for key in row} == row
    assert 0 < summary["messages"] < 60
    assert rmq("verify", tmp_path / "new").exit_code == 0


def test_a_hole_of_a_gib_is_not_read(log: Path, tmp_path: Path) -> None:
    image = tmp_path / "sparse"
    with image.open("wb") as stream:
        stream.truncate(4 << 30)
        stream.seek((3 << 30) + 4099)
        stream.write(next(iter(sorted(log.iterdir()))).read_bytes())
    result = rmq(
        "salvage", image, "--output", tmp_path / "new", "--segment-size", SEGMENT, "--format", "ndjson"
    )
    assert result.exit_code == 0
    assert result.rows[-1]["messages"] > 0


def test_full_disk_leaves_nothing(log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refuse(monkeypatch, "pwrite", errno.ENOSPC)
    result = rmq("salvage", log, "--output", tmp_path / "new")
    assert result.exit_code == 4
    assert "No space left" in result.stderr
    assert sorted(os.listdir(tmp_path)) == ["lost+found"]


@pytest.mark.full
def test_same_with_compiled_kernels_and_python(log: Path, tmp_path: Path) -> None:
    made = []
    for kernels in ("python", compiled_choice()):
        output = tmp_path / kernels
        assert rmq_process("salvage", log, "--output", output, RMQTOOL_KERNELS=kernels).exit_code == 0
        made.append(
            {path.relative_to(output): path.read_bytes() for path in output.rglob("0*") if path.is_file()}
        )
        shutil.rmtree(output)
    assert made[0] == made[1]


def test_snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    golden = open_golden("v533-basic", tmp_path)
    monkeypatch.chdir(golden.path.parent)
    log = sorted((golden.path / "commitlog").iterdir())
    first = log[0].read_bytes()
    Path("a.bin").write_bytes(b"noise" + first[:9000] + first[15000:])
    Path("b.bin").write_bytes(log[1].read_bytes() + first[:12000])
    options = ("--segment-size", "32768")
    result = rmq("salvage", "a.bin", "b.bin", "--output", "new", *options)
    shown = result.stdout + result.stderr.replace(os.getcwd(), "")
    assert shown == SNAPSHOT.read_text()


def test_interrupt_leaves_nothing_but_a_summary(
    log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: object) -> int:
        raise KeyboardInterrupt

    replace(monkeypatch, "pwrite", interrupt)
    result = rmq("salvage", log, "--output", tmp_path / "new", "--format", "ndjson")
    assert result.exit_code == 130
    summary = result.rows[-1]
    assert (summary["records"], summary["messages"], summary["incomplete_reason"]) == (60, 0, "interrupted")
    assert os.listdir(tmp_path) == ["lost+found"]


def test_the_output_is_never_where_something_is_read(log: Path, tmp_path: Path) -> None:
    before = snapshot(log)
    for place in (log / "inside", log / "deep" / ".." / "inside", log):
        result = rmq("salvage", log, "--output", place)
        assert (result.exit_code, result.stdout) == (2, "")
        assert "which is read" in result.stderr or "not empty" in result.stderr
    assert not differences(before, snapshot(log))


def test_nothing_found_is_said(tmp_path: Path) -> None:
    (tmp_path / "empty").write_bytes(b"")
    result = rmq("salvage", tmp_path / "empty", "--output", tmp_path / "new")
    assert result.exit_code == 1
    assert "no whole record was found" in result.stderr


@pytest.mark.parametrize(("name", "release"), [("v498-basic", "5.1"), ("v533-props-crc", "5.3.3")])
def test_the_release_is_inferred_and_said(name: str, release: str, tmp_path: Path) -> None:
    log = open_golden(name, tmp_path).path / "commitlog"
    store = rmq("salvage", log, "--output", tmp_path / "new", "--format", "ndjson").of_type("store")[0]
    assert store["version_source"] == "inferred"
    assert store["version"].startswith(release)
    given = rmq("salvage", log, "--output", tmp_path / "given", "--as-version", "4.9.8")
    assert "as of 4.9.8 (given)" in given.stderr


@pytest.mark.parametrize("name", ["v498-lmq", "b533-lmq"])
def test_light_queues_are_built_without_being_asked_for(name: str, tmp_path: Path) -> None:
    golden = open_golden(name, tmp_path)
    assert rmq("salvage", golden.path / "commitlog", "--output", tmp_path / "new").exit_code == 0
    for queue in (golden.path / "consumequeue").glob("%LMQ%*/0"):
        built = b"".join(
            one.read_bytes()
            for one in sorted(
                (
                    tmp_path / "new" / "consumequeue" / queue.relative_to(golden.path / "consumequeue")
                ).iterdir()
            )
        )
        units = b"".join(one.read_bytes() for one in sorted(queue.iterdir())).rstrip(b"\0")
        assert units
        assert built.startswith(units)
    assert rmq("verify", tmp_path / "new").exit_code == 0


def test_own_files_are_nothing_unknown(tmp_path: Path) -> None:
    golden = open_golden("b533-dledger", tmp_path)
    rmq("salvage", golden.path, "--output", tmp_path / "new")
    assert (tmp_path / "new/rmqtool-salvage-moved.csv").exists()
    assert "rmqtool-salvage" not in rmq("verify", tmp_path / "new").stdout
