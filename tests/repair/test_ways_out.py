"""Every refusal of a broker has a way out in the advice of doctor, and it leads to a store that starts."""

from __future__ import annotations

import itertools
import json
import os
import shlex
import shutil
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from fixtures import apply_case, copy_base, damage_case, open_golden, strict
from fixtures.builder import HandmadeLog
from fixtures.stores import HandmadeStore
from rmqtool.recovery.consequences.catalogue import CATALOGUE
from rmqtool.store.holding import acquire_store_lock
from tests.helpers import rmq
from tests.repair.smallstore import tree
from tests.tiers import sampled

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SIZES = {"mappedFileSizeCommitLog": 65536, "mappedFileSizeConsumeQueue": 4000}


@dataclass(frozen=True)
class Scenario:
    """A refusal: what is done to a store of a release, and settings of the broker."""

    release: str
    harm: Callable[[Path], None]
    settings: dict[str, Any] = field(default_factory=dict)
    base: str = ""


def put(path: str, data: bytes) -> Callable[[Path], None]:
    def harm(root: Path) -> None:
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(data)

    return harm


def directory(path: str, *, filled: bool = True) -> Callable[[Path], None]:
    """A directory in the place of a file, with something in it."""

    def harm(root: Path) -> None:
        place = root / path
        if place.is_file():
            place.unlink()
        (place / "deeper" if filled else place).mkdir(parents=True)
        if filled:
            (place / "deeper" / "note.txt").write_bytes(b"-")
            (place / "other").write_bytes(b"-")

    return harm


def cut(pattern: str, size: int) -> Callable[[Path], None]:
    def harm(root: Path) -> None:
        place = min(root.glob(pattern))
        place.write_bytes(place.read_bytes()[:size])

    return harm


def unparsable(name: str, data: bytes) -> Callable[[Path], None]:
    def harm(root: Path) -> None:
        for suffix in ("", ".bak"):
            put(f"config/{name}{suffix}", data)(root)

    return harm


def wrong_kind(root: Path) -> None:
    """The topic table calls a topic of plain queues one of batch queues."""
    table = {name: {"topicName": name} for name in ("OrderTopic", "PayTopic")}
    table["OrderTopic"] |= {"attributes": {"queue.type": "BatchCQ"}}
    put("config/topics.json", json.dumps({"topicConfigTable": table}).encode())(root)


def multi(root: Path) -> None:
    log = HandmadeLog(segment_size=65536)
    log.put("T", b"x", {"INNER_MULTI_DISPATCH": "plain,%LMQ%a", "INNER_MULTI_QUEUE_OFFSET": ",4"})
    log.put("T", b"x")
    log.write(root / "commitlog")


def foreign_queue(root: Path) -> None:
    queues = root / "consumequeue" / "TopicExt"
    shutil.rmtree(queues / "0")
    shutil.copytree(queues / "1", queues / "0")


def too_large(root: Path) -> None:
    path = max((root / "commitlog").iterdir())
    raw = bytearray(path.read_bytes())
    raw[:4] = b"\x7f\xff\xff\xff"
    path.write_bytes(raw)


