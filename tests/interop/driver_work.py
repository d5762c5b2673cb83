"""A list of steps on Java's store, each with its answer: what is stored, pulled, queried and cleaned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jpype import JClass  # type: ignore[import-untyped]

from tests.interop.ages import age
from tests.interop.driver_read import PHYSICAL_OFFSET_AT

if TYPE_CHECKING:
    from collections.abc import Callable


def put(store: Any, message: Any) -> dict[str, Any]:
    """What a put answers; offsets are -1 where nothing was stored.

    topic, queue_id, properties: as it was stored, which is elsewhere for a delayed one. stored: when.
    """
    result = store.putMessage(message)
    appended = result.getAppendMessageResult()
    status = str(result.getPutMessageStatus().name())
    if appended is None or str(appended.getStatus().name()) != "PUT_OK":
        return {"status": status, "physical_offset": -1, "queue_offset": -1}
    return {
        "status": status,
        "physical_offset": int(appended.getWroteOffset()),
        "queue_offset": int(appended.getLogicsOffset()),
        "stored": int(appended.getStoreTimestamp()),
        "topic": str(message.getTopic()),
        "queue_id": int(message.getQueueId()),
        "properties": str(message.getPropertiesString() or ""),
    }


def pull(
    store: Any, v5: bool, topic: str, queue_id: int, offset: int, limit: int = 32, tags: str | None = None
) -> dict[str, Any]:
    """A pull of a group that has asked for tags, with the filter of a broker."""
    chosen = None if tags is None else _by_tags(topic, tags, v5)
    result = store.getMessage("interop", topic, queue_id, offset, limit, chosen)
    found = [int(one.getByteBuffer().getLong(PHYSICAL_OFFSET_AT)) for one in result.getMessageMapedList()]
    result.release()
    return {
        "status": str(result.getStatus().name()),
        "next": int(result.getNextBeginOffset()),
        "bounds": [int(result.getMinOffset()), int(result.getMaxOffset())],
        "slave": bool(result.isSuggestPullingFromSlave()),
        "found": found,
    }


def _by_tags(topic: str, tags: str, v5: bool) -> Any:
    package = "remoting.protocol" if v5 else "common.protocol"
    wanted = JClass(f"org.apache.rocketmq.{package}.heartbeat.SubscriptionData")()
    wanted.setTopic(topic)
    wanted.setSubString(tags)
    for tag in tags.split("||"):
        wanted.getTagsSet().add(tag.strip())
        wanted.getCodeSet().add(
            JClass("java.lang.Integer")(JClass("java.lang.String")(tag.strip()).hashCode())
        )
    return JClass("org.apache.rocketmq.store.DefaultMessageFilter")(wanted)


def query(store: Any, topic: str, key: str, limit: int = 32) -> list[int]:
    """Physical offsets of what the index has under a key."""
    result = store.queryMessage(topic, key, limit, 0, (1 << 63) - 1)
    if result is None:
        return []
    found = [int(one.getLong(PHYSICAL_OFFSET_AT)) for one in result.getMessageBufferList()]
    result.release()
    return sorted(found)


def clean(store: Any) -> dict[str, int]:
    """One run of the cleaning as its schedule makes it, and the log's bounds then."""
    for name in ("cleanFilesPeriodically", "cleanQueueFilesPeriodically"):
        for method in store.getClass().getDeclaredMethods():
            if str(method.getName()) == name:
                method.setAccessible(True)
                method.invoke(store)
    return {"min": int(store.getMinPhyOffset()), "max": int(store.getMaxPhyOffset())}


def work(
    store: Any, v5: bool, message: Callable[..., Any], drain: Callable[[], None], steps: list[list[Any]]
) -> list[Any]:
    """The answer to each step, which is the name of one of `calls` with its arguments."""
    calls: dict[str, Callable[..., Any]] = {
        "put": lambda topic, body, **fields: put(store, message(topic, bytes.fromhex(body), **fields)),
        "pull": lambda **given: pull(store, v5, **given),
        "query": lambda **given: query(store, **given),
        "age": lambda **given: age(str(store.getMessageStoreConfig().getStorePathRootDir()), **given),
        "clean": lambda: clean(store),
        "drain": drain,
    }
    return [calls[name](**given) for name, given in steps]
