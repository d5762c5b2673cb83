"""The laws: what must hold for every store, whatever happened to it."""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

from fixtures import strict
from fixtures.compound import make
from tests.laws.asking import Asked, document, refused_by_excluded
from tests.laws.java import judge_with_java
from tests.laws.real import record, recorded, written
from tests.laws.truth import (
    Truth,
    healthy_entries,
    in_database,
    in_rocksdb,
    kept,
    lost_tables,
    tree,
    truth,
    undecided,
    under_other_names,
    unproven,
)

if TYPE_CHECKING:
    from fixtures.compound import Compound
    from tests.helpers import Result
    from tests.laws.java import Judge

RELEASES = ("4.9.8", "5.3.3")
_REAL_EACH = 5
"""of so many seeds judged by real stores one begins with a store that a real one writes"""


def judged(
    seed: int, judges: dict[str, Judge] | None = None, store: Path | None = None
) -> tuple[str, list[str]]:
    """What was done to the store of a seed, and the laws that it breaks.

    store: an archive of the store that was written for that seed. One that is written now and breaks a law is
    kept as such an archive.
    """
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as place:
        real = bool(judges) and store is None and seed % _REAL_EACH == 0
        write = recorded(store) if store is not None else written if real else None
        made = make(seed, Path(place) / "case", write)
        work = Path(place) / "out"
        work.mkdir()
        broken = judge(made, work, judges)
        if broken and real:
            handle, name = tempfile.mkstemp(".tar.gz", f"rmqtool-law-{seed}-")
            os.close(handle)
            record(made, Path(name))
            broken.append(f"its store: {name}")
        return f"{made.ground} | {' | '.join(made.done)}", broken


def judge(made: Compound, work: Path, judges: dict[str, Judge] | None = None) -> list[str]:
    """The laws that a store breaks, each with its name in front; `judges` are the real stores by release."""
    asked = Asked(made, work)
    true = truth(made)
    before = _trees(made)
    codes = _verify(asked, true)
    _doctor(asked, true)
    _reading(asked, true)
    _queries(asked, true)
    _others(asked, true)
    _keep(asked, codes)
    if judges:
        judge_with_java(asked, judges)
    _unchanged(asked, before, "reads-only")
    _undone(asked, before)
    return asked.broken


def _trees(made: Compound) -> dict[str, tuple[object, ...]]:
    beside = made.root.with_name(made.root.name + ".disk2")
    return tree(made.root) | (tree(beside) if beside.exists() else {})


def _unchanged(asked: Asked, before: dict[str, tuple[object, ...]], law: str) -> None:
    after = _trees(asked.made)
    changed = [path for path in sorted(before.keys() | after.keys()) if before.get(path) != after.get(path)]
    if changed:
        first = changed[0]
        asked.breaks(law, f"{len(changed)} paths, {first}: {before.get(first)} -> {after.get(first)}")


def findings(result: Result) -> set[tuple[str, str]]:
    """Code and path of every error of verify."""
    rows = [json.loads(line) for line in result.stdout.splitlines()]
    errors = [row for row in rows if row.get("severity") == "error"]
    return {(row["code"], row.get("path") or "") for row in errors}


def _verify(asked: Asked, true: Truth) -> set[tuple[str, str]]:
    result = asked.ask("verify", asked.made.root, "--format", "ndjson")
    if result.exit_code == 0:
        _nothing_hidden(asked, true, "verify")
        if true.alike:
            asked.breaks("no-false-green", f"verify exit 0, {len(true.alike)} changed")
        if true.undispatched:
            asked.breaks("no-false-green", f"verify exit 0, {len(true.undispatched)} without unit")
    return findings(result) if result.exit_code in (0, 1, 3) else set()


def _nothing_hidden(asked: Asked, true: Truth, command: str, *, bodies: bool = True) -> None:
    """Exit 0 with lost records; `bodies`: the command looks into them, or says that it does not."""
    unseen = frozenset() if bodies else true.damaged
    lost = [one for one in true.proven_lost if one.offset not in unseen]
    if lost:
        text = f"{command} exit 0, {len(lost)} lost, first {lost[0].offset} {lost[0].slot}"
        asked.breaks("no-false-green", text)


