"""One record in full: its fields with their places, its text, its columns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from formats.commitlog import MESSAGE_MAGIC_CODES, TOPIC_LENGTH, Blank, Message
from formats.java import java_utf8_decode
from formats.properties import KEYS, UNIQ_KEY, Segment, decode, decode_pairs, split_keys
from formats.spans import Span, spans
from rmqtool.query.locate import What
from rmqtool.scan.events import Records
from rmqtool.scan.table import to_batch

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from formats.errors import FormatError
    from formats.primitives import Parsed
    from rmqtool.query.locate import Place

_CONTEXT = 64
"""bytes of a damaged record that are shown behind the last field that makes sense"""


@dataclass(frozen=True)
class PropertyPart:
    """One segment of the properties: `start` counts from the first byte of the record, separator included."""

    start: int
    length: int
    segment: Segment


@dataclass(frozen=True)
class OneRecord:
    """A record, or what makes sense of a damaged one.

    raw: its bytes (of a damaged one the part that was read as fields and a little more). fields: name, place
    and value of every field that could be read. error: what is wrong with the frame, None for a sound one.
    """

    place: Place
    raw: bytes
    fields: tuple[Span, ...]
    error: FormatError | None

    @property
    def physical_offset(self) -> int:
        """Where it begins."""
        return self.place.physical_offset - self.place.position + self.place.start

    @property
    def whole(self) -> bool:
        """Is the frame sound?"""
        return self.error is None

    @cached_property
    def values(self) -> dict[str, Parsed]:
        """Field → value."""
        return {span.name: span.value for span in self.fields}

    @cached_property
    def topic(self) -> str:
        """The topic as Java reads it, "" when it was not reached."""
        return java_utf8_decode(bytes(self.values.get("topic", b"")))[0]

    @cached_property
    def properties(self) -> dict[str, str]:
        """As Java decodes them."""
        return decode(bytes(self.values.get("properties", b"")))

    @property
    def indexed_keys(self) -> list[tuple[str, str]]:
        """(property, key) for each distinct key that the broker puts into the index."""
        keys = [(KEYS, key) for key in dict.fromkeys(split_keys(self.properties.get(KEYS, "")))]
        uniq_key = self.properties.get(UNIQ_KEY)
        return keys if uniq_key is None else [(UNIQ_KEY, uniq_key), *keys]

    def property_parts(self) -> list[PropertyPart]:
        """The segments of the properties field, each with its separator."""
        span = next((one for one in self.fields if one.name == "properties"), None)
        parts: list[PropertyPart] = []
        at = 0 if span is None else span.start
        for segment in [] if span is None else decode_pairs(bytes(span.value)):
            length = len(segment.raw) + segment.terminated
            parts.append(PropertyPart(at, length, segment))
            at += length
        return parts

    def batch(self, columns: Sequence[str]) -> pa.RecordBatch:
        """The record as a batch of one row of the record table; only for a whole one."""
        segment, row = self.place.segment, self.place.row
        if segment is None or row is None:
            raise ValueError("there is no record")
        from rmqtool.scan import kernels_python

        window = np.frombuffer(self.place.raw, np.uint8)
        records = Records(np.array([row], np.int64), window, self.place.start)
        path = segment.file.display_path
        return to_batch(records, base=segment.base, path=path, kernels=kernels_python, columns=columns)


def read_record(place: Place) -> OneRecord:
    """The record (or damaged record, or blank) at a place. Raises `StoreIOError` or `UnreadableError`."""
    raw = place.raw
    if not place.is_record and place.segment is not None:
        with place.segment.open("pread") as source:
            raw = source.window(place.start, place.length).tobytes()
    schema = Blank if place.what is What.BLANK else Message
    fields, error = spans(schema, raw)
    if place.what is What.DAMAGED:
        fields = _sensible(fields)
        raw = raw[: (fields[-1].end if fields else 0) + _CONTEXT]
    elif place.what is What.BLANK:
        raw = raw[: fields[-1].end] if fields else raw[:_CONTEXT]
    return OneRecord(place, raw, tuple(fields), error)


def _sensible(fields: list[Span]) -> list[Span]:
    """Fields in front of the first one that cannot be right where later ones depend on it."""
    names = [span.name for span in fields]
    if "magic" in names and fields[names.index("magic")].value not in MESSAGE_MAGIC_CODES:
        return fields
    return [span for span in fields if span.name != "body" or len(span.value) == span.end - span.start]


MAGIC_NAMES = dict(zip(TOPIC_LENGTH, ("V1", "V2"), strict=True))
