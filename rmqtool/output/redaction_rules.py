"""What may stand in the parts of a record: the tables behind `--redact`, stated in docs/guide.md.

Property and topic names are those of `MessageConst` and `TopicValidator`; the form of trace bodies is that of
`TraceDataEncoder`.
"""

from __future__ import annotations

import re
from functools import lru_cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final

from formats.commitlog import SysFlag
from formats.properties import CRC32
from formats.system_topics import (
    CHECK_MAX_TOPIC,
    HALF_TOPIC,
    SYSTEM_TOPIC_PREFIX,
    SYSTEM_TOPIC_SET,
    TIMER_TOPIC,
)
from formats.tags_code import SCHEDULE_TOPIC

if TYPE_CHECKING:
    from collections.abc import Iterator

NUMBERS: Final = frozenset(
    {
        "WAIT",
        "DELAY",
        "TRAN_MSG",
        "TRACE_ON",
        "TTL",
        "REAL_QID",
        "RECONSUME_TIME",
        "MAX_RECONSUME_TIMES",
        "MIN_OFFSET",
        "MAX_OFFSET",
        "TRAN_PREPARED_QUEUE_OFFSET",
        "TRANSACTION_CHECK_TIMES",
        "CHECK_IMMUNITY_TIME_IN_SECONDS",
        "CONSUME_START_TIME",
        "ARRIVE_TIME",
        "PUSH_REPLY_TIME",
        "BORN_TIMESTAMP",
        "INNER_NUM",
        "INNER_BASE",
        "POP_CK_OFFSET",
        "1ST_POP_TIME",
        "PROPERTY_FORWARD_QUEUE_ID",
        "TIMER_DELAY_SEC",
        "TIMER_DELAY_MS",
        "TIMER_DELIVER_MS",
        "TIMER_OUT_MS",
        "TIMER_ENQUEUE_MS",
        "TIMER_DEQUEUE_MS",
        "TIMER_ROLL_TIMES",
        "TIMER_DELAY_LEVEL",
    }
)
"""properties that are numbers or switches and say nothing about who or what; nothing hides them"""

_NUMBER = re.compile(r"-?[0-9]{1,20}|true|false", re.IGNORECASE)

NAMES: Final = NUMBERS | frozenset(
    {
        "KEYS",
        "TAGS",
        "UNIQ_KEY",
        "BUYER_ID",
        "INSTANCE_ID",
        "CORRELATION_ID",
        "REPLY_TO_CLIENT",
        "__SHARDINGKEY",
        "EXTEND_UNIQ_INFO",
        "ORIGIN_MESSAGE_ID",
        "DLQ_ORIGIN_TOPIC",
        "DLQ_ORIGIN_MESSAGE_ID",
        "RETRY_TOPIC",
        "REAL_TOPIC",
        "CLUSTER",
        "MSG_REGION",
        "TRACE_CONTEXT",
        "MSG_TYPE",
        "__BORNHOST",
        "PGROUP",
        "__transactionId__",
        "DUP_INFO",
        "INNER_MULTI_DISPATCH",
        "INNER_MULTI_QUEUE_OFFSET",
        "POP_CK",
        "REDIRECT",
        "TIMER_DEL_UNIQKEY",
        "__CRC32#",
        "TRANSFER_FLAG",
        "CORRECTION_FLAG",
        "MQ2_FLAG",
    }
)
"""names that are RocketMQ's own; other names are the user's and hidden with the properties"""

DIGEST: Final = CRC32
"""a CRC of the whole record: short hidden parts can be tried out against it, so anything hidden hides it"""

_HOST_NAME = re.compile(
    "HOST|ADDR|SERVER|CLIENT|INSTANCE|ENDPOINT|BROKER|UNIQ|MESSAGE_?ID|MSG_?ID|TRANSACTION_?ID|POP_CK$"
    "|TRACE_CONTEXT|DUP_INFO|(^|_)IP(_|$)",
    re.IGNORECASE,
)
_KEY_NAME = re.compile(r"KEY|UNIQ|ID(_|$)|DUP_INFO", re.IGNORECASE)

_HOST_TEXT = re.compile(
    rb"[0-9]{1,3}(?:\.[0-9]{1,3}){3}"  # IPv4
    rb"|::[0-9a-f]|[0-9a-f]::|(?:[0-9a-f]{1,4}:){7}"  # IPv6
    rb"|[a-z][0-9-]{0,9}:[0-9]{3,5}(?![0-9])"  # name:port
    rb"|[a-z0-9]@[0-9]"  # client id, address@pid
    rb"|localhost"
    rb"|[0-9a-f]{32}"  # offset message ids and unique client ids, 32 or 56 digits
)
"""in lower case"""

_TRACE = re.compile(rb"(?:Pub|SubBefore|SubAfter|EndTransaction|Recall)\x01")

_USERS = frozenset({SCHEDULE_TOPIC, HALF_TOPIC, CHECK_MAX_TOPIC, TIMER_TOPIC})
"""internal topics whose bodies are those of users"""
_INTERNAL = SYSTEM_TOPIC_SET - _USERS

_WRAPPED = int(SysFlag.INNER_BATCH | SysFlag.NEED_UNWRAP)


def is_number(name: str, value: str) -> bool:
    """A property that is safe by its name, and has the form that belongs to it."""
    return name in NUMBERS and _NUMBER.fullmatch(value) is not None


def names_a_host(name: str) -> bool:
    """Does a property of this name hold an address, or an id that is made of one?"""
    return _HOST_NAME.search(name) is not None


def names_a_key(name: str) -> bool:
    """Does a property of this name hold a key or an id?"""
    return _KEY_NAME.search(name) is not None


def holds_host_text(lowered: bytes) -> bool:
    """Does an address, a client id or a message id stand in these bytes, which are in lower case?"""
    return _HOST_TEXT.search(lowered) is not None


def is_composed(topic: str | None, sys_flag: int, body: bytes | None) -> bool:
    """Does RocketMQ, not the user, make such a body: out of keys, properties, ids and hosts?

    Batches, traces (also under a topic of the user's choice) and bodies of internal topics. body: plain, None
    where it is not at hand.
    """
    prefixed = (topic or "").lower().startswith(SYSTEM_TOPIC_PREFIX)
    internal = topic in _INTERNAL or (prefixed and topic not in _USERS)
    return bool(sys_flag & _WRAPPED) or internal or (body is not None and _TRACE.match(body) is not None)


@lru_cache(maxsize=4096)
def host_forms(host: str) -> tuple[bytes, ...]:
    """How the address of an `ip:port` is written: as text and as hex, in lower case."""
    address = ip_address(host.rpartition(":")[0].strip("[]"))
    return str(address).encode(), address.exploded.encode(), address.packed.hex().encode()


@lru_cache(maxsize=4096)
def packed(host: str) -> bytes:
    """The bytes of the address of an `ip:port`."""
    return ip_address(host.rpartition(":")[0].strip("[]")).packed


def key_forms(key: str) -> Iterator[bytes]:
    """How a key is written in a text: in UTF-8 and in GBK, ASCII in lower case."""
    yield key.encode("utf-8", "surrogatepass").lower()
    if not key.isascii():
        try:
            yield key.encode("gbk").lower()
        except UnicodeEncodeError:
            return
