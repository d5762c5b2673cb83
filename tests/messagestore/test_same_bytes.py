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
from rmqtool import Message, MessageStore
from rmqtool.api import open_store, scan
from rmqtool.messagestore.messages import AppendContext, PutStatus
from rmqtool.store.config import config_of
from rmqtool.store.properties import read_properties
from tests.build.building import files_of, same

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
        "preblank",
        "props-crc",
        "tx",
        "v2",
    )
    if f"{release}-{kind}" in golden_names()
]
KINDS = ("commitlog", "consumequeue", "batchconsumequeue", "index")
ELSEWHERE = ("storePath",)
"""settings with places of the machine that the store was made on"""


def settings_of(one: Golden) -> dict[str, str]:
    given = read_properties(one.config_path)
    return {name: value for name, value in given.items() if not name.startswith(ELSEWHERE)}


def recorded(one: Golden, *, trailer: bool) -> Iterator[tuple[Message, AppendContext]]:
    """Every record in the order of the log, as what a put of it takes."""
    for batch in scan(open_store(one.path), columns=["record"]):
        for raw in batch["record"].to_pylist():
            record = Record.parse(raw)
            properties = record.properties[:-TRAILER_SIZE] if trailer else record.properties
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
                    queue_offset=record.queue_offset,
                ),
            )


def of_one_batch(one: tuple[Message, AppendContext]) -> tuple[object, ...]:
    """What the messages of a client's batch share."""
    message, context = one
    return message.topic, message.queue_id, message.born_timestamp, context.store_timestamp


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
