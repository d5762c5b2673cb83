"""`dump` on whatever is not a sound store: one clear line, the right exit code, no traceback, no write."""

from __future__ import annotations

import os
import random
import stat
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.builder import HandmadeLog, Placed, cut, flip_bit, overwrite, zero_block
from rmqtool.store.names import parse_base_offset
from tests.cli.dumping import NDJSON, assert_one_line, offsets
from tests.disks import refuse
from tests.helpers import Result, rmq, rmq_process

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import fixtures

SEGMENT = 4096


def make(directory: Path, segments: int = 3) -> HandmadeLog:
    log = HandmadeLog(segment_size=SEGMENT)
    for number in range(segments * 8):
        log.put("TopicTest", b"body %d " % number * 10, {"TAGS": "A", "UNIQ_KEY": f"ID{number}"})
        if number % 8 == 7 and number + 1 < segments * 8:
            log.roll()
    log.write(directory / "commitlog")
    return log


@pytest.fixture
def made(tmp_path: Path) -> tuple[Path, HandmadeLog]:
    return tmp_path / "store", make(tmp_path / "store")


def segment(store: Path, number: int) -> Path:
    return store / "commitlog" / f"{number * SEGMENT:020d}"


def of_segment(log: HandmadeLog, number: int) -> list[Placed]:
    return [one for one in log.records if one.physical_offset // SEGMENT == number]


def change(path: Path, mutator: Callable[..., Any], *arguments: Any) -> None:
    path.write_bytes(mutator(path.read_bytes(), *arguments).data)


def dump(store: Path, *options: object) -> Result:
    result = rmq("dump", store, *NDJSON, *options)
    assert "Traceback" not in result.stderr
    assert result.rows[-1]["type"] == "summary"
    return result


# ---- exit codes of damage ------------------------------------------------------------------------


def test_clean(made: tuple[Path, HandmadeLog], store_unchanged: Callable[[Path], Path]) -> None:
    store, log = made
    result = dump(store_unchanged(store))
    assert result.exit_code == 0
    assert offsets(result) == [record.physical_offset for record in log.records]


def test_a_gap(made: tuple[Path, HandmadeLog], store_unchanged: Callable[[Path], Path]) -> None:
    store, log = made
    broken = of_segment(log, 1)[3]
    at = broken.physical_offset - SEGMENT
    change(segment(store, 1), overwrite, at, b"\xff" * 8)
    result = dump(store_unchanged(store))
    assert result.exit_code == 1
    assert offsets(result) == [r.physical_offset for r in log.records if r != broken]
    (gap,) = result.of_type("gap")
    assert gap == {
        "type": "gap",
        "path": f"commitlog/{SEGMENT:020d}",
        "segment": SEGMENT,
        "position": at,
        "physical_offset": broken.physical_offset,
        "length": len(broken.data),
        "reason": "bad_magic",
        "expected": -626843481,
        "found": -1,
    }
    summary = result.rows[-1]
    assert (summary["gaps"], summary["gap_bytes"], summary["complete"]) == (1, len(broken.data), True)
    kinds = [row["type"] for row in result.rows if row.get("segment") == SEGMENT]
    assert kinds == ["message"] * 3 + ["gap"] + ["message"] * 4 + ["blank"]


def test_a_bad_crc(made: tuple[Path, HandmadeLog]) -> None:
    store, log = made
    change(segment(store, 0), flip_bit, of_segment(log, 0)[2].physical_offset + 90, 3)
    result = dump(store)
    assert result.exit_code == 1
    assert [row["crc"] for row in result.of_type("message")].count("bad") == 1
    assert (result.rows[-1]["bad_crc"], result.rows[-1]["gaps"]) == (1, 0)
    assert len(offsets(result)) == len(log.records)


def test_a_tail_of_garbage(made: tuple[Path, HandmadeLog]) -> None:
    store, log = made
    end = log.end_offset % SEGMENT
    change(segment(store, 2), overwrite, end + 100, b"garbage")
    result = dump(store)
    assert result.exit_code == 1
    (tail,) = result.of_type("tail")
    assert (tail["content"], tail["position"], result.rows[-1]["tail"]) == ("garbage", end, "garbage")


def test_a_stale_tail_is_no_damage(made: tuple[Path, HandmadeLog]) -> None:
    store, log = made
    last = of_segment(log, 2)
    fresh = HandmadeLog(segment_size=SEGMENT, first_offset=2 * SEGMENT)
    now = 1_800_000_000_000
    new = fresh.put("TopicTest", b"new", born_timestamp=now, store_timestamp=now)
    change(segment(store, 2), overwrite, 0, new.data)
    result = dump(store)
    assert result.exit_code == 0
    (tail,) = result.of_type("tail")
    assert (tail["content"], tail["position"]) == ("stale", len(new.data))
    assert tail["records"] == len([one for one in last if one.physical_offset - 2 * SEGMENT >= len(new.data)])


def test_zeros_where_records_must_be(made: tuple[Path, HandmadeLog]) -> None:
    """Not in the last segment: there zeros are normal."""
    store, log = made
    first = of_segment(log, 1)[4].physical_offset - SEGMENT
    change(segment(store, 1), zero_block, first, SEGMENT)
    result = dump(store)
    assert result.exit_code == 1
    assert [(gap["position"], gap["length"], gap["reason"]) for gap in result.of_type("gap")] == [
        (first, SEGMENT - first, "zero")
    ]


def test_a_missing_segment(made: tuple[Path, HandmadeLog]) -> None:
    store, _log = made
    segment(store, 1).unlink()
    result = dump(store)
    assert result.exit_code == 1
    (gap,) = result.of_type("gap")
    assert (gap["physical_offset"], gap["length"], gap["reason"]) == (SEGMENT, SEGMENT, "missing")
    assert len(offsets(result)) == 16


def test_a_segment_cut_short(made: tuple[Path, HandmadeLog]) -> None:
    store, log = made
    records = of_segment(log, 1)
    change(segment(store, 1), cut, records[5].physical_offset - SEGMENT + 20)
    result = dump(store)
    assert result.exit_code == 1
    lost = {record.physical_offset for record in records[5:]}
    assert offsets(result) == [r.physical_offset for r in log.records if r.physical_offset not in lost]
    reasons = [gap["reason"] for gap in result.of_type("gap")]
    assert "missing" in reasons


def test_preallocated_segments_are_no_damage(made: tuple[Path, HandmadeLog]) -> None:
    store, log = made
    segment(store, 3).write_bytes(bytes(SEGMENT))
    segment(store, 4).write_bytes(bytes(SEGMENT))
    result = dump(store)
    assert result.exit_code == 0
    assert len(offsets(result)) == len(log.records)
    assert result.of_type("gap") == []


@pytest.mark.parametrize("jobs", ["1", "4"])
def test_an_unreadable_segment(
    made: tuple[Path, HandmadeLog], monkeypatch: pytest.MonkeyPatch, jobs: str
) -> None:
    store, _log = made
    refuse(monkeypatch, "open", when=lambda path, *_: path.endswith(f"/{SEGMENT:020d}"))
    result = dump(store, "--jobs", jobs)
    assert result.exit_code == 3
    assert len(offsets(result)) == 16
    summary = result.rows[-1]
    assert (summary["complete"], summary["incomplete_reason"]) == (False, "unreadable")
    (left_out,) = summary["not_covered"]
    assert left_out["path"] == f"commitlog/{SEGMENT:020d}"
    assert "Permission denied" in left_out["error"]
    (gap,) = result.of_type("gap")
    assert (gap["position"], gap["length"], gap["reason"]) == (0, SEGMENT, "unreadable")


def test_unreadable_outweighs_damage(made: tuple[Path, HandmadeLog], monkeypatch: pytest.MonkeyPatch) -> None:
    store, _log = made
    change(segment(store, 0), overwrite, 4, b"XXXX")
    refuse(monkeypatch, "open", when=lambda path, *_: path.endswith(f"/{SEGMENT:020d}"))
    assert dump(store).exit_code == 3


def test_a_limit_stops_before_the_damage(made: tuple[Path, HandmadeLog]) -> None:
    store, _log = made
    change(segment(store, 2), overwrite, 4, b"XXXX")
    result = dump(store, "--limit", "5")
    assert (result.exit_code, len(offsets(result))) == (0, 5)
    assert result.rows[-1]["incomplete_reason"] == "limit"


def test_damage_is_told_whatever_the_filter(made: tuple[Path, HandmadeLog]) -> None:
    store, _log = made
    change(segment(store, 0), overwrite, 4, b"XXXX")
    result = dump(store, "--topic", "Nothing")
    assert result.exit_code == 1
    assert [row["type"] for row in result.rows] == ["gap", "summary"]


# ---- paths that are not a store ---------------------------------------------------------------------


@pytest.mark.parametrize("form", ["table", "ndjson", "json", "csv", "raw", "hex"])
def test_a_missing_path(tmp_path: Path, form: str) -> None:
    assert_one_line(rmq("dump", tmp_path / "none", "--format", form), 2)
    assert_one_line(rmq("dump", tmp_path / "none\x1b[2J\nx", "--format", form), 2)


def test_directories_that_are_no_store(tmp_path: Path, store_unchanged: Callable[[Path], Path]) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "notes.txt").write_text("nothing to see")
    for name in ("empty", "other"):
        assert_one_line(rmq("dump", store_unchanged(tmp_path / name)), 2)


