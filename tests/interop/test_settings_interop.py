"""Settings by what they do: the same work in the real store and in ours, the same answers and bytes."""

from __future__ import annotations

import os
import socket
import time
from typing import TYPE_CHECKING, Any

import pytest

from rmqtool import Message, MessageStore
from rmqtool.messagestore.messages import AppendContext
from tests.build.building import files_of, same
from tests.interop.ages import age
from tests.interop.conftest import require
from tests.interop.javastore import RELEASES, JavaProcess

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    Step = tuple[str, dict[str, Any]]
    Worked = tuple[str, Path, dict[str, list[Any]]]

pytestmark = pytest.mark.interop

SIZES: dict[str, Any] = {
    "mappedFileSizeCommitLog": 4096,
    "mappedFileSizeConsumeQueue": 400,
    "maxHashSlotNum": 13,
    "maxIndexNum": 4000,
}
KINDS = ("commitlog", "consumequeue", "consumequeue_ext", "index")
HOST = ("10.0.0.1", 51000)
HOT = {"slaveReadEnable": True}
"""of a broker, which else makes nothing of what its store says about slaves"""
DRAIN: Step = ("drain", {})


def put(topic: str = "T", size: int = 10, **fields: Any) -> Step:
    return "put", {"topic": topic, "body": bytes(size).hex(), "born_timestamp": 1, **fields}


def pull(offset: int = 0, limit: int = 32, topic: str = "T", **more: Any) -> Step:
    return "pull", {"topic": topic, "queue_id": 0, "offset": offset, "limit": limit, **more}


def query(key: str, limit: int = 32) -> Step:
    return "query", {"topic": "T", "key": key, "limit": limit}


SOME = [*(put(size=number * 7, keys=f"k{number % 3}", tags="AB"[number % 2]) for number in range(40)), DRAIN]
"""of several segments, queue files and index slots"""


def big(*sizes: int) -> list[Step]:
    return [put(size=size) for size in sizes]


def further(count: int) -> list[Step]:
    named = {"INNER_MULTI_DISPATCH": "%LMQ%a,%LMQ%b"}
    return [*(put("P", properties=named) for _ in range(count)), put("P"), DRAIN, pull(topic="%LMQ%b")]


