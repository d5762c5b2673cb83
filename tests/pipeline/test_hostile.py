"""Jobs over stores that strangers made: what can be read is answered as ever, what cannot is named."""

from __future__ import annotations

import os
import random
import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import fixtures
from fixtures.builder import HandmadeLog
from rmqtool.errors import RmqtoolError
from rmqtool.pipeline.export import folders
from rmqtool.pipeline.notes import Listener, send
from rmqtool.store.layout import Store
from rmqtool.store.names import as_text
from tests.cli.test_secrets import HUSH, keep, secrets
from tests.fuzz import stores as fuzz
from tests.helpers import rmq
from tests.pipeline import test_jobs

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyspark.sql import SparkSession

    from rmqtool.cli.context import Context
    from rmqtool.pipeline.options import SourceOptions

pytestmark = pytest.mark.timeout(900)

UNSEEN = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
TOPICS = (
    "a\x1b[2J",
    "b\u202ec",
    "=1+1",
    "../../x",
    "a/b",
    "a\nb",
    "T",
    "\u2028",
    "x" * 200,
    "%2e%2e",
    "",
)
SEEDS = range(4000, 4016)


def odd_names(root: Path) -> Path:
    """Topics and keys that a terminal, a path or a spreadsheet would take for something else."""
    log = HandmadeLog(segment_size=4096)
    for number, topic in enumerate(TOPICS):
        for copy in range(3):
            log.put(topic, b"x" * 30, {"KEYS": f"k{number} \x1b[2J\u202ek", "UNIQ_KEY": f"u{copy % 2}"})
    log.write(root / "commitlog")
    return root


def no_utf8(root: Path) -> Path:
    """A path with a byte that is not UTF-8, a line break and what moves a cursor."""
    place = os.path.join(os.fsdecode(os.fsencode(root) + b"/\xff\n\x1b[2J\xe2\x80\xae"), "store")
    shutil.copytree(fixtures.open_golden("v498-basic", root / "unpacked").path, place)
    return root / os.path.relpath(place, root)


def changed(change: Callable[[list[Path]], None]) -> Callable[[Path], Path]:
    """A golden whose segments are changed."""

    def make(root: Path) -> Path:
        store = fixtures.open_golden("v498-basic", root).path
        change(sorted((store / "commitlog").iterdir()))
        return store

    return make


def fifo(segments: list[Path]) -> None:
    segments[1].unlink()
    os.mkfifo(segments[1])


def directory(segments: list[Path]) -> None:
    segments[1].unlink()
    segments[1].mkdir()


def link(segments: list[Path]) -> None:
    outside = segments[0].parents[2] / "outside"
    shutil.move(segments[0], outside)
    segments[0].symlink_to(outside)


def sparse(segments: list[Path]) -> None:
    behind = segments[0].with_name(f"{4 * 32768:020d}")
    behind.touch()
    os.truncate(behind, 1 << 33)


MAKERS: dict[str, Callable[[Path], Path]] = {
    "healthy": changed(lambda _: None),
    "fifo": changed(fifo),
    "odd-names": odd_names,
    "no-utf8": no_utf8,
    "directory": changed(directory),
    "link": changed(link),
    "sparse": changed(sparse),
}
FEW = ("healthy", "fifo", "odd-names", "no-utf8")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    place = tmp_path_factory.mktemp("hostile")
    for name in MAKERS:
        (place / name).mkdir()
    return {name: make(place / name) for name, make in MAKERS.items()}


COMMANDS: dict[str, tuple[str, ...]] = {
    "verify": (), "stats": ("--by", "topic,tag"), "export": (), "sql": (), "query-key": ("--key", "k1"),
}  # fmt: skip
USUAL = ("verify", "stats", "export")
MORE: dict[str, tuple[str, ...]] = {
    "stats --duplicates": (), "query-key --join shuffle": ("--key", "k1"), "rebuild": (),
    "stream": ("--once", "--expired", "skip"), "export --format ndjson": (),
    "export --partition topic,day": (), "verify --deep": (),
}  # fmt: skip


