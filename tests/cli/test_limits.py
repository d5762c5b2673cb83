"""Files larger than any memory, and what is not a file, in the place of every kind of file: commands end.

Exit codes of the contract, no more memory than for the store as it was, and a store that is left alone.
"""

from __future__ import annotations

import os
import resource
import shutil
import stat
import threading
import time
import tracemalloc
from collections import deque
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.stores import healthy_store
from formats.commitlog import MESSAGE_MAGIC_CODE
from rmqtool.errors import ExitCode
from rmqtool.query.inventory import take_inventory
from rmqtool.scan import kernels_python
from rmqtool.store.layout import Store
from tests.fuzz.commands import tree, troubles
from tests.helpers import rmq
from tests.tiers import sampled

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

TIB = 1 << 40
MAGIC = MESSAGE_MAGIC_CODE.to_bytes(4, "big", signed=True)
MEMORY = 256 << 20
"""bytes that a command may have at most, above what the process had before it"""

PLACES = (
    "abort", "abort.bak", "batchconsumequeue/Batches/0/00000000000000000000", "brokerIdentity", "checkpoint",
    "commitlog/00000000000000004096", "commitlog/00000000000000032768",
    "compaction/compactionCq/T/0/00000000000000000000", "compaction/compactionLog/T/0/00000000000000000000",
    "compaction/position-checkpoint", "config/consumerFilter.json", "config/consumerOffset.json",
    "config/delayOffset.json", "config/subscriptionGroup.json.bak", "config/timercheck",
    "config/timermetrics", "config/topics.json", "config/topics.json.bak", "config/transactionMetrics",
    "consumequeue/Orders/0/00000000000000000400", "consumequeue/Orders/0/00000000000000000800",
    "consumequeue_ext/Filtered/0/00000000000000000000", "epochFileCheckpoint",
    "index/20231114220000000", "index/20231114220000006", "lock", "timerlog/00000000000000000000",
    "timerwheel",
)  # fmt: skip
COMMANDS: dict[str, tuple[str, ...]] = {
    "info": ("info", "STORE", "--json"),
    "verify": ("verify", "STORE", "--json"),
    "doctor": ("doctor", "STORE", "--json"),
    "recover": ("recover", "STORE", "--output", "OUT", "--apply"),
    "dump the file": ("dump", "FILE", "--format", "ndjson"),
    "verify the file": ("verify", "FILE"),
    "dump": ("dump", "STORE", "--limit", "10"),
    "verify --quick": ("verify", "--quick", "STORE"),
    "verify --deep": ("verify", "--deep", "STORE"),
    "doctor of 4.9.8": ("doctor", "STORE", "--as-version", "4.9.8", "--what-if", "remove-abort"),
    "show": ("show", "STORE", "0"),
    "query-key": ("query-key", "STORE", "Orders", "a"),
    "query-key --source scan": ("query-key", "STORE", "Orders", "a", "--source", "scan"),
    "query-id": ("query-id", "STORE", "7F000001000078BF0000000000000000"),
    "query-offset": ("query-offset", "STORE", "Orders", "0", "min", "-n", "99"),
    "query-time": ("query-time", "STORE", "Orders", "0", "now"),
    "tail": ("tail", "STORE"),
    "stats": ("stats", "STORE"),
    "stats --retention": ("stats", "STORE", "--retention"),
    "stats --by group": ("stats", "STORE", "--by", "group"),
    "export": ("export", "STORE", "--to", "OUT.ndjson"),
    "sql of messages": ("sql", "STORE", "select count(*) from messages"),
    "sql of units": ("sql", "STORE", "select count(*) from consumequeue"),
    "sql of items": ("sql", "STORE", "select count(*) from index_items"),
    "sql of tables": ("sql", "STORE", "select count(*) from consumer_offsets"),
    "salvage": ("salvage", "STORE", "--output", "OUT"),
    "rebuild": ("rebuild", "STORE", "--output", "OUT", "--apply"),
    "checkpoint show": ("checkpoint", "show", "STORE"),
    "checkpoint set": ("checkpoint", "set", "STORE"),
    "as an export": ("dump", "FILE", "--as", "replay"),
    "store get": ("store", "get", "STORE", "Orders", "0"),
    "store status": ("store", "status", "STORE"),
    "store expire": ("store", "expire", "STORE"),
    "store put": ("store", "put", "STORE", "Orders", "--body", "x", "--queue", "0", "--keys", "k"),
    "store topic": ("store", "topic", "STORE", "New", "--write-queues", "2"),
    "store group": ("store", "group", "STORE", "New", "--retry-max", "2"),
    "store groups": ("store", "groups", "STORE"),
    "store commit": ("store", "commit", "STORE", "none"),
    "store load": ("store", "load", "STORE", "FILE"),
    "recover in place": ("recover", "STORE", "--in-place", "--backup", "OUT", "--apply"),
}
CHANGING = (
    "store expire",
    "store put",
    "store topic",
    "store group",
    "store commit",
    "store load",
    "recover in place",
)
ALWAYS = 4
"""commands that run on every case; the others take turns"""