def _doctor(asked: Asked, true: Truth) -> None:
    made = asked.made
    before = kept(made.root, made, dispatched=False)
    for release in RELEASES:
        result = asked.ask("doctor", made.root, "--json", "--as-version", release)
        reported = document(result)
        if result.exit_code == 0:
            _nothing_hidden(asked, true, f"doctor {release}")
            if tables := lost_tables(made):
                asked.breaks("no-false-green", f"doctor {release} exit 0, tables {tables}")
        elif result.exit_code == 2:
            asked.breaks("doctor-answers", f"{release}: {result.stderr.strip()[-200:]}")
        target = asked.work / f"broker-{release}"
        done = asked.ask(
            "recover", made.root, "--policy", "broker", "--as-version", release,
            "--output", target, "--apply",
        )  # fmt: skip
        if not reported.get("safe_to_start"):
            continue
        if not target.exists():
            if done.exit_code != 2:
                text = f"{release}: broker policy exit {done.exit_code} {done.stderr[-200:]}"
                asked.breaks("safe-serves", text)
            continue
        verdict, wrong = reported["verdict"], kept(target, made, dispatched=False)
        if verdict == "damaged":  # what is not served now was not served before, and is counted
            counted = reported["already_damaged"]["messages"]
            if wrong and counted is not None and counted < len(wrong):
                text = f"{release}: {counted} counted, {len(wrong)} whole ones are not served: {wrong[0]}"
                asked.breaks("already-damaged", text)
            wrong = [one for one in wrong if one not in before]
        if wrong:
            text = f"{release} {verdict}: {len(wrong)} not served, {wrong[0]}"
            asked.breaks("safe-serves", text)


def _reading(asked: Asked, true: Truth) -> None:
    made = asked.made
    stats = asked.ask("stats", made.root, "--json")
    if stats.exit_code == 0:
        _nothing_hidden(asked, true, "stats", bodies=False)
        if "bodies" not in document(stats)["summary"].get("not_looked_at", []):
            asked.breaks("said", "stats does not say that it reads no bodies")
    target = asked.work / "export.ndjson"
    done = asked.ask("export", made.root, "--to", target)
    if done.exit_code == 0:
        _nothing_hidden(asked, true, "export")
    elif done.exit_code == 2 and any((made.root / "commitlog").glob("0*")):
        asked.breaks("answers", f"export: {done.stderr[-200:]}")
    if target.exists():
        rows = [json.loads(line) for line in target.read_text().splitlines()]
        offsets = {row["physical_offset"] for row in rows if row.get("type", "message") == "message"}
        if left := made.intact.keys() - offsets:
            first = made.intact[min(left)]
            text = f"exit {done.exit_code}, {len(left)} left out, {min(left)} {first.slot}"
            asked.breaks("export-all", text)
        reported = document(stats).get("summary", {}).get("messages")
        if stats.exit_code == 0 and reported is not None and reported < len(made.intact):
            asked.breaks("stats-all", f"{reported} of {len(made.intact)}")
    sql = asked.ask("sql", made.root, "select count(*) as n from messages", "--json")
    if sql.exit_code == 0:
        _nothing_hidden(asked, true, "sql")
        count = document(sql)["rows"][0]["n"]
        if count < len(made.intact):
            asked.breaks("sql-all", f"{count} of {len(made.intact)}")


def _queries(asked: Asked, true: Truth) -> None:
    made, random = asked.made, Random(asked.made.seed)
    here = [one for one in made.intact.values() if one.placed]
    for one in random.sample(here, min(2, len(here))):
        _of_whole(asked, one)
    light = [
        key
        for key, entry in healthy_entries(made).items()
        if key[0] == "consumequeue" and key[1].startswith("%LMQ%") and entry.offset in made.intact
    ]
    for key in random.sample(light, min(2, len(light))):
        _of_light(asked, key, healthy_entries(made)[key].offset)
    lost = [one for one in true.proven_lost if one.placed]
    for one in random.sample(lost, min(2, len(lost))):
        _of_lost(asked, true, one)


def _others(asked: Asked, true: Truth) -> None:
    """Commands of which little is demanded: that they end, and say when something is left out.

    `dump` looks at nothing but the log, which cannot know what lay behind its end.
    """
    root, work = asked.made.root, asked.work
    result = asked.ask("dump", root, "--format", "ndjson", "--body", "none")
    last = max(asked.made.intact, default=-1)
    lost = [one for one in true.proven_lost if one.offset < last]
    if result.exit_code == 0 and lost:
        asked.breaks("no-false-green", f"dump exit 0, {len(lost)} lost, first {lost[0].offset}")
    rest: list[tuple[str, tuple[object, ...]]] = [
        ("info", ("--json",)),
        ("tail", ("-n", "5", "--json")),
        ("checkpoint show", ("--json",)),
        ("rebuild", ("--what", "cq,index", "--output", work / "rebuilt", "--apply")),
        ("salvage", ("--output", work / "salvaged")),
    ]
    for command, options in Random(asked.made.seed).sample(rest, 2):
        asked.ask(command, root, *options)
    if (work / "salvaged" / "commitlog").exists():
        _salvaged(asked, work / "salvaged")


