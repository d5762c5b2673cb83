"""Planning `config salvage`: tables that a broker would not load, from what can still be read of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from formats.system_topics import DLQ_PREFIX, RETRY_PREFIX
from rmqtool.broker.traits import traits_of
from rmqtool.errors import UsageError
from rmqtool.recovery.config_tables import Loads, config_outcomes
from rmqtool.repair.config_union import united
from rmqtool.repair.content import Inline
from rmqtool.repair.plan import Action, Change, Edit, Planned, PlanSummary, make_planned
from rmqtool.repair.plan_words import counted
from rmqtool.repair.topic_guess import guess_notes, guessed_topics, queues_in_log, queues_on_disk, table_with
from rmqtool.store.config_text import config_text
from rmqtool.store.consumer_offsets import stored_offsets
from rmqtool.store.kinds import CONFIG_NAMES, FileKind
from rmqtool.store.names import escape_name
from rmqtool.store.required import require_root
from rmqtool.store.rocksdb import databases_of_tables

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from rmqtool.repair.config_union import United
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store

COMMAND = "config salvage"
TOPICS = "config/topics.json"
GROUPS = "config/subscriptionGroup.json"
_NAMED = 10


def plan_config(store: Store, release: str, parameters: dict[str, Any], reading: ReadOptions) -> Planned:
    """Every table whose younger content a broker would not load, as file and `.bak` have it together.

    parameters: table: names in `config/`, empty for all; topic: globs of topics that `topics.json` has not
    and that get an entry. A topic table that is wholly lost is made of the queues of store and log.
    Raises `UsageError`, and what reading raises.
    """
    require_root(store)
    _refuse_unknown(store, parameters["table"])
    edits: list[Edit] = []
    notes: list[str] = []
    tables = dict(_tables(store, release, tuple(parameters["table"])))
    for name, one in tables.items():
        if one.data is not None:
            edits.append(_put(name, one))
        else:
            notes.append(f"{escape_name(name)}: nothing of it or its .bak can be used")
            edits += _useless(store, one)
    asked = not parameters["table"] or "topics.json" in parameters["table"]
    if parameters["topic"] or (asked and _no_topics(store, tables)):
        edits, more = _with_topics(store, parameters, reading, tables.get(TOPICS), edits)
        notes += more
    elif TOPICS in tables:
        notes += _without_entry(store, tables[TOPICS])
    if GROUPS in tables and tables[GROUPS].data is None:
        notes += _groups(store)
    folder = [] if not edits or store.listing.exists("config") else [_folder()]
    directories = _directories(store, parameters["table"])
    notes += [
        f"{path} is a directory, which no broker can replace: move it out of the store"
        for path in directories
    ]
    return make_planned(
        COMMAND,
        store,
        release,
        parameters,
        [*folder, *edits],
        inputs=store.of_kind(FileKind.CONFIG, FileKind.CONFIG_BAK),
        summary=PlanSummary(notes=tuple(notes), not_salvaged=tuple(_left(tables, edits, directories))),
    )


def _refuse_unknown(store: Store, wanted: Iterable[str]) -> None:
    """A name that no file has and no broker writes is misspelt: what was meant would stay as it is."""
    files = store.of_kind(FileKind.CONFIG, FileKind.CONFIG_BAK, FileKind.TIMERMETRICS)
    there = {one.path.removesuffix(".bak").rpartition("/")[2] for one in files}
    for name in wanted:
        if name not in CONFIG_NAMES | there:
            known = ", ".join(sorted(map(escape_name, there))) or "nothing"
            raise UsageError(f"--table: there is no config/{escape_name(name)}; there is {known}")


def _tables(store: Store, release: str, wanted: tuple[str, ...]) -> Iterator[tuple[str, United]]:
    traits = traits_of(release)
    names = {
        escape_name(file.path.removesuffix(".bak")): file.path.removesuffix(".bak") for file in store.files
    }
    for outcome in config_outcomes(store, traits):
        name = names[outcome.path]
        if (outcome.loses or outcome.loads is Loads.REFUSES) and (
            not wanted or name.rpartition("/")[2] in wanted
        ):
            yield name, united(store, name, traits)


def _directories(store: Store, wanted: Sequence[str]) -> list[str]:
    """Those in the place of a table or its `.bak`, which no change makes room for."""
    return sorted(
        escape_name(path) for path, table in store.listing.unsavable() if not wanted or table in wanted
    )


def _left(tables: Mapping[str, United], edits: Iterable[Edit], directories: Iterable[str]) -> list[str]:
    """Tables that the plan leaves as no broker loads or saves them."""
    changed = {one.change.path.removesuffix(".bak") for one in edits}
    unusable = {escape_name(name) for name, one in tables.items() if one.data is None and name not in changed}
    return sorted(unusable | {path.removesuffix(".bak") for path in directories})


def _put(name: str, one: United) -> Edit:
    text = config_text(one.data or {}).encode()
    lost = sum(part.lost for part in (one.own, one.backup))
    said = [
        f"{word} {part.kept:,} of {part.kept + part.lost:,} bytes"
        for word, part in (("file", one.own), (".bak", one.backup))
        if part.data is not None
    ]
    broker = {Loads.BAK: "takes the .bak", Loads.EMPTY: "starts without it"}.get(
        one.loads, "refuses to start"
    )
    message = f"a broker {broker}; {one.entries} entries of {' and '.join(said)}"
    if one.lost:
        message += f", {one.lost} of them it would not have"
    dropped = [".".join(bad.keys) for part in (one.own, one.backup) for bad in part.dropped]
    facts: dict[str, Any] = {"entries": one.entries, "entries_lost": one.lost, "lost_bytes": lost}
    if dropped:
        facts["lost_values"] = dropped
        message += f"; left out: {', '.join(dropped[:_NAMED])}"
    return _edit(name, text, "config-salvaged", message, facts)


def _edit(path: str, text: bytes, why: str, message: str, facts: dict[str, Any]) -> Edit:
    change = Change(
        action=Action.PUT, path=path, length=len(text), size=len(text), why=why, message=message, facts=facts
    )
    return Edit(change, Inline(text))


def _folder() -> Edit:
    message = "for the tables in it"
    return Edit(Change(action=Action.MAKE_DIRECTORY, path="config", why="config", message=message))


def _useless(store: Store, one: United) -> Iterator[Edit]:
    """Files that keep a broker from starting and hold nothing."""
    if one.loads is not Loads.REFUSES:
        return
    for path in (one.name, f"{one.name}.bak"):
        if store.file(path) is not None:
            message = "holds nothing that can be used, and a broker refuses to start with it"
            yield Edit(Change(action=Action.REMOVE, path=path, why="config-unparsable", message=message))


def _no_topics(store: Store, tables: dict[str, United]) -> bool:
    """Whether queues or log have topics, and there is no table of them."""
    if TOPICS in tables:
        return tables[TOPICS].data is None
    there = any(store.file(path) is not None for path in (TOPICS, f"{TOPICS}.bak"))
    return not (there or databases_of_tables(store)) and bool(queues_on_disk(store) or len(store.segments))


def _with_topics(
    store: Store,
    parameters: dict[str, Any],
    reading: ReadOptions,
    salvaged: United | None,
    edits: list[Edit],
) -> tuple[list[Edit], list[str]]:
    """The edits with guessed topics in the topic table, and notes that name these."""
    in_log, whole = queues_in_log(store, reading)
    guessed = guessed_topics(store, in_log, tuple(parameters["topic"]))
    base = salvaged.data if salvaged is not None else store.config_pair("topics.json").data
    held = base.get("topicConfigTable") if isinstance(base, dict) else None
    table = held if isinstance(held, dict) else {}
    guessed = {topic: entry for topic, entry in guessed.items() if topic not in table}
    notes = [] if whole else ["part of the log could not be read: topics that are only there have no entry"]
    if not guessed:
        if parameters["topic"]:
            notes.append(f"no topic without an entry matches {', '.join(parameters['topic'])}")
        return edits, notes
    text = table_with(base, guessed)
    names = list(guessed)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    message = (
        f"{counted(len(names), 'topic')} without an entry, a guess from queues and "
        f"log (as many queues as have messages, perm 6): {', '.join(names[:_NAMED])}{more}"
    )
    others = [one for one in edits if one.change.path not in {TOPICS, f"{TOPICS}.bak"}]
    notes += guess_notes(guessed)
    facts = {"guessed": names, "entries": len(table) + len(names)}
    return [*others, _edit(TOPICS, text, "topics-guessed", message, facts)], notes


def _without_entry(store: Store, salvaged: United) -> list[str]:
    """Topics with queues that the salvaged part of the table does not have."""
    held = (salvaged.data or {}).get("topicConfigTable")
    missing = [topic for topic in guessed_topics(store, ()) if topic not in (held or ())]
    if not missing:
        return []
    return [
        f"{len(missing)} topics with consume queues are not in what is left: --topic '*' adds a guess of them"
    ]


def _groups(store: Store) -> list[str]:
    """Names of the groups that left a trace: their settings are gone."""
    topics = {queue.topic for kind in ("consumequeue", "batchconsumequeue") for queue in store.queues(kind)}
    named = {
        topic.removeprefix(prefix)
        for topic in topics
        for prefix in (RETRY_PREFIX, DLQ_PREFIX)
        if topic is not None and topic.startswith(prefix)
    }
    found = sorted(named | {one.group for one in stored_offsets(store)})
    shown = ", ".join(found[:_NAMED]) + (f" and {len(found) - _NAMED} more" if len(found) > _NAMED else "")
    return (
        [f"groups with retry topics, dead letters or offsets, which get default settings: {shown}"]
        if found
        else []
    )
