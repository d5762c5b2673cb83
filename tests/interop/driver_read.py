"""What Java itself reads from a store: its own decoder, its own checks, its own getMessage."""

from __future__ import annotations

import hashlib
from typing import Any

from jpype import JArray, JByte, JClass  # type: ignore[import-untyped]

MESSAGE_MAGIC_CODES = (-626843481, -626843477)
BLANK_MAGIC_CODE = -875286124
PHYSICAL_OFFSET_AT = 28
BATCH = 32


def log(store: Any, v5: bool) -> dict[str, Any]:
    """Every record and blank from the first offset to the end, in order."""
    commit_log = store.getCommitLog()
    offset, end = int(store.getMinPhyOffset()), int(store.getMaxPhyOffset())
    records: list[dict[str, Any]] = []
    blanks: list[list[int]] = []
    while offset < end:
        selected = commit_log.getData(offset, offset == 0)
        if selected is None:
            raise RuntimeError(f"Java gives no data at {offset}")
        buffer = selected.getByteBuffer()
        stop = _segment(buffer, offset, commit_log, v5, records, blanks)
        selected.release()
        rolled = bool(blanks) and blanks[-1][0] == stop
        offset = int(commit_log.rollNextFile(stop)) if rolled else stop
    return {"records": records, "blanks": blanks}


def _segment(
    buffer: Any,
    base: int,
    commit_log: Any,
    v5: bool,
    records: list[dict[str, Any]],
    blanks: list[list[int]],
) -> int:
    position, limit = 0, int(buffer.limit())
    while position < limit:
        magic = int(buffer.getInt(position + 4))
        if magic == BLANK_MAGIC_CODE:
            blanks.append([base + position, int(buffer.getInt(position))])
            break
        if magic not in MESSAGE_MAGIC_CODES:
            raise RuntimeError(
                f"Java's end offset lies behind bytes that are not a record at {base + position}"
            )
        records.append(record(buffer, position, commit_log, v5))
        position += records[-1]["storeSize"]
    return base + position


def record(buffer: Any, position: int, commit_log: Any, v5: bool) -> dict[str, Any]:
    """One record with the names that golden stores use in ``expected.json``."""
    message = _decode(buffer, position, v5, decompress=False)
    if message is None:
        raise RuntimeError("Java cannot decode a record of its own")
    body = _body(message)
    entries = message.getProperties() or {}
    properties = {str(name): str(value) for name, value in dict(entries).items()}
    properties_string = properties.pop("propertiesString", None)
    facts: dict[str, Any] = {
        "physicalOffset": int(message.getCommitLogOffset()),
        "storeSize": int(message.getStoreSize()),
        "magic": int(buffer.getInt(position + 4)),
        "topic": str(message.getTopic()),
        "queueId": int(message.getQueueId()),
        "queueOffset": int(message.getQueueOffset()),
        "flag": int(message.getFlag()),
        "sysFlag": int(message.getSysFlag()),
        "bornTimestamp": int(message.getBornTimestamp()),
        "bornHost": _host(message.getBornHost()),
        "storeTimestamp": int(message.getStoreTimestamp()),
        "storeHost": _host(message.getStoreHost()),
        "reconsumeTimes": int(message.getReconsumeTimes()),
        "preparedTransactionOffset": int(message.getPreparedTransactionOffset()),
        "bodyCRC": int(message.getBodyCRC()),
        "bodyLength": len(body),
        "bodySha256": hashlib.sha256(body).hexdigest(),
        "offsetMsgId": str(message.getMsgId()),
        "uniqKey": properties.get("UNIQ_KEY"),
        "tags": properties.get("TAGS"),
        "keys": properties.get("KEYS"),
        "properties": properties,
        "propertiesString": properties_string,
        "javaTagsCode": _tags_code(buffer, position, commit_log, v5),
    }
    if facts["sysFlag"] & 1:
        plain = _body(_decode(buffer, position, v5, decompress=True))
        facts |= {"plainLength": len(plain), "plainSha256": hashlib.sha256(plain).hexdigest()}
    return facts


