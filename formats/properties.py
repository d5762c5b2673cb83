"""Message properties: `name 0x01 value 0x02`, repeated. docs/format/properties.md.

Three views of the same bytes: `decode` gives what Java makes of them
(`MessageDecoder#string2messageProperties`), `decode_pairs` every segment, so that nothing is lost, and
`encode` writes new ones (`MessageDecoder#messageProperties2String`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import construct as cs

from formats.java import java_split, java_utf8_decode, java_utf8_encode
from formats.primitives import Schema

NAME_SEPARATOR = 0x01
PROPERTY_SEPARATOR = 0x02
_NAME = bytes([NAME_SEPARATOR])
_END = bytes([PROPERTY_SEPARATOR])

KEYS = "KEYS"
TAGS = "TAGS"
UNIQ_KEY = "UNIQ_KEY"
WAIT = "WAIT"
DELAY = "DELAY"
CLUSTER = "CLUSTER"
MSG_REGION = "MSG_REGION"
TRACE_ON = "TRACE_ON"
SHARDING_KEY = "__SHARDINGKEY"
RETRY_TOPIC = "RETRY_TOPIC"
REAL_TOPIC = "REAL_TOPIC"
REAL_QID = "REAL_QID"
ORIGIN_MESSAGE_ID = "ORIGIN_MESSAGE_ID"
DLQ_ORIGIN_TOPIC = "DLQ_ORIGIN_TOPIC"
DLQ_ORIGIN_MESSAGE_ID = "DLQ_ORIGIN_MESSAGE_ID"
TRAN_MSG = "TRAN_MSG"
PRODUCER_GROUP = "PGROUP"
TRANSACTION_ID = "__transactionId__"
INNER_NUM = "INNER_NUM"
INNER_BASE = "INNER_BASE"
DUP_INFO = "DUP_INFO"
INNER_MULTI_DISPATCH = "INNER_MULTI_DISPATCH"
INNER_MULTI_QUEUE_OFFSET = "INNER_MULTI_QUEUE_OFFSET"
INNER_PREFIX = "INNER_"
"""prefix of the properties of inner batches, and of messages that feed further queues"""
POP_CK = "POP_CK"
TIMER_OUT_MS = "TIMER_OUT_MS"
TIMER_DELAY_MS = "TIMER_DELAY_MS"
TIMER_DELAY_SEC = "TIMER_DELAY_SEC"
TIMER_DELIVER_MS = "TIMER_DELIVER_MS"
TIMER_DEL_UNIQKEY = "TIMER_DEL_UNIQKEY"
TRANSACTION_CHECK_TIMES = "TRANSACTION_CHECK_TIMES"
TRAN_PREPARED_QUEUE_OFFSET = "TRAN_PREPARED_QUEUE_OFFSET"
CHECK_IMMUNITY_TIME_IN_SECONDS = "CHECK_IMMUNITY_TIME_IN_SECONDS"
CRC32 = "__CRC32#"


class Segment(NamedTuple):
    """The bytes up to the next 0x02 (not included) or the end, and whether a 0x02 ended them."""

    raw: bytes
    terminated: bool = True

    @property
    def is_pair(self) -> bool:
        """Whether Java takes a property from it: a name and a value, neither of them empty."""
        return 0 < self.raw.find(_NAME) < len(self.raw) - 1

    @property
    def name(self) -> str | None:
        """The decoded name, None when this is not a pair."""
        return java_utf8_decode(self.raw.partition(_NAME)[0])[0] if self.is_pair else None

    @property
    def value(self) -> str | None:
        """The decoded value, None when this is not a pair. Only the first 0x01 splits."""
        return java_utf8_decode(self.raw.partition(_NAME)[2])[0] if self.is_pair else None


def decode_pairs(raw: bytes) -> list[Segment]:
    """Every segment of the stored bytes, pair or not, in order; `encode_segments` is the way back."""
    parts = bytes(raw).split(_END)
    segments = [Segment(part) for part in parts[:-1]]
    if parts[-1]:
        segments.append(Segment(parts[-1], terminated=False))
    return segments


def encode_segments(segments: Iterable[Segment]) -> bytes:
    """The inverse of `decode_pairs`."""
    return b"".join(raw + _END if terminated else raw for raw, terminated in segments)


def decode(raw: bytes) -> dict[str, str]:
    """The properties that Java 4.9.8 and 5.3.3 find, in order of first appearance.

    The last value of a name wins. Segments without name or without value are skipped. Ill-formed UTF-8
    becomes U+FFFD as in Java. Splitting before decoding is the same as Java's order, because a separator is
    never swallowed by an ill-formed sequence.
    """
    raw = bytes(raw)
    if raw.isascii():
        pairs = [part.partition("\x01") for part in raw.decode().split("\x02")]
        return {name: value for name, _, value in pairs if name and value}
    found: dict[str, str] = {}
    for part in raw.split(_END):
        name, separator, value = part.partition(_NAME)
        if name and separator and value:
            found[java_utf8_decode(name)[0]] = java_utf8_decode(value)[0]
    return found


def decode_by_split(raw: bytes) -> dict[str, str]:
    """The properties that Java up to 4.9.0 finds, by splitting instead of searching.

    A segment counts when `String#split` at 0x01 gives two parts: a value with another 0x01 in it is dropped,
    one that only ends in it loses it, and an empty name is kept.
    """
    found: dict[str, str] = {}
    for part in java_utf8_decode(bytes(raw))[0].split(chr(PROPERTY_SEPARATOR)):
        pair = java_split(part, chr(NAME_SEPARATOR))
        if len(pair) == 2:
            found[pair[0]] = pair[1]
    return found


def encode(
    pairs: Mapping[str, str | None] | Iterable[tuple[str, str | None]], trailing_separator: bool
) -> bytes:
    """The stored form of properties, in the given order; None values are left out.

    `trailing_separator`: whether the last pair is ended by 0x02. Releases up to 4.9.0 and from 5.2.0 on do
    so, those between do not.
    """
    items: Iterable[tuple[str, str | None]] = pairs.items() if isinstance(pairs, Mapping) else pairs
    raw = b"".join(
        java_utf8_encode(name) + _NAME + java_utf8_encode(value) + _END
        for name, value in items
        if value is not None
    )
    return raw if trailing_separator else raw[:-1]


def is_lossless(raw: bytes) -> bool:
    """Whether `decode` keeps everything, so that `encode` can give the same bytes again."""
    pairs = decode(raw)
    return encode(pairs, trailing_separator=raw.endswith(_END)) == raw


def without(raw: bytes, name: str) -> bytes:
    """The stored bytes less every segment of that name (`MessageUtils#deleteProperty`)."""
    prefix = java_utf8_encode(name) + _NAME
    return encode_segments(s for s in decode_pairs(raw) if not s.raw.startswith(prefix))


def split_keys(keys: str) -> list[str]:
    """The keys in a `KEYS` value as they are indexed: split at spaces, no empty ones, repeats kept."""
    return [key for key in java_split(keys, " ") if key]


Properties = Schema(
    cs.ExprAdapter(
        cs.GreedyBytes, lambda raw, _: decode_pairs(raw), lambda segments, _: encode_segments(segments)
    )
)
"""The properties field as a list of `Segment`; takes all bytes that it is given."""