LENGTHS = [put("%RETRY%" + "t" * size) for size in (119, 120)]
PULLS = [*SOME, pull(), pull(0, 7), pull(5), pull(39), pull(40), pull(41), pull(-1), pull(0, 0)]
DUE = {
    "deleteWhen": ";".join(f"{hour:02}" for hour in range(24)),
    "deleteCommitLogFilesInterval": 1,
    "deleteConsumeQueueFilesInterval": 1,
}
LATER = f"{(time.gmtime().tm_hour + 12) % 24:02}"
"""an hour that it is not, here or in Java, whose time is UTC"""
AGED: list[Step] = [
    *(put(size=900, queue_id=number % 2) for number in range(24)), DRAIN, ("age", {"hours": [9, 5, 3, 1]}),
]  # fmt: skip
CLEAN: Step = ("clean", {})
EVENING = DUE | {"deleteWhen": LATER, "fileReservedTime": 2}
CASES: dict[str, tuple[dict[str, Any], Sequence[Step]]] = {
    "mappedFileSizeCommitLog-even": ({"mappedFileSizeCommitLog": 2048}, SOME),
    "mappedFileSizeCommitLog-odd": ({"mappedFileSizeCommitLog": 3001}, SOME),
    "mappedFileSizeCommitLog-blank": ({}, [*big(10, 3900, 8, 3800, 90, 10), DRAIN, pull()]),
    "mappedFileSizeConsumeQueue": ({"mappedFileSizeConsumeQueue": 201}, [*SOME, pull(9), pull(11)]),
    "mappedFileSizeConsumeQueueExt": (
        {"enableConsumeQueueExt": True, "mappedFileSizeConsumeQueueExt": 500}, SOME,
    ),
    "enableConsumeQueueExt": (
        {"enableConsumeQueueExt": True},
        [*SOME, pull(0, tags="A"), pull(20, tags="B || C"), pull(0, tags="C")],
    ),
    "maxHashSlotNum": ({"maxHashSlotNum": 2}, [*SOME, query("k1"), query("none")]),
    "maxIndexNum": ({"maxIndexNum": 50}, [*SOME, query("k1", 5)]),
    "messageIndexEnable": ({"messageIndexEnable": False}, SOME),
    "maxMessageSize": ({"maxMessageSize": 100}, [*big(99, 100, 101), DRAIN]),
    "maxMessageSize-properties": (
        {"mappedFileSizeCommitLog": 1 << 20, "maxMessageSize": 1 << 10},
        [put(properties={"p": text}) for text in ("x" * 32_765, "x" * 40_000, "é" * 16_382, "é" * 16_383)],
    ),
    "maxMessageSize-record": (
        {"mappedFileSizeCommitLog": 1 << 20, "maxMessageSize": 1 << 10},
        [put(size=size, properties={"p": "x" * 32_000}) for size in (0, 1000, 1024)],
    ),
    "autoMessageVersionOnTopicLen": (
        {"autoMessageVersionOnTopicLen": True}, [*LENGTHS, put("%RETRY%" + "t" * 248)],
    ),
    "autoMessageVersionOnTopicLen-off": ({"autoMessageVersionOnTopicLen": False}, LENGTHS[:1]),
    "enabledAppendPropCRC": ({"enabledAppendPropCRC": True}, SOME),
    "flushDiskType": ({"flushDiskType": "SYNC_FLUSH"}, SOME[:9]),
    "transientStorePoolEnable": (
        {"transientStorePoolEnable": True, "transientStorePoolSize": 3}, SOME,
    ),
    "messageDelayLevel": (
        {"messageDelayLevel": "10m 3h"},
        [put("SCHEDULE_TOPIC_XXXX", properties={"DELAY": level}) for level in ("1", "2", "3", "99", "0")],
    ),
    "enableMultiDispatch": ({"enableMultiDispatch": True}, further(5)),
    "enableLmq": ({"enableMultiDispatch": True, "enableLmq": True}, further(5)),
    "maxTransferCountOnMessageInMemory": ({"maxTransferCountOnMessageInMemory": 3}, PULLS),
    "maxTransferCountOnMessageInMemory-0": ({"maxTransferCountOnMessageInMemory": 0}, PULLS),
    "maxTransferBytesOnMessageInMemory": ({"maxTransferBytesOnMessageInMemory": 700}, PULLS),
    "maxTransferBytesOnMessageInMemory-0": ({"maxTransferBytesOnMessageInMemory": 0}, PULLS),
    "maxTransferCountOnMessageInDisk": (
        {"maxTransferCountOnMessageInDisk": 3, "accessMessageInMemoryMaxRatio": 0}, PULLS,
    ),
    "maxTransferBytesOnMessageInDisk": (
        {"maxTransferBytesOnMessageInDisk": 700, "accessMessageInMemoryMaxRatio": 0}, PULLS,
    ),
    "accessMessageInMemoryMaxRatio": ({"accessMessageInMemoryMaxRatio": 0}, PULLS),
    "maxFilterMessageSize": (
        {"maxFilterMessageSize": 100, "mappedFileSizeConsumeQueue": 4000},
        [*SOME, pull(0, 2, tags="B"), pull(0, 5, tags="none"), pull(0, 32, tags="none")],
    ),
    "fileReservedTime": (DUE | {"fileReservedTime": 2}, [*AGED, CLEAN]),
    "fileReservedTime-0": (DUE | {"fileReservedTime": 0}, [*AGED, CLEAN]),
    "deleteFileBatchMax": (DUE | {"fileReservedTime": 2, "deleteFileBatchMax": 2}, [*AGED, CLEAN, CLEAN]),
    "deleteWhen": (EVENING, [*AGED, CLEAN]),
    **{
        f"diskMaxUsedSpaceRatio-{ratio}": (EVENING | {"diskMaxUsedSpaceRatio": ratio}, [*AGED, CLEAN])
        for ratio in (1, 50, 99)
    },
}  # fmt: skip
"""settings beside SIZES, and what is done under them, by the name of a setting

What the ratios of a disk do depends on how full it is, which both see.
"""
ONLY_5 = (
    "enabledAppendPropCRC",
    "autoMessageVersionOnTopicLen",
    "maxFilterMessageSize",
    "deleteFileBatchMax",
)