def run(command: str, stores: list[Path], to: Path, *options: str) -> Any:
    """A job; its summary is the last row, or the only one."""
    name, *words = command.split()
    more = {
        "export": ["--to", to, "--json"],
        "stream": ["--to", to, "--json"],
        "rebuild": ["--output", to, "--json"],
    }
    table = ["select store, topic, count(*) as n, count(body) as m from messages group by all"] * (
        name == "sql"
    )
    if name == "export" and "ndjson" in words:
        more["export"] = ["--to", to]
    done = rmq("pipeline", name, *stores, *table, *words, *options, *more.get(name, ["--format", "ndjson"]))
    assert done.exit_code in {0, 1, 3, 6}, done.stderr
    assert "Traceback" not in done.stderr
    assert not UNSEEN.search(done.stdout), "controls among the data"
    assert not UNSEEN.search(done.stderr), "controls on the terminal"
    return done


@pytest.mark.parametrize(
    "command",
    [*USUAL, *(pytest.param(one, marks=pytest.mark.full) for one in (*COMMANDS, *MORE) if one not in USUAL)],
)
def test_what_cannot_be_read_is_named_and_the_rest_is_answered(
    spark: SparkSession, made: dict[str, Path], tmp_path: Path, command: str
) -> None:
    options = (COMMANDS | MORE)[command]
    names = FEW if command in COMMANDS else tuple(MAKERS)
    done = run(command, [made[name] for name in names], tmp_path / "new", *options)
    summary = done.rows[-1] if done.stdout else {}
    if summary:
        lacking = {row["store"] for row in summary.get("not_covered", ())}
        assert str(made["fifo"]) in lacking, summary
        assert not lacking & {str(made["healthy"]), as_text(str(made["no-utf8"]))}
        assert summary["complete"] is False
    if command in COMMANDS:
        assert done.exit_code == 3
        alone = run(command, [made["healthy"], made["odd-names"]], tmp_path / "alone", *options)
        if command == "export":
            sizes = [one["messages"] for one in summary["stores"][::2]]
            assert sizes == [one["messages"] for one in alone.rows[0]["stores"]]
        else:
            kept = {str(made[name]) for name in ("healthy", "odd-names")}
            rows = [row for row in done.rows[:-1] if row["store"] in kept]
            assert sorted(map(str, rows)) == sorted(map(str, alone.rows[:-1]))
            if command != "query-key":
                assert as_text(str(made["no-utf8"])) in {row["store"] for row in done.rows[:-1]}


@pytest.mark.parametrize(
    "command",
    [
        "verify",
        *(pytest.param(one, marks=pytest.mark.full) for one in (*COMMANDS, *MORE) if one != "verify"),
    ],
)
def test_what_a_pattern_matches_and_is_no_store_is_left_out(
    spark: SparkSession,
    made: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
) -> None:
    """Relative to the directory of the command, which is not that of the workers."""
    (tmp_path / "stores").mkdir()
    shutil.copytree(made["healthy"], tmp_path / "stores" / "one")
    (tmp_path / "stores" / "foreign").mkdir()
    (tmp_path / "stores" / "foreign" / "notes.txt").write_text("none of a store")
    monkeypatch.chdir(tmp_path)
    done = run(command, [Path("stores/*")], tmp_path / "new", *(COMMANDS | MORE)[command])
    assert done.exit_code == 3, done.stderr
    assert "foreign: left out" in done.stderr
    if done.stdout:
        lacking = [row["store"] for row in done.rows[-1]["not_covered"]]
        assert str(tmp_path / "stores" / "foreign") in lacking
    assert rmq("pipeline", "verify", "stores/foreign").exit_code == 2
    assert rmq("pipeline", "verify", "stores/f*").exit_code == 2


CHANGED = [(command, what) for command in (*USUAL, "sql", "rebuild") for what in ("gone", "cut", "swapped")]


