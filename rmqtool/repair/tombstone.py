"""A tombstone: a well-formed record in place of a damaged one, of exactly the same length.

Topic, queue, queue offset and physical offset stay as they were, so that every position of the queue keeps
its meaning; what is lost is one message. In the topics that the broker itself reads (delay levels, timer,
half and op messages, pop check points) it has the form that those services pass over; see
docs/recover-tombstones.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from formats import commitlog, crc_trailer
from formats import properties as props
from formats.commitlog import SysFlag
from formats.java import java_utf8_encode
from rmqtool.repair.tombstone_forms import forms

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rmqtool.repair.place import Place
    from rmqtool.repair.tombstone_forms import Form


@dataclass(frozen=True, slots=True)
class _Fitted:
    """A form with its stored properties, and the bytes that the record has without a body."""

    form: Form
    properties: bytes
    fixed: int

    @property
    def least(self) -> int:
        """The smallest record of this form."""
        return self.fixed + self.form.least_body


def tombstone(
    place: Place,
    length: int,
    plan_id: str,
    *,
    kept: bytes | Mapping[str, str] | None = None,
    crc_trailer: bool = False,
) -> bytes | None:
    """The record of `length` bytes for a place, None when the length is too small for any form.

    kept, as bytes: the intact properties of the damaged record, as stored. They come back byte for byte,
    except where the topic asks for something else, and are given up where they do not fit. As a mapping:
    pairs that the tombstone has to carry. Without whole properties it carries `RMQTOOL_TOMBSTONE=<plan_id>`
    where that fits, and the same name as its tag. The rest of the length is body, which says the same.

    crc_trailer: it ends in a `__CRC32#` property, as the store's other records do. The same arguments give
    the same bytes. Raises `FormatError` for a topic that has no room in its length field.
    """
    for fitted in _fitted(place, plan_id, kept, crc_trailer):
        body = length - fitted.fixed
        if body >= fitted.form.least_body:
            return _record(place, fitted, body, crc_trailer)
    return None


LONGEST_TIME = -(1 << 63)
"""a store timestamp (ms) for `smallest` while it is not known: some tombstones have it in their properties"""


def smallest(place: Place, *, kept: Mapping[str, str] | None = None, crc_trailer: bool = False) -> int:
    """The least length for which `tombstone` has a record for this place, with the pairs in `kept` in it."""
    return min(fitted.least for fitted in _fitted(place, "", kept, crc_trailer))


def _fitted(
    place: Place, plan_id: str, kept: bytes | Mapping[str, str] | None, trailer: bool
) -> Iterator[_Fitted]:
    topic = java_utf8_encode(place.topic)
    magic = _magic(place)
    hosts = _host_flags(place)
    for form in forms(place, plan_id, kept):
        for properties in _endings(form.properties, trailer):
            if len(properties) <= commitlog.MAX_PROPERTIES_LENGTH:
                fixed = commitlog.record_size(magic, hosts, 0, len(topic), len(properties))
                yield _Fitted(form, properties, fixed)


def _endings(properties: bytes, trailer: bool) -> tuple[bytes, ...]:
    """The properties as they are stored, and without the last separator, which no reader needs."""
    if trailer:
        return (crc_trailer.reserve(properties),)
    if properties.endswith(bytes([props.PROPERTY_SEPARATOR])):
        return properties, properties[:-1]
    return (properties,)


def _record(place: Place, fitted: _Fitted, body_length: int, trailer: bool) -> bytes:
    form = fitted.form
    born = place.store_timestamp if place.born_timestamp is None else place.born_timestamp
    properties = fitted.properties[: -crc_trailer.TRAILER_SIZE] if trailer else fitted.properties
    return commitlog.encode_message(
        place.topic,
        form.body(body_length),
        properties,
        magic=_magic(place),
        crc_trailer=trailer,
        queue_id=place.queue_id,
        flag=place.flag,
        queue_offset=place.queue_offset,
        physical_offset=place.physical_offset,
        sys_flag=_kept_flags(place) | form.sys_flag,
        born_timestamp=born if form.born_timestamp is None else form.born_timestamp,
        born_host=place.born_host,
        store_timestamp=place.store_timestamp,
        store_host=place.store_host,
        reconsume_times=place.reconsume_times,
        prepared_transaction_offset=place.prepared_transaction_offset,
    )


def _magic(place: Place) -> int:
    return commitlog.magic_of(place.topic) if place.magic is None else place.magic


def _kept_flags(place: Place) -> int:
    """COMMIT, or no transaction: no other type has a position in the queue. The body is new, and plain."""
    committed = commitlog.transaction_of(place.sys_flag) == "commit"
    return place.sys_flag & int(SysFlag.MULTI_TAGS) | (int(SysFlag.COMMIT) if committed else 0)


def _host_flags(place: Place) -> int:
    flags = int(SysFlag.BORNHOST_V6) if len(place.born_host[0]) == commitlog.IPV6_LENGTH else 0
    return flags | (int(SysFlag.STOREHOST_V6) if len(place.store_host[0]) == commitlog.IPV6_LENGTH else 0)