def hole(path: Path) -> None:
    """What it holds, and nothing behind that."""
    path.open("ab").close()
    os.truncate(path, TIB)


def far(path: Path) -> None:
    """Something at the very end, too."""
    hole(path)
    with path.open("r+b") as file:
        file.seek(TIB - 777)
        file.write(b"\1" * 600)


def special(kind: int, device: tuple[int, int] = (0, 0)) -> Callable[[Path], None]:
    """No file: a FIFO, a socket or a device."""

    def put(path: Path) -> None:
        path.unlink(missing_ok=True)
        try:
            os.mknod(path, kind | 0o600, os.makedev(*device))
        except PermissionError:
            pytest.skip("only root makes devices")

    return put


FORMS: dict[str, Callable[[Path], None]] = {
    "hole": hole,
    "far": far,
    "fifo": special(stat.S_IFIFO),
    "socket": special(stat.S_IFSOCK),
    "character": special(stat.S_IFCHR, (1, 5)),
    "block": special(stat.S_IFBLK, (7, 0)),
}


def _kind(case: tuple[str, str]) -> object:
    return case[0]


@pytest.mark.share
@pytest.mark.timeout(120)
@pytest.mark.parametrize(("place", "form"), sampled(product(PLACES, FORMS), _kind, unpack=True))
def test_every_command_ends(place: str, form: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    root = tmp_path / "store"
    healthy_store().write(root)
    path = root / place
    path.parent.mkdir(parents=True, exist_ok=True)
    FORMS[form](path)
    turn = PLACES.index(place) + list(FORMS).index(form)
    every = "full" in {mark.name for mark in request.node.iter_markers()}
    chosen = [one for at, one in enumerate(COMMANDS) if every or at < ALWAYS or at % 14 == turn % 14]
    for name in chosen:
        before = tree(root)
        held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        out = tmp_path / "out"
        words = [
            {"STORE": root, "FILE": path, "OUT": out, "OUT.ndjson": out.with_suffix(".ndjson")}.get(one, one)
            for one in COMMANDS[name]
        ]
        result = rmq(*words)
        assert not troubles(result, "table"), name
        more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held
        assert more < MEMORY >> 10, (name, more)
        if name not in CHANGING:
            assert tree(root) == before, name
        shutil.rmtree(out, ignore_errors=True)
        out.with_suffix(".ndjson").unlink(missing_ok=True)


def test_a_queue_that_begins_with_a_hole(tmp_path: Path) -> None:
    """Ten million units of zeros in front of those of messages, which a broker takes as they are."""
    root = tmp_path / "store"
    healthy_store().write(root)
    queue = root / "consumequeue/Orders/0"
    for path in sorted(queue.iterdir(), reverse=True):
        path.rename(queue / f"{int(path.name) + 200_000_000:020d}")
    (queue / f"{0:020d}").touch()
    os.truncate(queue / f"{0:020d}", 200_000_000)
    for words in (
        ("now", "--boundary", "upper", "--key", "a"),
        ("0", "--key", "k1"),
        ("0", "--as-version", "4.9.8"),
    ):
        held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        done = rmq("query-time", root, "Orders", "0", *words, "--format", "ndjson")
        assert done.exit_code == ExitCode.INCOMPLETE
        assert done.rows[-1]["max_offset"] > 10_000_000
        more = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - held
        assert more < MEMORY >> 10, (words, more)


@pytest.mark.share
@pytest.mark.parametrize("pattern", [MAGIC, b"\0\0\0\x64" + MAGIC, b"\xff"], ids=bytes.hex)
def test_what_is_no_record_is_not_searched_in_plain_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: bytes
) -> None:
    """A segment full of what records begin with took 5 us a byte, and some commands read it many times."""
    root, size, asked = tmp_path / "store", 2 << 20, [0]
    (root / "commitlog").mkdir(parents=True)
    for number in range(2):
        (root / "commitlog" / f"{number * size:020d}").write_bytes((pattern * size)[:size])
    find = kernels_python.find_record

    def counting(window: Any, at: int, *given: Any) -> Any:
        asked[0] += len(window) - at
        return find(window, at, *given)

    monkeypatch.setattr(kernels_python, "find_record", counting)
    for words in (
        ("info", root),
        ("tail", root),
        ("stats", root),
        ("stats", root, "--retention"),
        ("query-offset", root, "T", "0", "0"),
        ("query-key", root, "T", "k"),
        ("store", "status", root),
        ("store", "get", root, "T", "0"),
    ):
        asked[0] = 0
        assert rmq(*words).exit_code in {0, 1, 3}, words
        assert asked[0] <= size, words


