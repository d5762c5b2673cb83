"""`export --resume`: what was interrupted anywhere goes on, and equals what was not."""

from __future__ import annotations

import json
import shutil
import signal
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from fixtures.builder import HandmadeLog
from rmqtool.output.export import run as export_run
from rmqtool.output.export.parquet import ParquetExport
from rmqtool.output.export.shield import whole_step
from rmqtool.output.export.streams import StreamExport
from tests.cli.dumping import assert_one_line
from tests.helpers import Result, rmq

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SEGMENT = 4096
FORMS = ("ndjson", "csv", "parquet", "raw", "replay", "lake")


@pytest.fixture
def log() -> HandmadeLog:
    log = HandmadeLog(segment_size=SEGMENT)
    for number in range(90):
        log.put(f"Topic{number % 2}", b"x" * 200, {"KEYS": f"k{number}"})
    return log


@pytest.fixture
def store(tmp_path: Path, log: HandmadeLog) -> Path:
    log.write(tmp_path / "store/commitlog")
    return tmp_path / "store"


@contextmanager
def interrupted_scan(count: int, error: BaseException | None = None) -> Iterator[None]:
    """The scan is interrupted in front of piece `count`."""
    usual = export_run.scan_log

    def scan(*args: Any) -> Any:
        for number, piece in enumerate(usual(*args)):
            if number == count:
                raise error or KeyboardInterrupt
            yield piece

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export_run, "scan_log", scan)
        yield


def run(store: Path, to: Path, *options: object) -> Result:
    more = ("--partition", "topic") if to.suffix == ".lake" else ()
    return rmq("export", store, "--to", to, "--json", *more, *options)


def content(path: Path) -> Any:
    if path.is_dir():
        read = ds.dataset(path, format="parquet", partitioning="hive").to_table()
        return read.sort_by("physical_offset").to_pylist()
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist(), pq.read_metadata(path).metadata[b"rmqtool.export"]
    return path.read_bytes()


@pytest.mark.share
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("options", [(), ("--topic", "Topic1"), ("--limit", 40)])
def test_what_goes_on_equals_what_was_not_interrupted(
    store: Path, tmp_path: Path, form: str, options: tuple[object, ...]
) -> None:
    whole, to = tmp_path / f"whole.{form}", tmp_path / f"x.{form}"
    assert run(store, whole, *options).exit_code == 0
    for count in (1, 3, 2):
        with interrupted_scan(count):
            result = run(store, to, "--resume", *options)
        assert result.exit_code == 130, result.stderr
        reported = json.loads(result.stdout)
        assert reported["incomplete_reason"] == "interrupted"
        assert not to.exists()
    result = run(store, to, "--resume", *options)
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["resumed_from_offset"] > SEGMENT
    assert content(to) == content(whole)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == sorted(["store", f"whole.{form}", f"x.{form}"])


@pytest.mark.share
@pytest.mark.parametrize("form", ["ndjson", "parquet", "lake"])
def test_damage_before_the_interrupt_is_not_forgotten(
    store: Path, log: HandmadeLog, tmp_path: Path, form: str
) -> None:
    at = log.records[3].physical_offset
    with (store / f"commitlog/{0:020d}").open("r+b") as file:
        file.seek(at)
        file.write(b"\xee" * 8)
    (store / f"commitlog/{2 * SEGMENT:020d}").unlink()
    whole, to = tmp_path / f"whole.{form}", tmp_path / f"x.{form}"
    expected = json.loads(run(store, whole).stdout)
    assert len(expected["not_covered"]) == 2
    for count in range(1, 6):
        with interrupted_scan(count):
            run(store, to, "--resume")
    result = run(store, to, "--resume")
    reported = json.loads(result.stdout)
    assert (result.exit_code, reported["not_covered"]) == (3, expected["not_covered"])
    assert content(to) == content(whole)


def test_half_a_row_behind_the_last_position_is_cut_off(store: Path, tmp_path: Path) -> None:
    assert run(store, tmp_path / "whole.ndjson").exit_code == 0
    with interrupted_scan(4):
        run(store, tmp_path / "x.ndjson")
    with (tmp_path / "x.ndjson.part").open("ab") as file:
        file.write(b'{"type":"mess')
    assert run(store, tmp_path / "x.ndjson", "--resume").exit_code == 0
    assert content(tmp_path / "x.ndjson") == content(tmp_path / "whole.ndjson")


@pytest.mark.share
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("cut", [True, False])
def test_what_was_written_and_is_gone_is_not_gone_on_from(
    store: Path, tmp_path: Path, form: str, cut: bool
) -> None:
    with interrupted_scan(4):
        run(store, tmp_path / f"x.{form}")
    part = tmp_path / f"x.{form}.part"
    written = part if part.is_file() else next(part.rglob("*.parquet"))
    if cut:
        written.write_bytes(written.read_bytes()[:-100])
    else:
        written.unlink()
    result = run(store, tmp_path / f"x.{form}", "--resume")
    assert_one_line(result, 2)
    assert "--force starts over" in result.stderr
    assert run(store, tmp_path / f"x.{form}", "--force").exit_code == 0


