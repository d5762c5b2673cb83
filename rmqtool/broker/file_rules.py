"""What decides the bytes of derived files: sizes, switches and the differences of releases."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from formats.index import DEFAULT_ITEMS, DEFAULT_SLOTS, FIRST_ITEM
from rmqtool.broker.extension_files import extension_units
from rmqtool.broker.settings import delay_levels
from rmqtool.broker.traits import traits_of
from rmqtool.errors import UsageError
from rmqtool.scan.multi import LMQ_PREFIX, MultiDispatch
from rmqtool.scan.units import BATCH_UNIT, UNIT
from rmqtool.store.kinds import FileKind
from rmqtool.store.releases import version_key

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rmqtool.store.config import StoreConfig
    from rmqtool.store.layout import Store


_SLOTS_COUNTED = (4, 7, 1)
"""the first release in which `hash_slot_count` counts slots"""


@dataclass(frozen=True)
class FileRules:
    """Sizes are bytes of whole files.

    extension: `enableConsumeQueueExt`. multi_dispatch: which records feed further queues, NONE also where
    `enableMultiDispatch` is off; lmq: `enableLmq`. levels: delays in ms by level, None for the broker's
    defaults. batch_topics: those whose queues are batch queues; plain_topics: those with plain queues, None
    where `topics.json` tells of every topic. hash_slots, index_items: of an index file. every_put:
    `hash_slot_count` counts puts, as before 4.7.1. header_at_stop: an index file without items has its header
    written, as since 5.0.
    """

    consume_queue_size: int = 6_000_000
    batch_queue_size: int = 13_800_000
    extension_size: int = 50_331_648
    extension: bool = False
    multi_dispatch: MultiDispatch = MultiDispatch.NONE
    lmq: bool = False
    levels: Mapping[int, int] | None = None
    batch_topics: frozenset[str] = field(default_factory=frozenset)
    plain_topics: frozenset[str] | None = None
    hash_slots: int = DEFAULT_SLOTS
    index_items: int = DEFAULT_ITEMS
    every_put: bool = False
    header_at_stop: bool = True

    @property
    def units(self) -> int:
        """Units of a plain queue file."""
        return self.consume_queue_size // UNIT.itemsize

    @property
    def batch_units(self) -> int:
        """Units of a batch queue file."""
        return self.batch_queue_size // BATCH_UNIT.itemsize

    @property
    def extends(self) -> bool:
        """Whether queues have extension files, and units fit into them."""
        return self.extension and extension_units(self.extension_size) > 0


def rules_of(store: Store, release: str) -> FileRules:
    """The rules by which a broker of this release builds. Raises `UsageError` for a bad `messageDelayLevel`.

    Sizes that are not given are those of the files that lie there. So are the switches: extension files and
    queues of light messages are built where some are there. Where no queue is there at all, records tell: a
    broker gives them INNER_MULTI_QUEUE_OFFSET only with `enableMultiDispatch`. Batch topics are those of
    `topics.json` and those that have a directory in `batchconsumequeue`.
    """
    from rmqtool.store.config import config_of

    config = store.config or config_of({})
    traits = traits_of(release)
    bare = not store.of_kind(FileKind.CONSUMEQUEUE)
    light = bare or has_light_queues(store)
    switched = config.is_set("enable_multi_dispatch")
    dispatches = config.enable_multi_dispatch if switched else light
    slots, items = _geometry(store, config)
    return FileRules(
        consume_queue_size=_size(store, config, FileKind.CONSUMEQUEUE, "consume_queue_file_size"),
        batch_queue_size=_size(
            store, config, FileKind.BATCHCONSUMEQUEUE, "mapper_file_size_batch_consume_queue"
        ),
        extension_size=_size(store, config, FileKind.CONSUMEQUEUE_EXT, "mapped_file_size_consume_queue_ext"),
        extension=config.enable_consume_queue_ext
        or (not config.is_set("enable_consume_queue_ext") and bool(store.of_kind(FileKind.CONSUMEQUEUE_EXT))),
        multi_dispatch=traits.multi_dispatch if dispatches else MultiDispatch.NONE,
        lmq=lmq_of(store),
        levels=delay_levels(config),
        batch_topics=_batch_topics(store) if traits.typed_queues else frozenset(),
        plain_topics=_plain_topics(store) if traits.typed_queues and not types_readable(store) else None,
        hash_slots=slots,
        index_items=items,
        every_put=version_key(release) < _SLOTS_COUNTED,
        header_at_stop=traits.typed_queues,
    )


def kept_rules_of(store: Store, release: str) -> FileRules:
    """The same for what is kept: inner batches also tell where the topic table lacks `queue.type` of a topic.

    A broker takes such a topic for one with plain queues, but stores inner batches for batch topics alone: an
    entry was lost, or 4.x wrote the table, which drops the attribute. And queues that records list have what
    they had, whether or not a start with these settings would build it: a broker serves it.
    """
    rules, traits = rules_of(store, release), traits_of(release)
    if rules.multi_dispatch is MultiDispatch.NONE:
        rules = replace(rules, multi_dispatch=traits.multi_dispatch, lmq=light_numbers_are_zero(store))
    if rules.plain_topics is not None or not traits.typed_queues:
        return rules
    said = {name for name, topic in store.topics.items() if "queue.type" in topic.attributes}
    return replace(rules, plain_topics=(_plain_topics(store) | said) - rules.batch_topics)


def lmq_of(store: Store) -> bool:
    """`enableLmq`, by which light queues have the number 0: as given, else where light queues are there.

    Where no queue is there, as long as nobody gave `enableMultiDispatch` either.
    """
    from rmqtool.store.config import config_of

    config = store.config or config_of({})
    if config.is_set("enable_lmq"):
        return config.enable_lmq
    if store.of_kind(FileKind.CONSUMEQUEUE):
        return has_light_queues(store)
    return not config.is_set("enable_multi_dispatch")


def light_numbers_are_zero(store: Store) -> bool:
    """`enableLmq` as it was when light queues were written, as far as their directories tell."""
    return not any(one.queue_id and (one.topic or "").startswith(LMQ_PREFIX) for one in store.queues())


def has_light_queues(store: Store) -> bool:
    """Whether a queue with LMQ's prefix has a directory."""
    return any((one.topic or "").startswith(LMQ_PREFIX) for one in store.queues())