CLEAN, OLD, EXTENDED = "v533-a-clean", "v498-a-clean", "v498-cqext"
SCENARIOS = {
    "length-segment": Scenario("5.3.3", cut("commitlog/0*", 40000)),
    "length-queue": Scenario("5.3.3", cut("consumequeue/*/0/0*", 3000)),
    "length-directory": Scenario("4.9.8", directory("commitlog/old"), base=OLD),
    "length-directory-queue": Scenario("4.9.8", directory("consumequeue/OrderTopic/0/old"), base=OLD),
    "name-segment": Scenario("5.3.3", put("commitlog/notes.txt", bytes(65536))),
    "name-queue": Scenario("5.3.3", put("consumequeue/OrderTopic/0/notes.txt", bytes(4000))),
    "config": Scenario(
        "5.3.3", unparsable("topics.json", b'{"topicConfigTable":{"A":{"topicName":"A"},"B":{"to')
    ),
    "config-old": Scenario(
        "4.9.8", unparsable("consumerOffset.json", b'{"offsetTable":{"T@g":{0:1,1:2'), base=OLD
    ),
    "config-delay": Scenario("5.3.3", unparsable("delayOffset.json", b"garbage")),
    "checkpoint": Scenario("5.3.3", directory("checkpoint")),
    "abort": Scenario("5.3.3", directory("abort")),
    "abort-bak": Scenario("5.3.3", directory("abort.bak")),
    "lock": Scenario("4.9.8", directory("lock")),
    "queue-type": Scenario("5.3.3", wrong_kind),
    "record-size": Scenario("4.9.8", too_large, base=OLD),
    "multi-dispatch": Scenario(
        "5.3.3", multi, {"enableMultiDispatch": "true", "enableLmq": "true"}, base="none"
    ),
    "stuck": Scenario("4.9.8", multi, {"enableMultiDispatch": "true", "enableLmq": "true"}, base="none"),
    "index": Scenario("5.3.3", directory("index/20260101000000000")),
    "timer-wheel": Scenario("5.3.3", put("timerwheel", bytes(64))),
    "compaction": Scenario("5.3.3", directory("compaction/compactionLog/OrderTopic/old")),
    "timer-file": Scenario("5.3.3", directory("config/timercheck")),
    "extension": Scenario("4.9.8", foreign_queue, base=EXTENDED),
    "zero-file": Scenario(
        "5.3.3", lambda root: None, base="v533-cq-idle-queue-full-plus-zero-file-lag-1-clean"
    ),
}


QUEUE = "consumequeue/OrderTopic/0"
DIRECTORIES = (
    *("consumequeue", "consumequeue/OrderTopic", QUEUE, "consumequeue/OrderTopic/9", "index", "config"),
    *("timerlog", "batchconsumequeue", "batchconsumequeue/OrderTopic"),
)
"""where brokers need a directory"""
WANTED = [(path, "5.3.3") for path in DIRECTORIES] + [
    (path, "4.9.8") for path in DIRECTORIES if path != "timerlog" and "batch" not in path
]
"""those that a release needs"""


def instead(path: str, release: str, place: Path, link: str | None = None) -> tuple[Path, Path]:
    """A store with a file, or a link, in the place of a directory, and its broker.conf."""
    root = copy_base(CLEAN if release == "5.3.3" else OLD, place / "store")
    if (root / path).exists():
        shutil.rmtree(root / path)
    if link is None:
        put(path, b"precious")(root)
    else:
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).symlink_to(link)
    conf = place / "broker.conf"
    conf.write_text("".join(f"{key}={value}\n" for key, value in SIZES.items()))
    return root, conf


def made(name: str, place: Path) -> tuple[Path, Path, dict[str, Any]]:
    """The store, its broker.conf, and what doctor says."""
    scenario = SCENARIOS[name]
    settings = SIZES | scenario.settings
    root = place / "store"
    if scenario.base == "none":
        root.mkdir()
    elif scenario.base == EXTENDED:
        golden = open_golden(EXTENDED, place / "golden")
        shutil.copytree(golden.path, root)
        lines = golden.configs["store"].read_text().splitlines()
        settings = dict(line.split("=", 1) for line in lines if "=" in line)
    elif scenario.base in ("", OLD):
        copy_base(scenario.base or CLEAN, root)
    else:
        case = damage_case(scenario.base)
        apply_case(case, root)
        settings = dict(case.settings) | scenario.settings
    scenario.harm(root)
    conf = place / "broker.conf"
    conf.write_text("".join(f"{key}={value}\n" for key, value in settings.items()))
    return root, conf, asked(root, conf, scenario.release)


def asked(root: Path, conf: Path, release: str) -> dict[str, Any]:
    done = rmq("doctor", root, "--store-config", conf, "--as-version", release, "--json")
    reported: dict[str, Any] = json.loads(done.stdout)
    return reported


@pytest.mark.share
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_first_advice_leads_to_a_store_that_starts(name: str, tmp_path: Path) -> None:
    _, conf, reported = made(name, tmp_path)
    assert reported["starts"] is False
    words = shlex.split(reported["advice"][0]["command"])[1:]
    if words[0] == "doctor":
        tried = json.loads(rmq(*words, "--json").stdout)
        assert tried["what_if"][0]["starts"] is True
        (setting,) = (one.removeprefix("set ") for one in words if one.startswith("set "))
        conf.write_text(f"{conf.read_text()}{setting}\n")
        assert asked(tmp_path / "store", conf, SCENARIOS[name].release)["starts"] is True
        return
    assert words[0] == "recover", reported["advice"]
    done = rmq(*words, "--output", tmp_path / "out", "--apply")
    assert done.exit_code == 0, (done.stderr, done.stdout)
    after = asked(tmp_path / "out", conf, SCENARIOS[name].release)
    assert after["starts"] is True, after["refusal"]


