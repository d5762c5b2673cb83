"""What makes a broker refuse a store beside its log: tables, queue kinds, the timer wheel, directories."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rmqtool.broker.file_rules import types_readable
from rmqtool.broker.java import parse_long
from rmqtool.broker.load import TIMER_FILES, queue_directories
from rmqtool.broker.settings import settings_of
from rmqtool.broker.traits import TABLE
from rmqtool.recovery.config_tables import Loads, config_outcomes
from rmqtool.recovery.simulation import StartSimulation
from rmqtool.repair.config_salvage import Salvaged, salvage_table
from rmqtool.repair.content import Inline
from rmqtool.repair.keep.away import directory_away
from rmqtool.repair.keep.timers import timer_edits
from rmqtool.repair.plan import Action, Change, Edit
from rmqtool.repair.salvage.topics import topics_json
from rmqtool.store.config_json import parse_config, read_listed
from rmqtool.store.kinds import FileKind
from rmqtool.store.lock import LockState

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from rmqtool.broker.traits import Traits
    from rmqtool.repair.keep.model import Survey
    from rmqtool.store.layout import Store

_NOBODY = LockState(False, None, "this is not a start")
_TOPICS = "config/topics.json"
_KINDS = (FileKind.CONSUMEQUEUE.value, FileKind.BATCHCONSUMEQUEUE.value)
_BATCH = "BatchCQ"
_TABLES = {(one.blank_tables, one.listed_versions, one.tables_of_5): one for one in TABLE}
"""releases that differ in what they read of configuration tables"""
_LOST = {
    "topics.json": "topics that are not in it must be made again, their messages stay",
    "subscriptionGroup.json": "groups that are not in it begin with the default settings",
    "consumerOffset.json": "groups that are not in it start over, and may skip messages or get them twice",
    "lmqConsumerOffset.json": "groups that are not in it start over, and may skip messages or get them twice",
    "delayOffset.json": "levels that are not in it begin with the oldest delayed message: what was delivered "
    "already is delivered again",
    "consumerFilter.json": "filters that are not in it are made again when their consumers come back",
    "consumerOrderInfo.json": "messages of ordered pop consumers may be delivered again",
    "topicQueueMapping.json": "static topics that are not in it must be mapped again",
    "messageRequestMode.json": "groups that are not in it receive by pull until their mode is set again",
    "transactionMetrics": "half messages that are open are counted from now on, the messages stay",
}
_LOST_OF_OTHERS = "what is not in it must be set again"


def refusal_edits(store: Store, release: str, survey: Survey) -> list[Edit]:
    """What lets a broker of this release start again; nothing where no such thing is in its way.

    survey: of the log, for the queues that are built from it.
    Nor what a broker of another release forgets of a configuration table, or minds in it, where this one
    reads nothing more of it.
    """
    start = StartSimulation(store, release, settings_of(store), lock=_NOBODY)
    edits: list[Edit] = []
    others = [(traits, one) for traits in _TABLES.values() for one in config_outcomes(store, traits)]
    others.sort(key=lambda other: other[1].loads is not Loads.REFUSES)
    refused = {
        one.path
        for traits, one in others
        if one.loads is Loads.REFUSES and _reads_as_much(store, one.path, traits, start.traits)
    }
    for one in start.config:  # a `.bak` that brokers of another release refuse is no help
        if one.loads is Loads.REFUSES or (one.loses and one.path not in refused):
            edits += _table(store, one.path, one.loads, start.traits)
    done = {edit.change.path.removesuffix(".bak") for edit in edits}
    for traits, one in others:
        wrong = (one.loads is Loads.REFUSES or one.loses) and one.path not in done
        if wrong and _reads_as_much(store, one.path, traits, start.traits):
            edits += _table(store, one.path, one.loads, traits, start.traits)
            done.add(one.path)
    if start.traits.typed_queues:
        edits += list(_kinds(store, survey, edits)) or _unknown_kinds(store, survey, edits)
    return [*edits, *timer_edits(start.start), *_directories(store)]


def blocking_edits(store: Store, topics: Collection[str]) -> Iterator[Edit]:
    """Files in the place of directories go away. topics: those of the log, too."""
    for file in store.listing.blocked(topics):
        if file.regular:
            message = "a file where brokers of some release need a directory: they can make no file below it"
            yield Edit(
                Change(action=Action.REMOVE, path=file.display_path, why="directory-file", message=message)
            )


def _directories(store: Store) -> Iterator[Edit]:
    """Directories where brokers have files go away."""
    listing = store.listing
    for path in ("lock", "abort.bak", *TIMER_FILES):
        if listing.is_directory(path):
            yield from directory_away(store, path, "file-directory", "brokers open a file of this name")
    for path, _ in listing.unsavable():
        yield from directory_away(store, path, "table-directory", "brokers write a table of this name")
    for entry in listing.entries("index"):
        if entry.file is None and parse_long(entry.name) is not None:
            message = "a directory among the index files: brokers refuse it, or load none behind it"
            yield from directory_away(store, entry.path, "stray-directory", message)


def _reads_as_much(store: Store, name: str, traits: Traits, own: Traits) -> bool:
    """Whether what a broker of another release can read of a table is all that one of the own reads."""
    theirs, ours = salvage_table(store, name, traits, own), salvage_table(store, name, own)
    more = [one for one in theirs.dropped if one not in ours.dropped and len(one.keys) > 1]
    return (theirs.source, theirs.entries, more) == (ours.source, ours.entries, [])


def _table(
    store: Store, name: str, loads: Loads, traits: Traits, own: Traits | None = None
) -> Iterator[Edit]:
    """The longest front that can be used, of the file or its `.bak`, else both go.

    own: of the store's release, where it is another one that cannot use them.
    """
    lost = _LOST.get(name.rpartition("/")[2], _LOST_OF_OTHERS)
    found = salvage_table(store, name, traits, own)
    problem = f"neither {name} nor its .bak can be parsed"
    if loads is Loads.EMPTY:
        problem = f"a broker reads no entry from {name}"
    if own is not None:
        problem = f"brokers {'from 5.0 on' if traits.tables_of_5 else 'before 5.0'} cannot read {name}"
    elif loads is Loads.BAK:
        problem = f"{name} cannot be parsed"
        whole = store.file(f"{name}.bak")
        if whole is not None and (found.data is None or not found.partial):
            data = read_listed(whole)[1]
            message = (
                f"{problem}: its .bak takes its place, what changed after that was written is lost: {lost}"
            )
            yield _put(name, data, "config-from-backup", message, {"lost_bytes": 0})
            return
    if found.data is not None:
        message = f"{problem}: {_salvaged(found)}: {lost}"
        facts: dict[str, Any] = {"entries": found.entries, "lost_bytes": found.lost}
        if found.dropped:
            facts["lost_values"] = [".".join(one.keys) for one in found.dropped]
        yield _put(name, found.data, "config-salvaged", message, facts)
        return
    for path in (name, f"{name}.bak"):
        if store.file(path) is not None:
            message = f"{problem}, nothing in them can be used, a broker starts without: {lost}"
            yield Edit(Change(action=Action.REMOVE, path=path, why="config-unparsable", message=message))


def _salvaged(found: Salvaged) -> str:
    """What is kept of a table, and what is lost."""
    said = [f"the first {found.kept} bytes of {found.source} are kept, {found.entries} entries"]
    if found.lost:
        said.append(f"the last {found.lost} bytes are lost")
    if found.dropped:
        more = f" and {len(found.dropped) - 1} more" if len(found.dropped) > 1 else ""
        said.append(f"{found.dropped[0]}: it is left out{more}")
    return "; ".join(said)


def _put(path: str, data: bytes, why: str, message: str, facts: dict[str, Any]) -> Edit:
    change = Change(
        action=Action.PUT, path=path, length=len(data), size=len(data), why=why, message=message, facts=facts
    )
    return Edit(change, Inline(data))


def _unknown_kinds(store: Store, survey: Survey, edits: list[Edit]) -> list[Edit]:
    """A topic table where there is none, and batch queues that brokers take for plain ones without it.

    One that nobody can read is none. Takes its removal out of `edits`.
    """
    gone = {one.change.path: one for one in edits if one.change.action is Action.REMOVE}
    if any(store.file(path) is not None and path not in gone for path in (_TOPICS, f"{_TOPICS}.bak")):
        return []
    queues = _queues_by_topic(store)
    batch = {topic for topic, found in queues.items() if _KINDS[1] in found} | survey.batches
    if not batch:
        return []
    paths = (path for found in queues.values() for kind in found.values() for path in kind[0])
    parts = (path.split("/") for path in paths)
    every = {(topic, int(number)) for _, topic, number in parts} | survey.runs.keys()
    data = topics_json(sorted(every), batch, 0)
    if _TOPICS in gone:
        edits.remove(gone[_TOPICS])
    state = "cannot be read" if _TOPICS in gone else "is not there"
    message = f"the topic table {state}: one is made of the queues of store and log, with default settings"
    made = Change(
        action=Action.MAKE_DIRECTORY, path="config", why="topics-unknown", message="for files in it"
    )
    folder = [] if store.listing.is_directory("config") else [Edit(made)]
    topics = sorted({topic for topic, _ in every})
    return [*folder, _put(_TOPICS, data, "topics-unknown", message, {"topics": topics})]


def _kinds(store: Store, survey: Survey, edits: list[Edit]) -> Iterator[Edit]:
    """Queues of the kind that their topic does not have (`ConsumeQueueStore#queueTypeShouldBe`).

    Where only they have files the table is wrong, else they go. It is wrong, too, where records alone tell of
    batch queues (`kept_rules_of`). Takes the salvaged table out of `edits`.
    """
    data, salvaged = _topic_table(store, edits)
    if data is None:
        return
    held = data.get("topicConfigTable")
    table = dict(held) if isinstance(held, dict) else {}
    declared_batch = {
        topic for topic, one in table.items() if isinstance(one, dict) and _kind_of(one) == _BATCH
    }
    wrong: list[str] = []
    for topic, found in sorted(_queues_by_topic(store).items()):
        entry, batch = table.get(topic), topic in declared_batch
        declared, other = _KINDS[batch], _KINDS[not batch]
        if other not in found:
            continue
        gone = other
        if found[other][1] and not found.get(declared, ([], False))[1]:
            table[topic] = _with_kind(entry, topic, found[other][0], batch=not batch)
            wrong.append(topic)
            gone = declared
        for path in found.get(gone, ([], False))[0]:
            message = f"{topic} has queues of the other kind, brokers refuse these"
            yield from directory_away(store, path, "queue-kind", message)
    for topic in sorted(survey.batches - declared_batch.union(wrong)):
        queues = [f"/{queue_id}" for name, queue_id in survey.runs if name == topic]
        table[topic] = _with_kind(table.get(topic), topic, queues, batch=True)
        wrong.append(topic)
    if wrong:
        if salvaged is not None:
            edits.remove(salvaged)
        message = (
            "queue.type is set to the kind of queues that store and log have, brokers refuse others: "
            + ", ".join(wrong[:10])
        )
        facts = {"topics": wrong} | (salvaged.change.facts if salvaged is not None else {})
        text = json.dumps(data | {"topicConfigTable": table}).encode()
        yield _put(_TOPICS, text, "queue-kind", message, facts)


def _topic_table(store: Store, edits: list[Edit]) -> tuple[dict[str, Any] | None, Edit | None]:
    """The topic table as a broker would load it after `edits`, and the edit that puts it."""
    for one in edits:
        if one.change.path == _TOPICS:
            put = one.content is not None
            data = parse_config(bytes(one.content.read(0, one.content.size))).data if one.content else None
            return (data if isinstance(data, dict) else None), (one if put else None)
    pair = store.config_pair("topics.json")
    return (pair.data if isinstance(pair.data, dict) and types_readable(store) else None), None


def _queues_by_topic(store: Store) -> dict[str, dict[str, tuple[list[str], bool]]]:
    """Queue directories by topic and kind, and whether any of them has a file that is not empty."""
    listing = store.listing
    found: dict[str, dict[str, tuple[list[str], bool]]] = {}
    for kind in _KINDS:
        for topic, _, path in queue_directories(listing, kind):
            paths, filled = found.setdefault(topic, {}).get(kind, ([], False))
            filled |= any(one.size for one in listing.entries(path) if one.file is not None)
            found[topic][kind] = [*paths, path], filled
    return found


def _kind_of(entry: dict[str, Any]) -> str:
    attributes = entry.get("attributes")
    return str(attributes.get("queue.type", "")) if isinstance(attributes, dict) else ""


def _with_kind(entry: Any, topic: str, paths: list[str], *, batch: bool) -> dict[str, Any]:
    made = dict(entry) if isinstance(entry, dict) else _entry(topic, paths)
    held = made.get("attributes")
    attributes = dict(held) if isinstance(held, dict) else {}
    attributes.pop("queue.type", None)
    return made | {"attributes": attributes | ({"queue.type": _BATCH} if batch else {})}


def _entry(topic: str, paths: list[str]) -> dict[str, Any]:
    """Of a topic that is missing in the table: as many queues as have a directory (`TopicConfig`)."""
    count = 1 + max((int(path.rpartition("/")[2]) for path in paths), default=0)
    return {
        "topicName": topic,
        "perm": 6,
        "readQueueNums": count,
        "writeQueueNums": count,
        "order": False,
        "topicFilterType": "SINGLE_TAG",
        "topicSysFlag": 0,
    }