def _size(store: Store, config: StoreConfig, kind: FileKind, name: str) -> int:
    found = None if config.is_set(name) else store.sizes.get(kind)
    return int(getattr(config, name)) if found is None else found.value


def _geometry(store: Store, config: StoreConfig) -> tuple[int, int]:
    """Slots and items of an index file, which has room for a key."""
    if config.is_set("max_hash_slot_num") or config.is_set("max_index_num"):
        if config.max_index_num <= FIRST_ITEM:
            raise UsageError(
                f"maxIndexNum is {config.max_index_num}: no index file has room for a key, a broker would "
                "make files without end (IndexService#putKey)"
            )
        return config.max_hash_slot_num, config.max_index_num
    geometries = [store.index_geometry[file.path] for file in reversed(store.index_files())]
    for found in geometries:
        if found.slots is not None and found.items is not None and found.items > FIRST_ITEM:
            return found.slots, found.items
    # no file with items tells: at least the length is that of the files
    likely = (one.candidates[0] for one in geometries if one.candidates)
    return next((one for one in likely if one[1] > FIRST_ITEM), (DEFAULT_SLOTS, DEFAULT_ITEMS))


def types_known(store: Store) -> bool:
    """Whether there is a topic table, from which alone a broker knows the kind of a topic's queues."""
    names = ("config/topics.json", "config/topics.json.bak")
    return any(store.file(name) is not None for name in names)


def types_readable(store: Store) -> bool:
    """Whether a topic table tells the kinds: one that cannot be read does not."""
    return store.config_pair("topics.json").chosen != "empty"


def _plain_topics(store: Store) -> frozenset[str]:
    return frozenset(one.topic for one in store.queues(FileKind.CONSUMEQUEUE) if one.topic is not None)


def _batch_topics(store: Store) -> frozenset[str]:
    declared = {name for name, topic in store.topics.items() if topic.queue_type == "BatchCQ"}
    plain = {name for name, topic in store.topics.items() if topic.attributes.get("queue.type") == "SimpleCQ"}
    known = {one.topic for one in store.queues(FileKind.BATCHCONSUMEQUEUE) if one.topic is not None}
    return frozenset(declared | (known - plain))
