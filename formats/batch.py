"""Client batch encoding: the body of a batch send request, and of an inner batch record.

One message follows the other without a count; see docs/format/batch.md. Sources:
`MessageDecoder#encodeMessage`, `#decodeMessages`.
"""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, NamedTuple

import construct as cs

from formats.errors import FormatError
from formats.primitives import Schema, sizeof

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from formats.primitives import Container

ClientMessage = Schema(
    cs.Struct(
        "total_size" / cs.Int32sb,
        "magic" / cs.Int32sb,
        "body_crc" / cs.Int32sb,
        "flag" / cs.Int32sb,
        "body_length" / cs.Int32sb,
        "body" / cs.Bytes(cs.this.body_length),
        "properties_length" / cs.Int16sb,
        "properties" / cs.Bytes(cs.this.properties_length),
    )
)
"""One message of a batch. As in Java the total size, the magic and the CRC are neither used nor checked."""

CLIENT_MESSAGE_OVERHEAD = 5 * sizeof(cs.Int32sb) + sizeof(cs.Int16sb)

ClientMessages = Schema(cs.FocusedSeq("messages", "messages" / cs.GreedyRange(ClientMessage), cs.Terminated))
"""A whole body: the list of its messages, which have to fill it."""


class InnerMessage(NamedTuple):
    """A message out of an inner batch record: its place in the body, its queue offset, its fields."""

    number: int
    position: int
    queue_offset: int
    message: Container


def encode_client_message(body: bytes, properties: bytes = b"", flag: int = 0) -> bytes:
    """One message as a client puts it into a batch; magic and CRC are 0."""
    return ClientMessage.build(
        {
            "total_size": CLIENT_MESSAGE_OVERHEAD + len(body) + len(properties),
            "magic": 0,
            "body_crc": 0,
            "flag": flag,
            "body_length": len(body),
            "body": body,
            "properties_length": len(properties),
            "properties": properties,
        }
    )


def encode_batch(messages: Iterable[tuple[bytes, bytes, int]]) -> bytes:
    """The body of a batch of (body, properties, flag)."""
    return b"".join(encode_client_message(*message) for message in messages)


def inner_messages(body: bytes, base_queue_offset: int = 0) -> Iterator[InnerMessage]:
    """The messages in a (decompressed) batch body, one after the other.

    `base_queue_offset` is the queue offset of the record. Raises FormatError with the number of the message
    that cannot be read, after those in front of it were handed out.
    """
    stream = BytesIO(body)
    number = 0
    while (position := stream.tell()) < len(body):
        try:
            message = ClientMessage.parse_stream(stream)
        except FormatError as error:
            raise error.under(f"messages.{number}") from error
        yield InnerMessage(number, position, base_queue_offset + number, message)
        number += 1


def join_properties(own: bytes, batch: bytes) -> bytes:
    """The stored properties of a message of a classic batch: its own, then those of the batch.

    One 0x02 goes between them when both are there and the own ones do not end in it
    (`MessageExtEncoder#encode(MessageExtBatch)`).
    """
    separator = b"\x02" if own and batch and not own.endswith(b"\x02") else b""
    return own + separator + batch