def test_every_refusal_is_walked(tmp_path: Path) -> None:
    seen: set[str] = set()
    for number, name in enumerate(SCENARIOS):
        (tmp_path / str(number)).mkdir()
        reported = made(name, tmp_path / str(number))[2]
        seen |= {one["code"] for one in reported["consequences"]}
    assert {code for code in CATALOGUE if code.startswith("DR-REFUSE-")} <= seen


def test_a_held_store_is_let_go(tmp_path: Path) -> None:
    """The one refusal that is none of the store's."""
    root = copy_base(CLEAN, tmp_path / "store")
    conf = tmp_path / "broker.conf"
    conf.write_text("".join(f"{key}={value}\n" for key, value in SIZES.items()))
    with acquire_store_lock(root):
        reported = asked(root, conf, "5.3.3")
        assert (reported["refusal"]["code"], "stop that one" in reported["advice"][0]["why"]) == (
            "lock-held",
            True,
        )
        assert not any(" recover " in one["command"] for one in reported["advice"])
    assert asked(root, conf, "5.3.3")["starts"] is True


@pytest.mark.share
@pytest.mark.parametrize(("path", "release"), WANTED)
def test_a_file_in_the_place_of_a_directory_is_moved_away_and_comes_back(
    path: str, release: str, tmp_path: Path
) -> None:
    root, conf = instead(path, release, tmp_path)
    before = tree(root)
    reported = asked(root, conf, release)
    assert reported["verdict"] == "unsafe"
    words = shlex.split(reported["advice"][0]["command"])[1:]
    assert words[0] == "recover", reported["advice"]
    done = rmq(*words, "--output", tmp_path / "out", "--apply")
    assert done.exit_code == 0, done.stderr
    assert asked(tmp_path / "out", conf, release)["verdict"] == "safe"
    assert (tmp_path / "out.quarantine" / "files" / path).read_bytes() == b"precious"
    assert tree(root) == before
    done = rmq(*words, "--in-place", "--backup", tmp_path / "b", "--apply")
    assert done.exit_code == 0, done.stderr
    assert asked(root, conf, release)["verdict"] == "safe"
    assert rmq("undo", tmp_path / "b", "--apply").exit_code == 0
    assert tree(root) == before


def test_a_file_does_not_come_back_where_something_was_made_since(tmp_path: Path) -> None:
    root, conf = instead("index", "5.3.3", tmp_path)
    options = ("--store-config", conf, "--in-place", "--backup", tmp_path / "b", "--apply")
    assert rmq("recover", root, *options).exit_code == 0
    (root / "index" / "20260101000000000").write_bytes(b"by a broker")
    done = rmq("undo", tmp_path / "b", "--apply")
    assert done.exit_code == 1
    assert "index: something was made in it since" in done.stderr
    rmq("undo", tmp_path / "b", "--apply", "--partial")
    assert (root / "index" / "20260101000000000").read_bytes() == b"by a broker"
    assert (tmp_path / "b" / "files" / "index").read_bytes() == b"precious"


@pytest.mark.share
@pytest.mark.parametrize(("path", "release"), WANTED)
def test_a_dead_link_in_the_place_of_a_directory_is_the_users(
    path: str, release: str, tmp_path: Path
) -> None:
    """`recover` refuses: the disk that it leads to may have all. The advice says both ways out."""
    root, conf = instead(path, release, tmp_path, link="/not/mounted it is")
    reported = asked(root, conf, release)
    assert reported["verdict"] == "unsafe"
    assert rmq("recover", root, "--store-config", conf).exit_code == 1
    first = reported["advice"][0]
    assert "/not/mounted it is: mount the disk it leads to; only if nothing is to come back" in first["why"]
    assert shlex.split(first["command"]) == ["rm", str(root / path)]
    (root / path).unlink()
    again = asked(root, conf, release)
    if again["verdict"] != "safe":  # what lay there is made again
        words = shlex.split(again["advice"][0]["command"])[1:]
        assert words[0] == "recover", again["advice"]
        assert rmq(*words, "--output", tmp_path / "out", "--apply").exit_code == 0
        assert asked(tmp_path / "out", conf, release)["verdict"] == "safe"


