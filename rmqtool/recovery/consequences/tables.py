"""What the broker knows after it has loaded its configuration files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.tags_code import SCHEDULE_TOPIC
from rmqtool.broker.load import queue_directories
from rmqtool.errors import RmqtoolError
from rmqtool.recovery.config_tables import Loads
from rmqtool.recovery.consequences.consequence import Consequence, consequence
from rmqtool.recovery.consequences.entry import Severity
from rmqtool.scan.multi import MultiDispatch
from rmqtool.store.config_json import ParsedConfig, ParseState, has_entries, parse_table
from rmqtool.store.consumer_offsets import other_offsets_file
from rmqtool.store.kinds import FileKind
from rmqtool.store.names import escape_name
from rmqtool.store.rocksdb import OF_DATABASE, all_tables_in_database, databases_of_tables
from rmqtool.store.whole import read_whole

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from rmqtool.recovery.config_tables import ConfigOutcome
    from rmqtool.recovery.consequences.finding_context import FindingContext
    from rmqtool.store.layout import Store

_WHAT = {
    "topics.json": "topics",
    "consumerOffset.json": "consumer offsets",
    "lmqConsumerOffset.json": "consumer offsets",
    "subscriptionGroup.json": "consumer groups",
    "delayOffset.json": "offsets of delayed messages",
    "topicQueueMapping.json": "mappings of static topics",
    "consumerFilter.json": "filters",
    "consumerOrderInfo.json": "states of orderly consumers",
}
_OFFSETS = ("consumerOffset.json", "lmqConsumerOffset.json")
_DAMAGED = (ParseState.UNPARSABLE, ParseState.EMPTY, ParseState.UNREADABLE)


def tables(scene: FindingContext) -> Iterator[Consequence]:
    """Table by table what is loaded instead of what was meant."""
    store = scene.start.store
    by_name = {
        file.display_path.removesuffix(".bak"): file
        for file in store.of_kind(FileKind.CONFIG, FileKind.CONFIG_BAK)
    }
    for one in scene.outcome.config:
        name = by_name[one.path].path.removesuffix(".bak") if one.path in by_name else one.path
        yield from _table(store, one, name)
    yield from _unread(scene)
    yield from _no_topics(scene)
    there = {file.path.removesuffix(".bak") for file in store.of_kind(FileKind.CONFIG, FileKind.CONFIG_BAK)}
    if "config/topics.json" in there and not databases_of_tables(store):
        yield from _no_offsets(there)
        yield from _no_delay_offsets(scene, there)


def _table(store: Store, one: ConfigOutcome, name: str) -> Iterator[Consequence]:
    own, backup = _parsed(store, name), _parsed(store, name + ".bak")
    facts = {"path": one.path, "what": _WHAT.get(name.rpartition("/")[2], "its entries")}
    if one.loads is Loads.EMPTY and not _is_empty_object(own):
        known = next((held.data for held in (own, backup) if isinstance(held.data, dict) and held.data), None)
        found = consequence("DR-CONFIG-EMPTY", one.path, **facts, entries=_entries(known))
        milder = Severity.ERROR if one.loses else Severity.WARNING
        yield Consequence(found.code, milder, found.message, found.paths, found.facts)
    elif one.loads is Loads.BAK:
        code = "DR-CONFIG-BAK" if one.loses else "DR-CONFIG-BAK-ONLY"
        yield consequence(code, one.path, one.path + ".bak", **facts)
    elif one.loads is Loads.PRIMARY:
        if backup.state in _DAMAGED:
            yield consequence("DR-CONFIG-BAK-BAD", one.path + ".bak", **facts)
        if own.state is ParseState.LENIENT:
            yield consequence("DR-CONFIG-FORGIVEN", one.path, **facts, reason=own.detail)


def _unread(scene: FindingContext) -> Iterator[Consequence]:
    """Tables with entries that a broker does not read by its settings, where what it reads is not there.

    With a database in their place nobody knows; the verdict is uncertain then.
    """
    store, traits = scene.start.store, scene.start.traits
    config = store.config
    if config is None:
        return
    unread = {}
    if all_tables_in_database(config) and traits.tables_in_database and not databases_of_tables(store):
        unread = dict.fromkeys(OF_DATABASE, "configManagerVersion=v2")
    other = other_offsets_file(store)
    if other is not None and traits.multi_dispatch is not MultiDispatch.NONE:
        unread.setdefault(other, f"enableLmq={str(config.enable_lmq).lower()}")
    for name, setting in unread.items():
        if has_entries(store.config_pair(name).data):
            path = f"config/{name}"
            facts = {"path": path, "what": _WHAT[name], "setting": setting}
            yield consequence("DR-TABLE-UNREAD", path, **facts)


def _parsed(store: Store, path: str) -> ParsedConfig:
    file = store.file(path)
    if file is None:
        return ParsedConfig(None, ParseState.MISSING, None)
    try:
        return parse_table(read_whole(file), file.name)
    except RmqtoolError as error:
        return ParsedConfig(None, ParseState.UNREADABLE, str(error))


def _is_empty_object(parsed: ParsedConfig) -> bool:
    """`{}` or `{"offsetTable":{}}`: a table that was written empty."""
    return parsed.state.has_data and not has_entries(parsed.data)


def _entries(data: dict[str, object] | None) -> int | None:
    """How many entries a table has, None when it cannot be known."""
    if data is None:
        return None
    return sum(len(held) for name, held in data.items() if isinstance(held, dict) and name != "dataVersion")


def _no_topics(scene: FindingContext) -> Iterator[Consequence]:
    start = scene.start
    names = ("config/topics.json", "config/topics.json.bak")
    if start.plan is None or any(start.store.file(name) is not None for name in names):
        return
    if start.traits.tables_of_5 and databases_of_tables(start.store):
        return
    topics = {key[0] for key in (*start.queues, *start.spans.of())}
    if topics:  # a store that was never a broker's has no table; one with a broker's other tables lost it
        others = (f"config/{name}" for name in (*_OFFSETS, "subscriptionGroup.json"))
        lost = names[:1] if any(start.store.file(name) is not None for name in others) else ()
        yield consequence("DR-TOPICS-UNKNOWN", *lost, count=len(topics))
    batch = {topic for topic, _, _ in queue_directories(start.listing, FileKind.BATCHCONSUMEQUEUE.value)}
    if start.traits.typed_queues and batch:
        paths = [f"{FileKind.BATCHCONSUMEQUEUE.value}/{escape_name(topic)}" for topic in sorted(batch)]
        yield consequence("DR-BATCH-TOPICS-UNKNOWN", *paths, count=len(batch))


def _no_offsets(there: Collection[str]) -> Iterator[Consequence]:
    """`BrokerController` writes consumer offsets every five seconds, groups or not, and when it stops."""
    paths = [f"config/{name}" for name in _OFFSETS]
    if not any(path in there for path in paths):
        yield consequence("DR-OFFSETS-UNKNOWN", paths[0], path=paths[0])


def _no_delay_offsets(scene: FindingContext, there: Collection[str]) -> Iterator[Consequence]:
    """A level without an offset begins at 0 (`ScheduleMessageService#start`)."""
    path = "config/delayOffset.json"
    if scene.start.plan is None or path in there:
        return
    queues = [queue for (topic, _), queue in scene.start.queues.items() if topic == SCHEDULE_TOPIC]
    messages = sum(max(queue.max_offset - queue.min_offset, 0) for queue in queues)
    if messages:
        yield consequence("DR-DELAY-OFFSETS-UNKNOWN", path, path=path, messages=messages)