def known_to(release: str, case: str) -> dict[str, Any]:
    """The settings of a case; none where they came with 5.x."""
    return {} if release.startswith("4") and case.startswith(ONLY_5) else CASES[case][0]


def answered(store: MessageStore, step: Step, expected: Any) -> Any:
    """What our store says; a message that Java has stored is put with what it has filled in."""
    name, given = step[0], dict(step[1])
    if name == "put":
        return put_here(store, given, expected)
    if name == "pull":
        found = store.get(**given, exact=False)
        return {
            "status": found.status.name,
            "next": found.next_begin_offset,
            "bounds": [found.min_offset, found.max_offset],
            "slave": found.suggest_pulling_from_slave,
            "found": [one.physical_offset for one in found.messages],
        }
    if name == "query":
        return [one.physical_offset for one in store.query_key(**given)]
    if name == "drain":
        assert store.flush()  # which else makes segments young again
        store.queues()  # for which all is dispatched
    if name == "age":
        age(store.root, **given)
    if name == "clean":
        store._expiry.clean()
        return {"min": int(min(os.listdir(f"{store.root}/commitlog"))), "max": store.end}
    return None


def put_here(store: MessageStore, given: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    topic, queue_id = (expected.get(name, given.get(name)) for name in ("topic", "queue_id"))
    address = socket.inet_aton(HOST[0])
    named = {"TAGS": given.get("tags"), "KEYS": given.get("keys")} | given.get("properties", {})
    text = "".join(f"{name}\1{value}\2" for name, value in named.items() if value is not None)
    context = AppendContext(
        store_timestamp=expected.get("stored"),
        store_host=(socket.inet_aton("10.0.0.2"), 10911),
        properties=expected.get("properties", text).encode(),
    )
    message = Message(
        topic, bytes.fromhex(given["body"]), queue_id=queue_id, born_timestamp=1, born_host=(address, HOST[1])
    )
    ack = store.put(message, context=context)
    told = {
        "status": ack.status.value,
        "physical_offset": ack.physical_offset,
        "queue_offset": ack.queue_offset,
    }
    return expected | told


@pytest.fixture(scope="module", params=RELEASES)
def worked(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worked]:
    """All cases in one Java, as its stores take seconds to shut down: its release, places and answers."""
    release, place = require(request.config, request.param), tmp_path_factory.mktemp("settings")
    jobs = [
        {"root": str(place / case), "settings": SIZES | known_to(release, case), "steps": steps}
        for case, (_, steps) in CASES.items()
    ]
    java = JavaProcess(release, place)
    try:
        yield release, place, dict(zip(CASES, java.call("work", jobs=jobs), strict=True))
    finally:
        java.kill()


@pytest.mark.parametrize("case", CASES)
def test_a_setting_does_what_it_does_in_java(worked: Worked, tmp_path: Path, case: str) -> None:
    release, place, answers = worked
    config = SIZES | HOT | known_to(release, case)
    with MessageStore.open(tmp_path, create=True, release=release, config=config) as store:
        steps = list(zip(CASES[case][1], answers[case], strict=True))
        found = [answered(store, step, one) for step, one in steps]
    assert [one for one in zip(*zip(*steps, strict=True), found, strict=True) if one[1] != one[2]] == []
    assert same(files_of(place / case, *KINDS), files_of(tmp_path, *KINDS)) == []
