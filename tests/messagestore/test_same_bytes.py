"""Records of stores that the real store wrote, put again: log, queues and index are the same bytes."""

from __future__ import annotations

import shutil
from itertools import groupby
from typing import TYPE_CHECKING

import pytest

from fixtures import golden_names
from formats.commitlog import Message as Record
from formats.crc_trailer import TRAILER_SIZE
from formats.java import java_utf8_decode
from formats.properties import INNER_BASE, INNER_MULTI_QUEUE_OFFSET, without
from rmqtool import Message, MessageStore
from rmqtool.api import open_store, scan
from rmqtool.messagestore.messages import AppendContext, PutStatus
from rmqtool.store.config import config_of
from rmqtool.store.layout import Store
from rmqtool.store.properties import read_properties
from tests.build.building import files_of, same
from tests.build.test_goldens import all_units

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from fixtures import Golden

STORES = [
    f"{release}-{kind}"
    for release in ("v498", "v533")
    for kind in (
        "basic",
        "batch",
        "batchcq",
        "compressed",
        "edge",
        "ipv6",
        "lmq",
        "preblank",
        "props-crc",
        "tx",
        "v2",
    )
    if f"{release}-{kind}" in golden_names()
]
KINDS = ("commitlog", "consumequeue", "consumequeue_ext", "batchconsumequeue", "index")
ELSEWHERE = ("storePath",)
"""settings with places of the machine that the store was made on"""


def settings_of(one: Golden) -> dict[str, str]:
    given = read_properties(one.config_path)
    return {name: value for name, value in given.items() if not name.startswith(ELSEWHERE)}


def recorded(one: Golden, *, trailer: bool, counted: bool = True) -> Iterator[tuple[Message, AppendContext]]:
    """Every record in the order of the log, as what a put of it takes.

    counted: with its queue offset and the properties that say such.
    """
    for batch in scan(open_store(one.path), columns=["record"]):
        for raw in batch["record"].to_pylist():
            record = Record.parse(raw)
            properties = record.properties[:-TRAILER_SIZE] if trailer else record.properties
            for name in () if counted else (INNER_BASE, INNER_MULTI_QUEUE_OFFSET):
                properties = without(properties, name)
            yield (
                Message(
                    java_utf8_decode(record.topic)[0],
                    record.body,
                    queue_id=record.queue_id,
                    flag=record.flag,
                    born_timestamp=record.born_timestamp,
                    born_host=(record.born_host.ip, record.born_host.port),
                ),
                AppendContext(
                    store_timestamp=record.store_timestamp,
                    store_host=(record.store_host.ip, record.store_host.port),
                    sys_flag=record.sys_flag,
                    reconsume_times=record.reconsume_times,
                    prepared_transaction_offset=record.prepared_transaction_offset,
                    properties=properties,
                    queue_offset=record.queue_offset if counted else None,
                ),
            )


def of_one_batch(one: tuple[Message, AppendContext]) -> tuple[object, ...]:
    """What the messages of a client's batch share."""
    message, context = one
    return message.topic, message.queue_id, message.born_timestamp, context.store_timestamp


@pytest.mark.share
@pytest.mark.parametrize("name", STORES)
def test_a_replay_gives_the_same_bytes(golden: Callable[[str], Golden], name: str, tmp_path: Path) -> None:
    one, root = golden(name), tmp_path / "store"
    settings = settings_of(one)
    trailer = config_of(settings).enabled_append_prop_crc
    (root / "commitlog").mkdir(parents=True)
    if (one.path / "config").exists():
        shutil.copytree(one.path / "config", root / "config")
    with MessageStore.open(root, config=settings, release=one.release) as store:
        for _, run in groupby(recorded(one, trailer=trailer), of_one_batch):
            messages, contexts = zip(*run, strict=True)
            if name.endswith("-batch"):
                acks = store.put_batch(messages, contexts=contexts)
            else:
                both = zip(messages, contexts, strict=True)
                acks = [store.put(message, context=context) for message, context in both]
            assert {ack.status for ack in acks} == {PutStatus.PUT_OK}
    assert same(files_of(one.path, *KINDS), files_of(root, *KINDS)) == []


@pytest.mark.parametrize("name", ["v498-cqext", "v533-cqext"])
def test_extension_files_hold_the_same_but_for_bit_maps(
    golden: Callable[[str], Golden], name: str, tmp_path: Path
) -> None:
    """The bit maps were put in by what made the stores, as a broker's filter dispatcher does."""
    one, root = golden(name), tmp_path / "store"
    settings = settings_of(one)
    with MessageStore.open(root, create=True, config=settings, release=one.release) as store:
        for message, context in recorded(one, trailer=False):
            assert store.put(message, context=context).status is PutStatus.PUT_OK
    assert same(files_of(one.path, "commitlog", "index"), files_of(root, "commitlog", "index")) == []
    made, given = (Store.open(path, config=config_of(settings)) for path in (root, one.path))
    assert all_units(made) == all_units(given)


@pytest.mark.parametrize("name", ["v498-lmq", "v533-lmq", "v533-batchcq"])
def test_offsets_are_counted_as_brokers_do(
    golden: Callable[[str], Golden], name: str, tmp_path: Path
) -> None:
    one, root = golden(name), tmp_path / "store"
    with MessageStore.open(root, create=True, config=settings_of(one), release=one.release) as store:
        for message, context in recorded(one, trailer=False, counted=False):
            assert store.put(message, context=context).status is PutStatus.PUT_OK
    kinds = KINDS[1:-1] if name.endswith("batchcq") else KINDS  # INNER_BASE stands elsewhere in the record
    assert same(files_of(one.path, *kinds), files_of(root, *kinds)) == []
