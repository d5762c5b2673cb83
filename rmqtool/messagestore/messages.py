"""What goes into a message store and what comes out: the types of its public API."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from formats.batch import inner_messages
from formats.commitlog import FLAT_HEADERS, MESSAGE_MAGIC_CODE_V2, SysFlag, is_v6
from formats.errors import FormatError
from formats.java import java_utf8_decode
from formats.message_id import OffsetIdV4, OffsetIdV6
from formats.primitives import host_text
from formats.properties import KEYS, TAGS, UNIQ_KEY, decode, split_keys
from rmqtool.errors import UnreadableError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from rmqtool.broker.get_message import GetMessageStatus

Host = tuple[bytes, int]
"""4 or 16 bytes of an address, and the port"""
_V4 = 4
_CLASSIC, _WIDE = 1, 2
"""bytes of a topic's length in records V1 and V2"""
_MAGIC_V2 = MESSAGE_MAGIC_CODE_V2.to_bytes(4, "big", signed=True)
_WIDE_HOSTS = int(SysFlag.BORNHOST_V6 | SysFlag.STOREHOST_V6)
_INNER = int(SysFlag.INNER_BATCH | SysFlag.NEED_UNWRAP)
_HEADER_SIZES = {
    flags: FLAT_HEADERS[is_v6(flags)].size
    for flags in (0, int(SysFlag.BORNHOST_V6), int(SysFlag.STOREHOST_V6), _WIDE_HOSTS)
}


class PutStatus(StrEnum):
    """`PutMessageStatus`, as far as a store alone answers it."""

    PUT_OK = "PUT_OK"
    FLUSH_DISK_TIMEOUT = "FLUSH_DISK_TIMEOUT"
    """stored and dispatched, but not known to be on the medium"""
    FLUSH_SLAVE_TIMEOUT = "FLUSH_SLAVE_TIMEOUT"
    """stored and dispatched, but fewer slaves than are asked for have it"""
    SLAVE_NOT_AVAILABLE = "SLAVE_NOT_AVAILABLE"
    """stored and dispatched, but no slave is near enough; before 5.0"""
    SERVICE_NOT_AVAILABLE = "SERVICE_NOT_AVAILABLE"
    CREATE_MAPPED_FILE_FAILED = "CREATE_MAPPED_FILE_FAILED"
    OS_PAGE_CACHE_BUSY = "OS_PAGE_CACHE_BUSY"
    """a put under way has held the log longer than `osPageCacheBusyTimeOutMills`"""
    MESSAGE_ILLEGAL = "MESSAGE_ILLEGAL"
    PROPERTIES_SIZE_EXCEEDED = "PROPERTIES_SIZE_EXCEEDED"
    UNKNOWN_ERROR = "UNKNOWN_ERROR"
    """the system refused to write; nothing was stored"""


class IllegalMessageError(Exception):
    """A message that no store takes; `status` is what a put answers."""

    def __init__(self, status: PutStatus, why: str) -> None:
        super().__init__(why)
        self.status = status


@dataclass(slots=True)
class Message:
    """A message to store.

    queue_id: None takes the topic's write queues in turn. keys: go into the index; one with spaces is
    several there (`Message#setKeys`).
    uniq_key: the client's id, made when None. flag: the application's, 32 bits. properties: further ones, by
    name; `DELAY` and its kin are stored as they are. born_timestamp: ms, the time of the put when None.
    born_host: address (4 or 16 bytes) and port, the store's own when None.
    """

    topic: str
    body: bytes
    queue_id: int | None = field(default=None, kw_only=True)
    tags: str | None = field(default=None, kw_only=True)
    keys: Sequence[str] = field(default=(), kw_only=True)
    uniq_key: str | None = field(default=None, kw_only=True)
    flag: int = field(default=0, kw_only=True)
    properties: Mapping[str, str] | None = field(default=None, kw_only=True)
    born_timestamp: int | None = field(default=None, kw_only=True)
    born_host: Host | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class AppendContext:
    """What a store fills in by itself, given instead: for replaying records as they were stored.

    store_timestamp: ms. properties: the stored bytes, in place of what the message says. queue_offset: the
    queue goes on behind it. Times of None are the clock's, hosts of None the store's, a queue offset of None
    is the next one.
    """

    store_timestamp: int | None = None
    store_host: Host | None = None
    sys_flag: int = 0
    reconsume_times: int = 0
    prepared_transaction_offset: int = 0
    properties: bytes | None = None
    queue_offset: int | None = None


def offset_id(store_host: Host, physical_offset: int) -> str:
    """The id that names host and physical offset (`MessageDecoder#createMessageId`)."""
    ip, port = store_host
    schema = OffsetIdV4 if len(ip) == _V4 else OffsetIdV6
    return schema.build({"host": {"ip": ip, "port": port}, "offset": physical_offset}).hex().upper()


class Ack(NamedTuple):
    """Answer to a put. Without PUT_OK or FLUSH_DISK_TIMEOUT nothing was stored, and offsets are -1.

    message: why, for other statuses than PUT_OK.
    """

    status: PutStatus
    topic: str
    queue_id: int
    queue_offset: int
    physical_offset: int
    uniq_key: str | None
    store_host: Host
    message: str = ""

    @property
    def offset_msg_id(self) -> str | None:
        """The id that names host and physical offset."""
        if self.physical_offset < 0:
            return None
        return offset_id(self.store_host, self.physical_offset)


