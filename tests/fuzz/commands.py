"""Seed → a command on a mutated store, and the laws that hold for every one of them.

Exit codes of the contract, never 4; no traceback; errors on one line; JSON that parses, text without control
characters; a store that is as it was, also after an undo. Time and memory are bounded by who runs this.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import stat
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from rmqtool.cli.commands import COMMANDS, load_command
from tests.fuzz.buffers import bent
from tests.fuzz.stores import configuration, remove, store
from tests.helpers import Result, rmq

if TYPE_CHECKING:
    from collections.abc import Sequence

LEFT_OUT = ("undo", "store bench")
"""asked behind what it undoes; measures for seconds, in a directory of its own"""
VERBS = [name for name in COMMANDS if not name.startswith("pipeline") and name not in LEFT_OUT]
JOBS = [name for name in COMMANDS if name.startswith("pipeline ")]
CHANGING = ("recover", "rebuild", "checkpoint set")
ENGINE = ("store init", "store put", "store load", "store topic", "store expire", "store group",
          "store commit", "store rollback")  # fmt: skip
"""open a store for writing"""
NEVER = {"--follow", "--help", "--max-read-rate", "--color", "--master", "--conf", "--once", "--checkpoint",
         "--expired"}  # fmt: skip
"""would not end, or takes its time by intention, or colours; of jobs where Spark runs, which is here"""
SET_HERE = {"--output", "--to", "--backup", "--in-place", "--apply", "--plan", "--save-plan"}
CODES = {0, 1, 2, 3, 5, 6}
HASHED = 1 << 22
"""of a longer file the first bytes are compared, and its size and times"""
UNSEEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

NUMBERS = (
    "0", "1", "-1", "7", "2147483648", "9223372036854775807", "9223372036854775808", "0x1f", "1e3", "", "x",
    "٣",
)  # fmt: skip
TIMES = (
    "now", "-2h", "0", "1700000000", "1700000000000", "-9223372036854775808", "9223372036854775807",
    "2024-02-30", "2024-01-01T00:00:00+99:00", "0001-01-01", "9999-12-31T23:59:59Z",
    "2024-01-01#00:00:00:000", "",
)  # fmt: skip
TEXTS = (
    "T", "*", "[", "a/b", "", " ", "\x1b[2J", "ü", "A" * 3000, "*" * 60, "KEYS=a", "=", "-k1", "%RETRY%g",
    "a b", os.fsdecode(b"\xff"), "7F000001000078BF00000000000000C8", "0" * 40, "TopicTest", "../x", "'",
    "\u202e",
)  # fmt: skip
BY_METAVAR: dict[str, tuple[str, ...]] = {
    "N": NUMBERS, "QUEUE": (*NUMBERS, "*"), "OFFSET": (*NUMBERS, "min", "max", "0:0",
    "00000000000000000000:99"), "OFFSET|ID": (*NUMBERS, *TEXTS, "0:0"), "TIME": TIMES, "A:B": ("0:1", ":",
    "5:1", "x:y", "0:9223372036854775808"), "SIZE": ("1", "0", "64KiB", "1048576", "-1", "8EiB", "x"),
    "SECONDS": ("0", "1", "0.001", "-1", "nan", "1e400"), "X.Y.Z": ("4.9.8", "5.3.3", "4.7.0", "9.9.9", "0",
    "5", "x", "99999999999999999999.1.1", "-1.0.0"), "ZONE": ("UTC", "+08:00", "Asia/Shanghai", "+99:99",
    "../../etc/passwd", "x", ""), "WHAT": ("body", "keys", "hosts", "properties", "body,keys", "x", ""),
    "KINDS": ("cq", "index", "cq,index", "", "x"), "KIND": ("commitlog", "consumequeue", "index",
    "checkpoint", "config", "x", ""), "KEYS": ("topic", "topic,day", "x"), "EXPR": ("a || b", "*",
    "a > 1 and b is null", "(" * 3000, "not " * 3000 + "a", "a between 1 and 'x'", "1 = 1", ""),
    "SCENARIO": ("delete-consumequeue", "delete-index", "remove-abort", "remove-checkpoint", "x", ""),
    "NAMES": ("topic", "queue,tag", "hour", "host", "x", ""), "SQL": ("select count(*) from messages",
    "select * from topics", "select * from consumer_offsets", "select", "",
    "select * from index_items limit 5", "select * from consumequeue", "copy messages to 'x'",
    "install httpfs", "select * from read_text('/etc/passwd')", "attach ':memory:' as m", "select 1/0",
    "select * from messages", "pragma database_list", "select repeat('x', 100000)",
    "select 'a'::blob, 1e308*10, null"), "LINE…": ("CommitLog crc check error", "x" * 9000, "", "\x1b[2J",
    "[REJECTREQUEST]system busy"), "WHERE": ("earliest", "latest", *NUMBERS, *TIMES), "NAME=VALUE": ("KEYS=k",
    "TAGS=", "=x", "x", "a=b=c", "\x1b=\u202e"), "GLOB": (*TEXTS, "T*", "[!a]*", "%RETRY%*"),
}  # fmt: skip


class Case:
    """The store and the command of one seed; `broken` has the laws that did not hold."""

    def __init__(self, seed: int, place: Path, goldens: Path, verbs: Sequence[str] = VERBS) -> None:
        self.random = random = Random(seed)
        self.place = place
        self.root, self.done = store(random, place, goldens)
        self.verb = random.choice(verbs)
        self.written = False
        self.broken: list[str] = []

    def run(self) -> None:
        """The command, and what belongs to it."""
        before = tree(self.root)
        if self.verb in ENGINE:
            self._engine()
        elif self.verb in CHANGING and self.random.random() < 0.7:
            self._change()
        else:
            words = self._words()
            self.written = self.verb == "store get" and "--group" in words
            self.ask(*self.verb.split(), *words, form=self._form())
        if not self.written and (after := tree(self.root)) != before:
            changed = [path for path in before.keys() | after.keys() if before.get(path) != after.get(path)]
            self.broken.append(f"the store changed: {sorted(changed)[:3]}")

    def _engine(self) -> None:
        """A store with links out of it is written, read, and written again: nothing outside changes."""
        self.written = True
        outside = self.place / "outside"
        with suppress(shutil.Error):  # sockets and the like
            shutil.copytree(self.root, outside, symlinks=True, copy_function=_copy)
        for path in self.random.sample(inner := sorted(self.root.rglob("*")), min(len(inner), 2)):
            root = path.name == "commitlog" and path.parent == self.root  # may be a link
            if self.random.random() < 0.5 and os.path.lexists(path) and not path.is_symlink() and not root:
                remove(path)
                path.symlink_to(outside / path.relative_to(self.root))
                self.done.append(f"link {path.relative_to(self.root)}")
        before = tree(outside)
        self.ask(*self.verb.split(), *self._words(), form=self._form())
        self.ask("store", "put", self.root, "T", "--body", "x", form=self._form())
        self.ask("store", "get", self.root, "T", "*", "min", form=self._form())
        self.ask("verify", self.root, form=self._form())
        if tree(outside) != before:
            self.broken.append("it wrote outside of the store")

    def ask(self, *words: object, form: str = "table", error: str | None = None) -> Result:
        """One command; every law that needs only what it prints. error: what 4 may stand for."""
        words = (*words, "--format", form) if form != "table" else words
        shown = " ".join(repr(str(one))[:60] for one in words).replace(str(self.place), "")
        self.done.append(shown)
        print("   ", shown, flush=True)
        result = rmq(*words)
        found = troubles(result, form, debug="--debug" in words)
        if error is not None and error in result.stderr:
            found = [one for one in found if not one.startswith("no code")]
        self.broken += [f"{shown}: exit {result.exit_code}: {one}" for one in found]
        return result

    def _form(self) -> str:
        if self.verb in {"pipeline export", "pipeline stream"}:  # the form is that of the files
            return "table"
        return self.random.choice(("table", "table", "ndjson", "ndjson", "json", "csv"))

    def _words(self) -> list[object]:
        """Positionals that the command has, and some of its options."""
        random, params = self.random, load_command(self.verb).params
        words = [self._positional(one) for one in params if getattr(one, "is_flag", None) is None]
        if self.verb in JOBS:  # several stores, patterns of them among these
            more = (
                self.root,
                self.place / "*",
                self.place / "nowhere*",
                "",
                "s3://",
                "*",
                self.place / "nowhere",
            )
            words[:1] = [words[0], *random.choices(more, k=random.choice((0, 0, 1, 2)))]
        options = [one for one in params if getattr(one, "is_flag", None) is not None]
        free = [one for one in options if not NEVER & set(one.opts) and not SET_HERE & set(one.opts)]
        for one in random.sample(free, min(len(free), random.choice((0, 0, 1, 1, 2, 4)))):
            if not {"--format", "--json"} & set(one.opts):
                words += [one.opts[0]] if one.is_flag else [one.opts[0], self._value(one)]
        if self.verb == "export":
            target = random.choice(
                ("x.ndjson", "x.csv", "x.parquet", "x.raw", "x.replay", "dir", "store/in", "\x1b")
            )
            words += ["--to", self.place / target]
        if self.verb in {"salvage", "pipeline rebuild"}:
            words += ["--output", self.place / "new"]
        if self.verb in {"pipeline export", "pipeline stream"}:
            words += ["--to", self.place / "new"]
        if self.verb == "pipeline stream":
            words += ["--once", "--expired", "skip"]
        if self.verb == "store put":
            words[1:2] = [random.choice((*TEXTS, "T")), "--body", random.choice(TEXTS)]
        if self.verb == "pipeline query-key":
            words += ["--key", random.choice(TEXTS)]
        return words

    def _positional(self, one: Any) -> object:
        if (one.metavar or "").strip("[]….") in {"STORE", "PATH"} or one.name == "path":
            if self.random.random() < 0.2 or (self.verb == "dump" and self.random.random() < 0.6):
                return self.random.choice([self.root, *sorted(self.root.rglob("*"))])
            return self.root
        return self._value(one)

    def _value(self, one: Any) -> object:
        choices = getattr(getattr(one, "type_descriptor", None), "choices", None)
        if choices:
            return str(getattr(found := self.random.choice(list(choices)), "value", found))
        metavar = one.metavar or ""
        if metavar == "FILE" and "--store-config" in one.opts:
            return configuration(self.random, self.place)
        if metavar in {"FILE", "DIR", "STORE"}:
            return self.random.choice([self.root, *sorted(self.root.rglob("*")), self.place / "nowhere"])
        return self.random.choice(BY_METAVAR.get(metavar, TEXTS))

    def _change(self) -> None:
        """A plan that is carried out: onto a copy, from a file that was bent, or in place and back."""
        verb, random = self.verb.split(), self.random
        words = self._words()
        form = self._form()
        way = random.choice(("copy", "copy", "plan", "in-place"))
        if way == "copy":
            self.ask(*verb, *words, "--output", self.place / "out", "--apply", form=form)
        elif way == "plan":
            plan = self.place / "plan.json"
            self.ask(*verb, *words, "--save-plan", plan, form=form)
            if plan.exists():
                plan.write_bytes(bent(random, plan.read_bytes(), random.choice((0, 1, 2))))
                words = ["--plan", plan, "--output", self.place / "out", "--apply"]
                self.ask(*verb, self.root, *words, form=form)
        else:
            self._in_place([*verb, *words], form)

    def _in_place(self, words: list[object], form: str) -> None:
        before = tree(self.root, times=False)
        backup = self.place / "backup"
        self.ask(*words, "--in-place", "--backup", backup, "--apply", form=form)
        self.written = True
        journal = backup / "journal.json"
        if not journal.exists():
            if tree(self.root, times=False) != before:
                self.broken.append("the store changed, and there is no journal")
            return
        if self.random.random() < 0.3:
            reported = journal.read_bytes()
            journal.write_bytes(bent(self.random, reported, self.random.choice((1, 2))))
            outside = self.place / "outside"
            outside.write_text("mine")
            self.ask("undo", backup, "--apply", form=form, error="is not what was saved there")
            if outside.read_text() != "mine" or not self.root.exists():
                self.broken.append("undo wrote outside of the store")
            journal.write_bytes(reported)
        undone = self.ask("undo", backup, "--apply", "--partial", form=form)
        after = tree(self.root, times=False)
        if undone.exit_code == 0 and after != before:
            changed = [path for path in before.keys() | after.keys() if before.get(path) != after.get(path)]
            self.broken.append(f"undo left: {sorted(changed)[:3]}")


def _copy(source: str, target: str) -> None:
    """The beginning of a file, and its length: it may be a hole of a TiB."""
    facts = os.lstat(source)
    if stat.S_ISREG(facts.st_mode):
        with open(source, "rb") as file:
            Path(target).write_bytes(file.read(HASHED))
        os.truncate(target, facts.st_size)


def troubles(result: Result, form: str, *, debug: bool = False) -> list[str]:
    """The laws that what a command printed breaks. debug: it may show a traceback in front of its error."""
    found = []
    lines = result.stderr.splitlines()
    if result.exit_code not in CODES:
        found.append(f"no code for this: {result.stderr[-300:]}")
    if "Traceback" in result.stderr and not debug:
        found.append(f"a traceback: {result.stderr[-600:]}")
    reported = sum(one.startswith("rmqtool: ") for one in lines)
    if result.exit_code in {2, 4} and reported != 1 and not (debug and reported):
        found.append(f"not one line for the error: {result.stderr[-300:]}")
    if UNSEEN.search(result.stderr):
        found.append(f"control characters on stderr: {result.stderr[-200:]!r}")
    if form in {"table", "json", "ndjson"} and (seen := UNSEEN.search(result.stdout)):
        found.append(f"control characters: {result.stdout[max(seen.start() - 60, 0) : seen.end() + 20]!r}")
    if form in {"json", "ndjson"} and result.stdout:
        found += _unparsed(result.stdout, form)
    return found


def _unparsed(text: str, form: str) -> list[str]:
    try:
        rows = [strictly(one) for one in (text.split("\n")[:-1] if form == "ndjson" else [text])]
    except ValueError as error:
        return [f"{form} that does not parse: {error}: {text[-200:]!r}"]
    if form == "ndjson" and rows[-1].get("type") not in {"summary", None}:
        return [f"no summary at the end: {rows[-1]}"[:300]]
    return []


def strictly(text: str) -> Any:
    """JSON without the constants and lone surrogates that Python takes and others do not."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    text.encode()
    found = json.loads(text, parse_constant=refuse)
    json.dumps(found, ensure_ascii=False).encode()
    return found


def tree(root: Path, *, times: bool = True) -> dict[str, tuple[object, ...]]:
    """Every path at and below the root, with kind, mode, size and content; links are not followed."""
    return {str(path.relative_to(root)): _facts(path, times) for path in (root, *root.rglob("*"))}


def _facts(path: Path, times: bool) -> tuple[object, ...]:
    facts = path.lstat()
    content = ""
    if stat.S_ISLNK(facts.st_mode):
        content = os.readlink(path)
    elif stat.S_ISREG(facts.st_mode):
        with path.open("rb") as file:
            content = hashlib.sha256(file.read(HASHED)).hexdigest()
    size = facts.st_size if stat.S_ISREG(facts.st_mode) else 0
    return (
        facts.st_mode,
        size,
        content,
        *((facts.st_mtime_ns, facts.st_ctime_ns, facts.st_ino) if times else ()),
    )