NAMES = (
    "9223372036854775807", "9223372036854775800", "9223372036854771712", "9223372036854767616",
    "9223372036854775808", "18446744073709551616", "-1", "-0000000000000004096", "9" * 25,
    "0000000000000000000036864",
)  # fmt: skip


@pytest.mark.share
@pytest.mark.parametrize("directory", ["commitlog", "consumequeue/Orders/0", "index"])
def test_names_near_the_last_offset(directory: str, tmp_path: Path) -> None:
    """Copies of the last file under numbers that no long holds, or whose bytes reach behind the last one."""
    root = tmp_path / "store"
    healthy_store().write(root)
    last = max((root / directory).iterdir()).read_bytes()
    for name in NAMES:
        (root / directory / name).write_bytes(last)
    for name in (
        "info",
        "verify",
        "recover",
        "query-time",
        "query-offset",
        "tail",
        "rebuild",
        "salvage",
        "store put",
    ):
        out = tmp_path / "out"
        words = [{"STORE": root, "OUT": out}.get(one, one) for one in COMMANDS[name]]
        assert not troubles(rmq(*words), "table"), name
        shutil.rmtree(out, ignore_errors=True)


def test_many_entries_cost_their_number(tmp_path: Path) -> None:
    """Empty files in four directories, and topics: four times as many take no sixteenfold time."""
    root = tmp_path / "store"
    healthy_store().write(root)
    times: dict[str, list[float]] = {}
    for start, end in ((0, 200), (200, 800)):
        for number in range(start, end):
            for name in (
                f"commitlog/{(1 << 40) + number * 4096:020d}", f"config/c{number}.json",
                f"consumequeue/Orders/0/{(1 << 40) // 400 * 400 + number * 400:020d}",
                f"index/{20300101000000000 + number}", f"consumequeue/T{number}/0/00000000000000000000",
            ):  # fmt: skip
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
        for name in ("info", "verify", "doctor"):
            before = time.process_time()
            assert not troubles(rmq(*(root if one == "STORE" else one for one in COMMANDS[name])), "table")
            times.setdefault(name, []).append(time.process_time() - before)
    assert all(more < 10 * max(few, 0.05) for few, more in times.values()), times


MANY = 1000


@pytest.mark.parametrize(("name", "most"), [("{:020d}", 1500), ("foreign-{}", 700)])
def test_what_a_file_costs(name: str, most: int, tmp_path: Path) -> None:
    """Bytes of memory for each file of a directory that is listed and shown; there may be a million."""
    (tmp_path / "commitlog").mkdir()
    take_inventory(Store.open(tmp_path))
    for number in range(MANY):
        (tmp_path / "commitlog" / name.format(number * 4096)).touch()
    tracemalloc.start()
    try:
        found = take_inventory(Store.open(tmp_path))
        for value in found.document().values():
            deque(value if hasattr(value, "__iter__") else (), maxlen=0)
        assert len(found.files) == MANY
        assert tracemalloc.get_traced_memory()[1] < MANY * most
    finally:
        tracemalloc.stop()


def test_small_segments_start_no_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread takes longer to begin than a page to be read; there may be a million of them."""
    root = tmp_path / "store"
    healthy_store().write(root)
    for number in range(64):
        (root / "commitlog" / f"{(1 << 40) + number * 4096:020d}").write_bytes(bytes(4096))
    started: list[threading.Thread] = []
    start = threading.Thread.start
    monkeypatch.setattr(threading.Thread, "start", lambda one: (started.append(one), start(one))[1])
    assert rmq("verify", root, "--jobs", "4").exit_code == ExitCode.DAMAGE
    assert len(started) < 16