def test_other_options_are_refused(store: Path, tmp_path: Path) -> None:
    with interrupted_scan(4):
        run(store, tmp_path / "x.ndjson", "--from", "-900w")
    result = run(store, tmp_path / "x.ndjson", "--resume", "--topic", "Topic1")
    assert_one_line(result, 2)
    assert "store_from, topic differ" in result.stderr
    assert run(store, tmp_path / "x.ndjson", "--resume", "--from", "-900w").exit_code == 0


def test_another_store_is_refused(store: Path, tmp_path: Path) -> None:
    with interrupted_scan(4):
        run(store, tmp_path / "x.ndjson")
    other = HandmadeLog(segment_size=SEGMENT)
    for number in range(90):
        other.put(f"Topic{number % 2}", b"y" * 200, {"KEYS": f"k{number}"})
    shutil.rmtree(store)
    other.write(store / "commitlog")
    result = run(store, tmp_path / "x.ndjson", "--resume")
    assert_one_line(result, 2)
    assert "not the one" in result.stderr


def test_what_an_interrupted_export_left_is_not_overwritten(store: Path, tmp_path: Path) -> None:
    with interrupted_scan(4):
        run(store, tmp_path / "x.raw")
    left = (tmp_path / "x.raw.part").read_bytes()
    assert_one_line(run(store, tmp_path / "x.raw"), 2)
    assert (tmp_path / "x.raw.part").read_bytes() == left
    assert run(store, tmp_path / "x.raw", "--force").exit_code == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store", "x.raw"]


@pytest.mark.share
@pytest.mark.parametrize("form", FORMS)
def test_a_state_that_is_lost_is_a_new_start(store: Path, tmp_path: Path, form: str) -> None:
    with interrupted_scan(4):
        run(store, tmp_path / f"x.{form}")
    (tmp_path / f"x.{form}.part.json").unlink()
    assert run(store, tmp_path / f"x.{form}", "--resume").exit_code == 0
    assert run(store, tmp_path / f"whole.{form}").exit_code == 0
    assert content(tmp_path / f"x.{form}") == content(tmp_path / f"whole.{form}")


@pytest.mark.parametrize("text", ["{", "[]", "null", "{}"])
def test_a_state_that_is_none_is_one_line(store: Path, tmp_path: Path, text: str) -> None:
    with interrupted_scan(4):
        run(store, tmp_path / "x.raw")
    (tmp_path / "x.raw.part.json").write_text(text)
    assert_one_line(run(store, tmp_path / "x.raw", "--resume"), 2)


def test_resume_without_anything_to_go_on_from_begins(store: Path, tmp_path: Path) -> None:
    assert run(store, tmp_path / "x.raw", "--resume").exit_code == 0


def test_an_error_leaves_what_is_needed_to_go_on(store: Path, tmp_path: Path) -> None:
    with interrupted_scan(4, OSError(28, "No space left on device")):
        result = run(store, tmp_path / "x.raw")
    assert result.exit_code == 4
    assert "No space" in result.stderr
    assert run(store, tmp_path / "x.raw", "--resume").exit_code == 0
    assert run(store, tmp_path / "whole.raw").exit_code == 0
    assert content(tmp_path / "x.raw") == content(tmp_path / "whole.raw")


@pytest.mark.parametrize("form", ["replay", "csv", "lake"])
def test_positions_are_put_down_on_the_way(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    """What lies on the disk in the middle of an export is enough, with no chance to say anything more."""
    for destination in (StreamExport, ParquetExport):
        monkeypatch.setattr(destination, "__init__", _without_pause(destination.__init__))
    usual = export_run.scan_log
    whole, to = tmp_path / f"whole.{form}", tmp_path / f"killed.{form}"

    def scan(*args: Any) -> Any:
        for number, piece in enumerate(usual(*args)):
            if number == 5:
                for name in (".part", ".part.json"):
                    there = whole.with_name(whole.name + name)
                    copy = shutil.copytree if there.is_dir() else shutil.copy
                    copy(there, to.with_name(to.name + name))
            yield piece

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(export_run, "scan_log", scan)
        assert run(store, whole).exit_code == 0
    result = run(store, to, "--resume")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["resumed_from_offset"] > 0
    assert content(to) == content(whole)


def _without_pause(usual: Any) -> Any:
    def init(self: Any, *args: Any) -> None:
        usual(self, *args)
        self.pause = 0.0

    return init


def test_an_interrupt_in_the_middle_of_a_step_is_held_back(request: pytest.FixtureRequest) -> None:
    request.addfinalizer(partial(signal.signal, signal.SIGINT, signal.getsignal(signal.SIGINT)))
    signal.signal(signal.SIGINT, signal.default_int_handler)  # Spark's session in this process has another
    done = []

    def step() -> None:
        with whole_step():
            signal.raise_signal(signal.SIGINT)
            done.append(1)

    with pytest.raises(KeyboardInterrupt):
        step()
    assert done == [1]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