def test_an_empty_commitlog_directory(tmp_path: Path) -> None:
    (tmp_path / "store" / "commitlog").mkdir(parents=True)
    result = dump(tmp_path / "store")
    assert result.exit_code == 0
    assert (result.rows[-1]["messages"], len(result.rows)) == (0, 1)
    assert_one_line(rmq("dump", tmp_path / "store" / "commitlog"), 2)


@pytest.mark.parametrize("kind", ["fifo", "broken link", "loop"])
def test_special_paths(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "odd"
    if kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to(path if kind == "loop" else tmp_path / "nowhere")
    result = rmq("dump", path)
    assert result.exit_code in {2, 4}
    assert_one_line(result, result.exit_code)


def test_special_files_in_a_store(made: tuple[Path, HandmadeLog]) -> None:
    store, log = made
    os.mkfifo(segment(store, 3))
    segment(store, 4).symlink_to(store / "nowhere")
    segment(store, 5).mkdir()
    result = dump(store)
    assert len(offsets(result)) == len(log.records)


def test_a_directory_without_permission(
    made: tuple[Path, HandmadeLog], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may read all, so the system call refuses here."""
    store, _ = made
    refuse(monkeypatch, "scandir", when=lambda path: path.rstrip("/").endswith("commitlog"))
    result = rmq("dump", store / "commitlog")
    assert result.exit_code in {3, 4}
    assert_one_line(result, result.exit_code)
    assert "Permission denied" in result.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_files_without_permission(made: tuple[Path, HandmadeLog]) -> None:
    store, _ = made
    segment(store, 1).chmod(0)
    assert dump(store).exit_code == 3
    segment(store, 1).chmod(stat.S_IRUSR)


NAMES = [
    f"commitlog/{0:020d}",
    f"consumequeue/TopicTest/0/{0:020d}",
    f"batchconsumequeue/TopicTest/0/{0:020d}",
    f"consumequeue_ext/TopicTest/0/{0:020d}",
    "index/20261121093752154",
    "checkpoint",
    "abort",
    "lock",
    "epochFileCheckpoint",
    "config/topics.json",
    "config/consumerOffset.json.bak",
    "config/delayOffset.json",
    "config/timercheck",
    "timerwheel",
    f"timerlog/{0:020d}",
    f"data/{0:020d}",
    "rocksdb/CURRENT",
]


def contents() -> dict[str, bytes]:
    rng = random.Random(5)
    return {
        "empty": b"",
        "seven bytes": b"\0\0\0\1\2\3\4",
        "random": rng.randbytes(5000),
        "zeros": bytes(5000),
        "ones": b"\xff" * 3000,
        "json": b'{"a": [1, {"b": ',
    }


@pytest.mark.share
@pytest.mark.parametrize("content", contents())
@pytest.mark.parametrize("name", NAMES)
def test_any_content_under_every_name(
    tmp_path: Path, store_unchanged: Callable[[Path], Path], name: str, content: str
) -> None:
    path = tmp_path / "store" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(contents()[content])
    (tmp_path / "store" / "config").mkdir(exist_ok=True)
    (tmp_path / "store" / "commitlog").mkdir(exist_ok=True)
    store_unchanged(tmp_path)
    for target in (path, tmp_path / "store"):
        for form in ("ndjson", "table"):
            result = rmq("dump", target, "--format", form)
            assert result.exit_code in {0, 1, 2, 3, 6}, result.stderr
            assert "Traceback" not in result.stderr
            assert "internal error" not in result.stderr
            if result.exit_code in {2, 6} and not result.stdout:
                assert_one_line(result, result.exit_code)


@pytest.mark.parametrize(
    "name", ["x", "-1", "00000000000000000001x", "9" * 25, "18446744073709551615", "0x10", " 5", "١٢٣"]
)
@pytest.mark.parametrize("alone", [True, False])
def test_names_that_are_no_numbers(tmp_path: Path, name: str, alone: bool) -> None:
    log = HandmadeLog(segment_size=SEGMENT, first_offset=0)
    log.put("T", b"x")
    path = tmp_path / "store" / "commitlog" / name
    path.parent.mkdir(parents=True)
    path.write_bytes(log.files()[0])
    for target in (path, path.parent) if alone else (path.parents[1],):
        result = rmq("dump", target, *NDJSON)
        assert result.exit_code in ({0, 1, 2} if alone or parse_base_offset(name) is not None else {3})
        assert "internal error" not in result.stderr
        assert "Traceback" not in result.stderr


# ---- kinds ---------------------------------------------------------------------------------------


def test_a_copied_file_under_any_name(made: tuple[Path, HandmadeLog], tmp_path: Path) -> None:
    store, log = made
    away = tmp_path / "evidence.bin"
    away.write_bytes(segment(store, 1).read_bytes())
    for options in ((), ("--as", "commitlog")):
        result = dump(away, *options)
        assert result.exit_code == 0
        assert offsets(result) == [one.physical_offset for one in of_segment(log, 1)]


def test_as_another_kind(made: tuple[Path, HandmadeLog]) -> None:
    store, _log = made
    result = dump(segment(store, 0), "--as", "consumequeue")
    assert len(result.of_type("unit")) > 0
    assert_one_line(rmq("dump", store, "--as", "bogus"), 2)


def test_undecoded_files(golden: Callable[[str], fixtures.Golden]) -> None:
    """A single file of a kind that is not decoded: a note, and exit 6."""
    opened = golden("v533-basic")
    wheel = next((path for path in opened.path.rglob("timerwheel") if path.is_file()), None)
    path = wheel or next(opened.path.rglob("timerlog/*"), None)
    if path is None:
        opened = golden("b533-timer")
        path = next(path for path in opened.path.rglob("timerwheel") if path.is_file())
    result = dump(path)
    assert result.exit_code == 6
    assert [row["type"] for row in result.rows] == ["undecoded", "summary"]


def test_dledger_logs(golden: Callable[[str], fixtures.Golden]) -> None:
    """A format of later issues: said in one line, exit 6."""
    path = golden("b533-dledger").path
    data = next(file.parent for file in path.rglob("data/*") if file.is_file())
    for target in (data.parent, data):
        result = rmq("dump", target, "--format", "ndjson")
        assert result.exit_code == 6
        assert "internal error" not in result.stderr


MEANINGLESS = [
    ["--format", "raw"], ["--format", "hex"], ["--unwrap"], ["--body", "auto"], ["--body-sha256"],
    ["--redact", "body"], ["--tag", "A"], ["--key", "k"], ["--uniq-key", "u"], ["--property", "a=b"],
    ["--from", "0"], ["--born-to", "5"], ["--body-contains", "x"], ["--sample", "3"],
]  # fmt: skip


@pytest.mark.parametrize("options", MEANINGLESS)
@pytest.mark.parametrize("what", ["consumequeue", "index", "checkpoint"])
def test_filters_that_mean_nothing(
    golden: Callable[[str], fixtures.Golden], what: str, options: list[str]
) -> None:
    assert_one_line(rmq("dump", golden("v533-basic").path / what, *options), 2)


def test_a_reader_that_goes_away(made: tuple[Path, HandmadeLog]) -> None:
    import subprocess
    import sys

    from tests.helpers import ROOT

    store, _ = made
    command = f"{sys.executable} -m rmqtool dump {store} --format ndjson | head -c 10"
    script = f"set -o pipefail; {command}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(
        ["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, check=False, timeout=60
    )
    assert "Traceback" not in done.stderr
    assert done.stderr == ""
    assert done.returncode in {0, 141}


def test_nothing_is_written_beside_the_store(
    made: tuple[Path, HandmadeLog], store_unchanged: Callable[[Path], Path]
) -> None:
    store, _ = made
    result = rmq_process("dump", store_unchanged(store.parent) / "store", *NDJSON)
    assert result.exit_code == 0