class StoredMessage:
    """A message as it lies in the log: `raw` is its record, everything else is read from that when asked for.

    body: as stored, compressed where `sys_flag` says so. Times are ms.
    """

    def __init__(self, raw: bytes) -> None:
        self.raw = raw

    def __repr__(self) -> str:
        place = f"{self.topic!r}, {self.queue_id}, {self.queue_offset}"
        return f"StoredMessage({place}, {self.header['body_length']} bytes)"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StoredMessage) and self.raw == other.raw

    def __hash__(self) -> int:
        return hash(self.raw)

    @cached_property
    def header(self) -> dict[str, Any]:
        """The fixed fields by name; hosts as `born_host.ip` and `born_host.port`."""
        flags = int.from_bytes(self.raw[36:40], "big")
        return FLAT_HEADERS[is_v6(flags)].unpack(self.raw)

    def _span_of_body(self) -> tuple[int, int]:
        """Where the body begins and ends; its length stands in front of it."""
        at = _HEADER_SIZES[int.from_bytes(self.raw[36:40], "big") & _WIDE_HOSTS]
        return at, at + max(int.from_bytes(self.raw[at - 4 : at], "big", signed=True), 0)

    def _texts(self) -> tuple[bytes, bytes]:
        """Topic and properties."""
        at = self._span_of_body()[1]
        wide = _WIDE if self.raw[4:8] == _MAGIC_V2 else _CLASSIC
        end = at + wide + int.from_bytes(self.raw[at : at + wide], "big")
        return self.raw[at + wide : end], self.raw[end + 2 :]

    @property
    def queue_id(self) -> int:
        """Number of the queue."""
        return int(self.header["queue_id"])

    @property
    def queue_offset(self) -> int:
        """Its number in the queue."""
        return int(self.header["queue_offset"])

    @property
    def physical_offset(self) -> int:
        """Where its record begins in the log, bytes."""
        return int(self.header["physical_offset"])

    @property
    def flag(self) -> int:
        """The application's."""
        return int(self.header["flag"])

    @property
    def sys_flag(self) -> int:
        """`formats.commitlog.SysFlag`."""
        return int(self.header["sys_flag"])

    @property
    def store_timestamp(self) -> int:
        """When it was stored."""
        return int(self.header["store_timestamp"])

    @property
    def born_timestamp(self) -> int:
        """When it was sent."""
        return int(self.header["born_timestamp"])

    @property
    def reconsume_times(self) -> int:
        """How often it was given back."""
        return int(self.header["reconsume_times"])

    @property
    def born_host(self) -> str:
        """Where it came from, `address:port`."""
        return host_text(self.header["born_host.ip"], self.header["born_host.port"])

    @property
    def store_host(self) -> str:
        """Who stored it, `address:port`."""
        return host_text(self.header["store_host.ip"], self.header["store_host.port"])

    @cached_property
    def body(self) -> bytes:
        """The stored bytes."""
        begin, end = self._span_of_body()
        return self.raw[begin:end]

    @cached_property
    def topic(self) -> str:
        """Its topic."""
        return java_utf8_decode(self._texts()[0])[0]

    @cached_property
    def properties(self) -> dict[str, str]:
        """All of them, as Java decodes them."""
        return decode(self._texts()[1])

    @property
    def tags(self) -> str | None:
        """`TAGS`."""
        return self.properties.get(TAGS)

    @property
    def keys(self) -> list[str]:
        """Elements of `KEYS`."""
        return split_keys(self.properties.get(KEYS, ""))

    @property
    def uniq_key(self) -> str | None:
        """`UNIQ_KEY`."""
        return self.properties.get(UNIQ_KEY)

    def plain_body(self) -> bytes:
        """The body as its producer sent it. Raises `UnreadableError` for one that does not decompress."""
        from rmqtool.scan.bodies import BodyError, decompress

        try:
            return decompress(self.body, self.sys_flag)
        except BodyError as error:
            raise self._unreadable(str(error)) from error

    def inner_messages(self) -> list[InnerBatchMessage]:
        """The messages of an inner batch, none of another record (`MessageDecoder#decodeMessage`).

        Raises `UnreadableError` for a body that is not such a batch.
        """
        if not self.sys_flag & _INNER:
            return []
        try:
            return [
                InnerBatchMessage(
                    one.queue_offset,
                    bytes(one.message.body),
                    int(one.message.flag),
                    decode(one.message.properties),
                )
                for one in inner_messages(self.plain_body(), self.queue_offset)
            ]
        except FormatError as error:
            raise self._unreadable(f"no inner batch: {error}") from error

    def _unreadable(self, reason: str) -> UnreadableError:
        return UnreadableError("commit log", self.physical_offset, len(self.raw), reason)

    def has_key(self, topic: str, key: str) -> bool:
        """Whether it is of that topic and has the key, as an element of `KEYS` or as `UNIQ_KEY`."""
        own, raw = self._texts()
        if java_utf8_decode(own)[0] != topic:
            return False
        properties = decode(raw)
        return key == properties.get(UNIQ_KEY) or key in split_keys(properties.get(KEYS, ""))


class InnerBatchMessage(NamedTuple):
    """A message of an inner batch; its topic, queue and times are those of the batch."""

    queue_offset: int
    body: bytes
    flag: int
    properties: dict[str, str]


class GetResult(NamedTuple):
    """Answer to a get.

    next_begin_offset: where to go on. min_offset, max_offset: of the queue; max is the offset of the next
    message.
    """

    status: GetMessageStatus
    messages: list[StoredMessage]
    next_begin_offset: int
    min_offset: int
    max_offset: int
    suggest_pulling_from_slave: bool


class RawResult(NamedTuple):
    """As `GetResult`, with the records as they lie in the mapping, nothing copied."""

    status: GetMessageStatus
    records: list[memoryview]
    next_begin_offset: int
    min_offset: int
    max_offset: int
    suggest_pulling_from_slave: bool