@pytest.mark.parametrize("link", [None, "/not/mounted"])
def test_nothing_is_planned_for_something_else_in_the_place_of_the_log(
    link: str | None, tmp_path: Path
) -> None:
    root, conf = instead("commitlog", "5.3.3", tmp_path, link)
    first = asked(root, conf, "5.3.3")["advice"][0]
    assert ("put the directory of the commit log back" if link is None else "mount the disk") in first["why"]
    assert rmq("recover", root, "--store-config", conf).exit_code == 1


def test_what_is_left_of_a_table_is_reported(tmp_path: Path) -> None:
    root, conf, _ = made("config", tmp_path)
    done = rmq("recover", root, "--store-config", conf, "--as-version", "5.3.3", "--json")
    reported = json.loads(done.stdout)
    [change] = reported["rows"]
    assert (change["path"], change["entries"]) == ("config/topics.json", 1)
    assert "must be made again" in change["message"]
    assert change["message"] in reported["summary"]["notes"]


def test_what_is_behind_a_link_stays(tmp_path: Path) -> None:
    root = copy_base(CLEAN, tmp_path / "store")
    other = tmp_path / "other"
    other.mkdir()
    (other / "precious").write_bytes(b"-")
    (root / "abort").symlink_to(other)
    rmq("recover", root, "--as-version", "5.3.3", "--in-place", "--backup", tmp_path / "b", "--apply")
    assert (other / "precious").exists()


def test_undo_brings_a_directory_back(tmp_path: Path) -> None:
    root, conf, _ = made("checkpoint", tmp_path)
    before = tree(root)
    options = ("--store-config", conf, "--as-version", "5.3.3", "--in-place", "--backup", tmp_path / "b")
    assert rmq("recover", root, *options, "--apply").exit_code == 0
    assert not (root / "checkpoint").is_dir()
    assert rmq("undo", tmp_path / "b", "--apply").exit_code == 0
    assert tree(root) == before


def test_a_store_that_needs_no_change_and_is_refused(tmp_path: Path) -> None:
    """A link to a directory in the place of the checkpoint: `recover` has no plan, and it is not well."""
    root = open_golden("v533-basic", tmp_path).path
    (tmp_path / "other").mkdir()
    (root / "checkpoint").unlink()
    (root / "checkpoint").symlink_to(tmp_path / "other")
    done = rmq("recover", root, "--json", "--as-version", "5.3.3")
    assert done.exit_code == 1
    assert '"refusal":"a directory of this name (checkpoint)"' in done.stdout


FOREIGN = {
    "nothing": lambda root: None,
    "file": put("commitlog/notes.txt", b"precious"),
    "empty": put("commitlog/notes.txt", b""),
    "whole": put("commitlog/notes.txt", bytes(65536)),
    "directory": directory("commitlog/old"),
    "zeros": put(f"commitlog/{0:020d}", bytes(65536)),
    "short": put(f"commitlog/{0:020d}", bytes(100)),
}
"""what a log without a record holds"""


QUEUES = "filled", "zero", "none"


@pytest.mark.parametrize(
    ("foreign", "release", "queues"),
    sampled(
        [(*one, queues) for one in itertools.product(FOREIGN, ("5.3.3", "4.9.8")) for queues in QUEUES],
        kind=lambda one: one[:2],
        unpack=True,
    ),
)
def test_recover_is_not_advised_where_no_log_is_left(
    foreign: str, release: str, queues: str, tmp_path: Path
) -> None:
    """Each command that is advised does what is said of it: `recover` would refuse."""
    root, conf = without_log(foreign, release, queues, tmp_path)
    reported = asked(root, conf, release)
    assert reported["verdict"] in ("unsafe", "damaged")
    assert rmq("recover", root, "--store-config", conf, "--as-version", release).exit_code == 1
    first, *others = reported["advice"]
    words = shlex.split(first["command"])
    assert words[:3] == ["rmqtool", "info", str(root)]
    assert rmq(*words[1:]).exit_code in (0, 1)
    assert "nothing to recover from: if this store had messages, put the segments back" in first["why"]
    assert not any(" recover " in one["command"] for one in others)
    path = (reported["refusal"] or {}).get("path") or ""
    said = f"; {path}: move it out of the store, unless it is a segment" in first["why"]
    assert said is path.startswith("commitlog/")
    verified = rmq("verify", root, "--store-config", conf)
    assert "rmqtool recover" not in verified.stderr.rpartition("Do next")[2]