def _salvaged(asked: Asked, target: Path) -> None:
    """Every whole record is in the new store, wherever it found room."""
    found = {(one.topic, one.body) for one in strict.carve(target).values()}
    lost = [one for one in asked.made.intact.values() if (one.topic, one.body) not in found]
    if lost:
        asked.breaks("salvage-all", f"{len(lost)} left out, {lost[0].offset} {lost[0].slot}")


def _rows(result: Result) -> set[int]:
    return {row["physical_offset"] for row in document(result).get("rows", []) if "physical_offset" in row}


def _of_whole(asked: Asked, one: Any) -> None:
    root, shown = asked.made.root, f"{one.offset} {one.slot}"
    key = one.properties.get("UNIQ_KEY")
    if key and not one.sys_flag & 0x80:
        result = asked.ask("query-key", root, one.topic, key, "--json")
        if result.exit_code != 3 and one.offset not in _rows(result):
            asked.breaks("query-key", f"{shown}: exit {result.exit_code} {sorted(_rows(result))[:3]}")
    result = asked.ask("query-offset", root, one.topic, one.queue_id, one.queue_offset, "--json")
    if result.exit_code == 0 and one.offset not in _rows(result):
        asked.breaks("query-offset", f"{shown}: exit 0 {sorted(_rows(result))[:3]}")
    result = asked.ask("query-time", root, one.topic, one.queue_id, one.store_timestamp, "--json")
    found = document(result).get("summary", {}).get("queue_offset")
    if result.exit_code == 0 and (found is None or found > one.queue_offset):
        asked.breaks("query-time", f"{shown}: exit {result.exit_code}, {found}")
    result = asked.ask("query-id", root, _message_id(one), "--json")
    if one.offset not in _rows(result):
        asked.breaks("query-id", f"{shown}: exit {result.exit_code}")


def _of_light(asked: Asked, key: tuple[str, str, int, int], offset: int) -> None:
    """A whole message in one of the further queues that it feeds."""
    result = asked.ask("query-offset", asked.made.root, *key[1:], "--json")
    if result.exit_code == 0 and offset not in _rows(result):
        asked.breaks("query-offset", f"{offset} {key}: exit 0 {sorted(_rows(result))[:3]}")


def _message_id(one: Any) -> str:
    wide = 20 if one.sys_flag & 0x20 else 8
    at = 64 if not one.sys_flag & 0x10 else 76
    host = one.raw[at : at + wide]
    return (host + one.offset.to_bytes(8, "big")).hex().upper()


def _of_lost(asked: Asked, true: Truth, one: Any) -> None:
    root, shown = asked.made.root, f"{one.offset} {one.slot}"
    key = one.properties.get("UNIQ_KEY")
    if key:
        result = asked.ask("query-key", root, one.topic, key, "--json")
        if result.exit_code in (0, 1) and one.offset not in _rows(result):
            asked.breaks("lost-key", f"{shown}: exit {result.exit_code}")
    result = asked.ask("query-offset", root, one.topic, one.queue_id, one.queue_offset, "--json")
    if true.units.get(one.slot) == (one.offset, one.size) and result.exit_code in (0, 1):
        asked.breaks("lost-offset", f"{shown}: exit {result.exit_code} {document(result).get('summary')}")
    result = asked.ask("query-id", root, _message_id(one), "--json")
    if result.exit_code in (0, 1):
        asked.breaks("lost-id", f"{shown}: exit {result.exit_code}")


def _is_renamed(change: dict[str, Any]) -> bool:
    """Whether a segment takes the bytes of a file with another name, and what is wrong in these."""
    return (change["action"], change["why"]) == ("put", "misnamed-segment")


_OF_VERIFY = ("(CQ-SHIFT)", "(CP-TIMERS-UNKNOWN)")
"""findings of the result that the store did not have: no news to a second plan, whose store has them"""


