"""What does not belong among the files that a store loads by their names: directory by kind of entry."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from fixtures import copy_base, open_golden
from tests.helpers import rmq
from tests.repair.smallstore import tree
from tests.repair.test_ways_out import CLEAN, OLD, SIZES
from tests.tiers import sampled

if TYPE_CHECKING:
    from pathlib import Path

BASES = {
    ("commitlog", "5.3.3"): CLEAN,
    ("commitlog", "4.9.8"): OLD,
    ("consumequeue", "5.3.3"): CLEAN,
    ("consumequeue", "4.9.8"): OLD,
    ("index", "5.3.3"): CLEAN,
    ("index", "4.9.8"): OLD,
    ("consumequeue_ext", "5.3.3"): "v533-cqext",
    ("consumequeue_ext", "4.9.8"): "v498-cqext",
    ("batchconsumequeue", "5.3.3"): "v533-batchcq",
    ("timerlog", "5.3.3"): "b533-timer",
}
"""directory and release → a store of it in which that directory has files"""
KINDS = (
    *("file", "empty file", "file of the right size", "directory", "empty directory"),
    *("number of a wrong size", "directory of the next name"),
)
CASES = [(directory, release, kind) for directory, release in BASES for kind in KINDS]


@dataclass(frozen=True)
class Entered:
    """A store with such an entry: its place, the broker.conf beside it, the same as data, what was put."""

    root: Path
    conf: Path
    settings: dict[str, Any]
    entry: Path

    def asked(self, root: Path, release: str) -> dict[str, Any]:
        done = rmq("doctor", root, "--store-config", self.conf, "--as-version", release, "--json")
        reported: dict[str, Any] = json.loads(done.stdout)
        return reported

    def recovered(self, release: str, place: Path) -> Path:
        options = ("--store-config", self.conf, "--as-version", release, "--output", place, "--apply")
        done = rmq("recover", self.root, *options)
        assert done.exit_code == 0, done.stderr
        return place


def entered(directory: str, release: str, kind: str, place: Path) -> Entered:
    root, settings = _base(BASES[directory, release], place)
    depth = "*/*/*" if directory.endswith(("queue", "_ext")) else "*"
    last = max(path for path in (root / directory).glob(depth) if path.is_file())
    last = max(path for path in last.parent.iterdir() if path.is_file())
    size = last.stat().st_size
    following = "99991231235959999" if directory == "index" else f"{int(last.name) + size:020}"
    entry = last.parent / "notes.txt"
    if kind == "file":
        entry.write_bytes(b"precious")
    elif kind == "empty file":
        entry.touch()
    elif kind == "file of the right size":
        entry.write_bytes(bytes(size))
    elif kind == "number of a wrong size":
        entry = last.parent / f"{int(following):020}"
        entry.write_bytes(b"precious")
    else:
        entry = last.parent / (following if "next" in kind else "old")
        entry.mkdir()
        if kind == "directory":
            (entry / "note").write_bytes(b"-")
    conf = place / "broker.conf"
    conf.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))
    return Entered(root, conf, settings, entry)


def _base(name: str, place: Path) -> tuple[Path, dict[str, Any]]:
    if name in (CLEAN, OLD):
        return copy_base(name, place / "store"), dict(SIZES)
    golden = open_golden(name, place / "golden")
    root = shutil.copytree(golden.path, place / "store")
    lines = golden.config_path.read_text().splitlines()
    if name == "v533-batchcq":  # as a broker knows it
        batch = [path.name for path in (root / "batchconsumequeue").iterdir()]
        table = {one: {"topicName": one, "attributes": {"queue.type": "BatchCQ"}} for one in batch}
        (root / "config").mkdir(exist_ok=True)
        (root / "config" / "topics.json").write_text(json.dumps({"topicConfigTable": table}))
    return root, dict(line.split("=", 1) for line in lines if "=" in line)


@pytest.mark.share
@pytest.mark.parametrize(
    ("directory", "release", "kind"), sampled(CASES, kind=lambda one: one[0], each=2, unpack=True)
)
def test_what_keeps_a_broker_away_goes_and_comes_back(
    directory: str, release: str, kind: str, tmp_path: Path
) -> None:
    """Real stores on the same: `tests/interop/test_foreign_entries_interop.py`."""
    made = entered(directory, release, kind, tmp_path)
    before = tree(made.root)
    refused = not made.asked(made.root, release)["safe_to_start"]
    out = made.recovered(release, tmp_path / "out")
    assert made.asked(out, release)["verdict"] == "safe"
    if refused and kind != "number of a wrong size":  # which a broker may have left in a crash
        assert not (out / made.entry.relative_to(made.root)).exists()
    options = ("--store-config", made.conf, "--as-version", release, "--in-place", "--backup", tmp_path / "b")
    done = rmq("recover", made.root, *options, "--apply")
    assert done.exit_code == 0, done.stderr
    if (tmp_path / "b").exists():
        assert rmq("undo", tmp_path / "b", "--apply").exit_code == 0
    assert tree(made.root) == before


@pytest.mark.parametrize("kind", ["file", "directory of the next name"])
def test_a_store_without_timers_does_not_mind(kind: str, tmp_path: Path) -> None:
    made = entered("timerlog", "5.3.3", kind, tmp_path)
    assert made.asked(made.root, "4.9.8")["verdict"] == "safe"
    made.conf.write_text(made.conf.read_text() + "timerWheelEnable=false\n")
    assert made.asked(made.root, "5.3.3")["verdict"] == "safe"
    assert made.entry.relative_to(made.root).name in {
        path.name for path in (made.recovered("5.3.3", tmp_path / "out") / "timerlog").iterdir()
    }