def queues(store: Any) -> list[dict[str, Any]]:
    """Topic, queue, first and end offset of every queue that holds or held messages."""
    table = store.getConsumeQueueTable()
    found = [
        (str(topic.getKey()), int(queue)) for topic in table.entrySet() for queue in topic.getValue().keySet()
    ]
    bounds: list[dict[str, Any]] = [
        {
            "topic": topic,
            "queue": queue,
            "min": int(store.getMinOffsetInQueue(topic, queue)),
            "max": int(store.getMaxOffsetInQueue(topic, queue)),
        }
        for topic, queue in sorted(found)
    ]
    return [queue for queue in bounds if queue["max"] > 0]


def messages(store: Any, v5: bool, topic: str, queue_id: int) -> list[dict[str, Any]]:
    """Slot, physical offset, size and tags code of what getMessage delivers, from first to last."""
    offset, end = (
        int(store.getMinOffsetInQueue(topic, queue_id)),
        int(store.getMaxOffsetInQueue(topic, queue_id)),
    )
    delivered: list[dict[str, Any]] = []
    while offset < end:
        result = store.getMessage("interop", topic, queue_id, offset, BATCH, None)
        status = str(result.getStatus().name())
        if status != "FOUND":
            raise RuntimeError(f"getMessage {topic}/{queue_id} at {offset}: {status}")
        for selected in result.getMessageMapedList():
            buffer = selected.getByteBuffer()
            delivered.append(
                {
                    "queueOffset": offset,
                    "physicalOffset": int(buffer.getLong(PHYSICAL_OFFSET_AT)),
                    "size": int(selected.getSize()),
                    "tagsCode": _tags_code(buffer, 0, store.getCommitLog(), v5),
                }
            )
            offset += 1
        if offset != int(result.getNextBeginOffset()):
            raise RuntimeError(f"getMessage {topic}/{queue_id} passed over slots before {offset}")
        result.release()
    return delivered


def served(store: Any, topic: str, queue_id: int, wanted: list[list[Any]]) -> list[list[Any]]:
    """Of `wanted` ([slot, physical offset, SHA-256 of the bytes]) what pulls do not deliver: [slot, why].

    Each slot is asked for by a pull that begins there, unless one that began in front has delivered it: that
    went on from slot to slot then, since offset after offset was the one wanted.
    """
    expected = {slot: (offset, digest) for slot, offset, digest in wanted}
    good: set[int] = set()
    bad: list[list[Any]] = []
    for first in sorted(expected):
        if first in good:
            continue
        result = store.getMessage("interop", topic, queue_id, first, BATCH, None)
        why = "no answer" if result is None else str(result.getStatus().name())
        if why == "FOUND":
            slot = first
            for selected in result.getMessageMapedList():
                offset, digest = int(selected.getStartOffset()), _digest(selected)
                if expected.get(slot) != (offset, digest):
                    why = f"FOUND {offset}"
                    break
                good.add(slot)
                slot += 1
            result.release()
        if first not in good:
            bad.append([first, why])
    return bad


def _digest(selected: Any) -> str:
    data = JArray(JByte)(int(selected.getSize()))
    selected.getByteBuffer().get(data)
    return hashlib.sha256(bytes(data)).hexdigest()


def _decode(buffer: Any, position: int, v5: bool, *, decompress: bool) -> Any:
    decoder = JClass("org.apache.rocketmq.common.message.MessageDecoder")
    view = buffer.duplicate()
    view.position(position)
    if v5:  # … not for a client, keeping the properties string, checking the CRC
        return decoder.decode(view, True, decompress, False, True, True)
    return decoder.decode(view, True, decompress)


def _tags_code(buffer: Any, position: int, commit_log: Any, v5: bool) -> int:
    """The tags code that Java's dispatcher would write for the record."""
    view = buffer.duplicate()
    view.position(position)
    flags = (True, False, True) if v5 else (True, True)  # check the CRC, (no duplication info,) read the body
    request = commit_log.checkMessageAndReturnSize(view, *flags)
    if not request.isSuccess():
        raise RuntimeError("Java's own check refuses a record")
    return int(request.getTagsCode())


def _body(message: Any) -> bytes:
    return bytes(message.getBody()) if message.getBody() is not None else b""


def _host(address: Any) -> list[Any]:
    return [str(address.getAddress().getHostAddress()), int(address.getPort())]