@pytest.mark.share
@pytest.mark.parametrize(
    ("command", "what"),
    [
        one if one[0] in USUAL or one == ("rebuild", "gone") else pytest.param(*one, marks=pytest.mark.full)
        for one in CHANGED
    ],
)
def test_a_store_that_changes_under_the_tasks(
    spark: SparkSession,
    made: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    what: str,
) -> None:
    """Between the listing and the reading; the other store is answered."""
    from rmqtool.cli.pipeline import spark as command_line

    store = tmp_path / "store"
    shutil.copytree(made["healthy"], store)
    opened = command_line.opened

    def opened_then_changed(
        context: Context, options: SourceOptions
    ) -> tuple[SourceOptions, dict[str, Store]]:
        found = opened(context, options)
        second = sorted((store / "commitlog").iterdir())[1]
        if what == "cut":
            os.truncate(second, 100)
        else:
            second.unlink()
            if what == "swapped":
                os.mkfifo(second)
        return found

    monkeypatch.setattr(command_line, "opened", opened_then_changed)
    cut = () if command == "verify" else ("--part-size", "20000")
    done = run(command, [made["healthy"], store], tmp_path / "new", *cut)
    if command == "verify":
        assert done.exit_code in {1, 3}
        return
    assert done.exit_code == 3, done.stderr
    assert {row["store"] for row in done.rows[-1]["not_covered"]} == {str(store)}


@pytest.mark.full
def test_jobs_over_fuzzed_stores_answer_as_local_commands(
    spark: SparkSession, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    stores = []
    for seed in SEEDS:
        place = tmp_path / f"{seed}"
        place.mkdir()
        root, _ = fuzz.store(random.Random(seed), place, tmp_path_factory.getbasetemp())
        try:
            if len(Store.open(root).segments):
                stores.append(root)
        except RmqtoolError:
            continue
    test_jobs.test_verify(spark, stores)
    # in whole segments: of a segment that is cut, each piece tells of its own records at wrong places
    whole = ("--part-size", "0")
    test_jobs.same_lines(stores, tmp_path, cut=whole)
    test_jobs.same_statistics(stores, "--by", "topic", cut=whole)


@pytest.mark.parametrize(
    "command",
    ["stats --by group", *(pytest.param(one, marks=pytest.mark.full) for one in (*COMMANDS, *MORE))],
)
def test_no_job_shows_a_secret(
    spark: SparkSession, events: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    """Nor do the events that Spark keeps, with plans and settings; it logs nothing else in these sessions."""
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", HUSH)
    store, conf = fixtures.open_golden("v533-tx", tmp_path).path, tmp_path / "broker.conf"
    keep(store)
    conf.write_text(secrets("{name}={value}"))
    options = (*(COMMANDS | MORE).get(command, ()), "--store-config", conf, "--debug")
    done = run(command, [store], tmp_path / "new", *options)
    assert HUSH not in done.stdout + done.stderr
    for path in (tmp_path / "new").rglob("*"):
        assert not path.is_file() or HUSH.encode() not in path.read_bytes(), path
    logs = [path for path in events.rglob("*") if path.is_file()]
    assert logs
    for path in logs:
        assert HUSH.encode() not in path.read_bytes(), path


def test_no_task_is_believed_without_the_token(capfd: pytest.CaptureFixture[str]) -> None:
    import socket

    rows = [{"path": "commitlog", "physical_offset": number, "reason": "damage"} for number in range(25_000)]
    with Listener("127.0.0.1") as listener:
        send(listener.address, rows)
        host, port, _ = listener.address.split(":")
        for line in (
            b"[]",
            b"{}",
            b"\xff",
            b"[" * 100_000,
            b'{"token":7,"rows":[]}',
            b'{"token":"x","rows":[1]}',
        ):
            with socket.create_connection((host, int(port)), timeout=30) as one:
                one.sendall(line + b"\n")
                assert one.makefile("rb").read() == b""
        with pytest.raises(OSError, match="did not answer"):
            send(f"{host}:{port}:not-it", rows)
        assert len(listener.rows) == len(rows)
    assert capfd.readouterr().err == ""


def test_folders_of_stores_are_names() -> None:
    paths = [
        os.fsdecode(b"/a/\xff"),
        "/b/" + "\u4e2d" * 80 + "/1",
        "/b/" + "\u4e2d" * 80 + "/2",
        "/c/../d",
        "s3://b/k?*",
    ]
    found = folders(paths)
    assert len(set(found.values())) == len(paths)
    for name in found.values():
        assert len(name) <= 255
        assert not set(name) & set("/.?*\0")