def _keep(asked: Asked, codes: set[tuple[str, str]]) -> None:
    made, target = asked.made, asked.work / "kept"
    done = asked.ask("recover", made.root, "--output", target, "--apply", "--json")
    if not target.exists():
        if made.intact and not _blocked(made, done):
            asked.breaks("keep-refused", f"exit {done.exit_code} {done.stderr.strip()[-250:]}")
        return
    summary = document(done).get("summary", {})
    said = summary.get("unproven_offsets", ())
    if said and done.exit_code == 0:
        asked.breaks("keep-said", f"exit 0, and offsets are not proven: {said[0]}")
    open_questions = summary.get("undecided", ())
    if open_questions and done.exit_code == 0:
        asked.breaks("keep-said", f"exit 0, and two records are not decided: {open_questions[0]}")
    besides, doubted = unproven(made, said) | in_database(made), undecided(open_questions)
    if wrong := kept(target, made, dispatched=not in_rocksdb(made), besides=besides, doubted=doubted):
        lost = summary.get("lost", {}).get("messages")
        text = f"exit {done.exit_code} lost {lost}: {len(wrong)} of {len(made.intact)}, {wrong[0]}"
        asked.breaks("keep-intact", text)
    there = strict.carve(target)
    named = [
        at
        for at, one in under_other_names(made).items()
        if at not in there or (there[at].slot, there[at].body) != (one.slot, one.body)
    ]
    if named and done.exit_code == 0:
        asked.breaks("keep-named", f"exit 0: {len(named)} under another name, {named[0]} is gone")
    result = asked.ask("verify", target, "--format", "ndjson")
    if result.exit_code in (0, 1, 3) and (new := findings(result) - codes):
        # 5.x builds light queues like that, also from records that had no unit yet; `kept` holds their places
        new = {(code, path) for code, path in new if code != "CQ-SHIFT" or "/%LMQ%" not in path}
        renamed = {one["path"] for one in document(done).get("rows", []) if _is_renamed(one)}
        had = {code for code, path in codes if path.startswith("commitlog/")}
        new = {(code, path) for code, path in new if path not in renamed or code not in had}
        new = {(code, path) for code, path in new if not _is_left(summary, code, path)}
        if new:
            asked.breaks("keep-verify", f"{len(new)} new errors, {sorted(new)[:3]}")
    left = _remains(summary)
    if left and done.exit_code == 0:
        asked.breaks("keep-said", f"exit 0, and harm remains: {left[0]}")
    for release in RELEASES:
        _safe_as_before(asked, target, release, left)
    second = asked.ask("recover", target, "--json")
    changes = document(second).get("rows", [])
    harm = [one for one in left if not one.endswith(_OF_VERIFY)]
    same = second.exit_code == 1 and harm and _remains(document(second).get("summary", {})) == harm
    if changes or (second.exit_code != 0 and not same):
        named = ("path", "why", "message")
        first = {name: str(one.get(name))[:150] for one in changes[:1] for name in named}
        asked.breaks("keep-again", f"exit {second.exit_code}, {len(changes)} changes, {first}")


def _blocked(made: Compound, done: Result) -> bool:
    """Whether something is meant to be mounted or moved away first, and is no directory or file indeed."""
    if done.exit_code != 1:
        return False
    if found := re.search(r": (\S+) is not a directory: move it away, or mount", done.stderr):
        return not (made.root / found[1]).is_dir()
    found = re.search(
        r": (\S+): symbolic link that leads nowhere: .*, where a segment belongs: mount", done.stderr
    )
    return found is not None and not (made.root / found[1]).exists()


def _remains(summary: dict[str, Any]) -> list[str]:
    """Harm that `recover` says a start does to the store as it was and to its result."""
    return (summary.get("checked") or {}).get("remains", [])


def _is_left(summary: dict[str, Any], code: str, path: str) -> bool:
    """Whether `recover` says that its result has this error."""
    return any(one.startswith(f"{path}: ") and one.endswith(f"({code})") for one in _remains(summary))


def _safe_as_before(asked: Asked, target: Path, release: str, left: list[str]) -> None:
    reported = document(asked.ask("doctor", target, "--json", "--as-version", release))
    if reported.get("safe_to_start") and reported.get("verdict", "safe") == "safe":
        return
    if refused_by_excluded(asked, reported.get("refusal"), release):
        return
    if in_rocksdb(asked.made) and reported.get("verdict") == "uncertain":
        return  # no file of the healthy store's queues is there, and nobody reads a database
    healthy = document(asked.ask("doctor", asked.made.pristine, "--json", "--as-version", release))
    if healthy.get("verdict") == "safe":
        grave = [one["code"] for one in reported.get("consequences", []) if one["severity"] != "note"]
        errors = [one["message"] for one in reported.get("consequences", []) if one["severity"] == "error"]
        if errors and all(any(words in one for one in left) for words in errors):
            return
        text = f"{release}: {reported.get('verdict')} refusal {reported.get('refusal')} {sorted(set(grave))}"
        asked.breaks("keep-safe", text)


def _undone(asked: Asked, before: dict[str, tuple[object, ...]]) -> None:
    backup = asked.work / "backup"
    done = asked.ask("recover", asked.made.root, "--in-place", "--backup", backup, "--apply", "--json")
    if not (backup / "journal.json").exists():
        if done.exit_code == 0 and document(done).get("rows"):
            asked.breaks("undo", f"no journal: {done.stderr[-200:]}")
        _unchanged(asked, before, "undo")
        return
    back = asked.ask("undo", backup, "--apply", "--follow-links", "--json", plain=True)
    if back.exit_code:
        asked.breaks("undo", f"exit {back.exit_code} {back.stderr[-200:]}")
    _unchanged(asked, before, "undo")