def without_log(foreign: str, release: str, queues: str, place: Path) -> tuple[Path, Path]:
    """A store whose log has no record, and its broker.conf. queues: what is left of them."""
    root = copy_base(CLEAN if release == "5.3.3" else OLD, place / "store")
    for file in (root / "commitlog").iterdir():
        file.unlink()
    for file in (root / "consumequeue").glob("*/*/*") if queues != "filled" else ():
        file.write_bytes(bytes(file.stat().st_size)) if queues == "zero" else file.unlink()
    FOREIGN[foreign](root)
    conf = place / "broker.conf"
    conf.write_text("".join(f"{key}={value}\n" for key, value in SIZES.items()))
    return root, conf


CUT = [(1, 2), (1, 3), (2, 3), (1, 4)]
"""what is left of every segment"""


def cut_log(part: tuple[int, int], messages: int, place: Path) -> HandmadeStore:
    """A store of segments of 4 KiB that all were cut short."""
    store = HandmadeStore()
    for number in range(messages):
        store.put(f"T{number % 2}", b"x" * 60 + b"%d" % number, tags="TagA")
    store.write(place / "store")
    for segment in (store.root / "commitlog").iterdir():
        os.truncate(segment, segment.stat().st_size * part[0] // part[1])
    return store


def whole(root: Path) -> set[tuple[str, bytes]]:
    """Topic and body of all whole records."""
    return {(one.topic, one.body) for one in strict.carve(root).values()}


@pytest.mark.share
@pytest.mark.parametrize("messages", [35, 60, 200])
@pytest.mark.parametrize("part", CUT)
def test_segments_that_all_were_cut_short_get_their_length_by_their_names(
    part: tuple[int, int], messages: int, tmp_path: Path
) -> None:
    """Nobody gives settings: the length that is left was taken for that of segments, and the plan refused."""
    store = cut_log(part, messages, tmp_path)
    done = rmq("recover", store.root, "--output", tmp_path / "out", "--apply", "--json")
    assert done.exit_code == 0, done.stderr
    reported = json.loads(done.stdout)["summary"]
    assert whole(store.root) <= whole(tmp_path / "out")
    kept = [
        one for one in whole(tmp_path / "out") if one[1].startswith(b"x" * 60)
    ]  # some with torn properties
    assert reported["lost"]["messages"] == messages - len(kept)
    conf = tmp_path / "broker.conf"
    conf.write_text("mappedFileSizeCommitLog=4096\nmappedFileSizeConsumeQueue=400\n")
    assert asked(tmp_path / "out", conf, "5.3.3")["verdict"] == "safe"
    guessed = [one for one in reported["notes"] if one.startswith("segments get 4,096 bytes, a guess")]
    assert len(guessed) == (messages == 35)  # a name and its length stand against each other


@pytest.mark.parametrize("part", CUT)
def test_the_length_of_a_single_segment_that_was_cut_short_is_said_to_be_a_guess(
    part: tuple[int, int], tmp_path: Path
) -> None:
    store = cut_log(part, 15, tmp_path)
    assert len([*(store.root / "commitlog").iterdir()]) == 1
    done = rmq("recover", store.root, "--json")
    (note,) = [one for one in json.loads(done.stdout)["summary"]["notes"] if one.startswith("segments get")]
    assert "with another mappedFileSizeCommitLog a broker refuses to start; --store-config says it" in note


def test_salvage_brings_back_what_recover_has_no_room_for(tmp_path: Path) -> None:
    """With settings of another broker a segment seems to begin with bytes in which no record has room."""
    store = cut_log((1, 2), 35, tmp_path)
    conf = tmp_path / "broker.conf"
    conf.write_text("mappedFileSizeCommitLog=2048\n")
    done = rmq("recover", store.root, "--store-config", conf)
    assert done.exit_code == 1
    assert "rmqtool salvage takes the intact records into a new store" in done.stderr
    rmq("salvage", store.root, "--output", tmp_path / "out", "--store-config", conf)
    assert whole(tmp_path / "out") >= whole(store.root)
    assert asked(tmp_path / "out", conf, "5.3.3")["starts"] is True
