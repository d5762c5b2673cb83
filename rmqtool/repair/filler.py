"""Fillers: well-formed records without a queue position, for ranges of the log whose messages are unknown.

A record of transaction type ROLLBACK is in no queue and in no index (`DefaultMessageStore.
CommitLogDispatcherBuildConsumeQueue`, `IndexService#buildIndex`), so it may stand anywhere.
"""

from __future__ import annotations

from formats.commitlog import MESSAGE_MAGIC_CODE, SysFlag, encode_message, record_size
from formats.crc_trailer import TRAILER_SIZE
from rmqtool.repair.tombstone_forms import MARK

SMALLEST_FILLER = record_size(MESSAGE_MAGIC_CODE, 0, 0, 0, 0)
"""The smallest record at all: no topic, no body, no properties."""

LARGEST_FILLER = 4 << 20
"""A broker reads a record into memory as a whole; this is the largest body that it takes by default."""


def filler(
    length: int, physical_offset: int, store_timestamp: int, *, crc_trailer: bool = False
) -> bytes | None:
    """A filler of `length` bytes for this offset and time (epoch ms); None when that is too short.

    Its topic is the tombstones' mark, or as much of that as fits. The rest is body, spaces. `crc_trailer`: it
    ends in a `__CRC32#` property, 20 bytes more.
    """
    room = length - SMALLEST_FILLER - (TRAILER_SIZE if crc_trailer else 0)
    if room < 0:
        return None
    topic = MARK[:room]
    return encode_message(
        topic,
        b" " * (room - len(topic)),
        magic=MESSAGE_MAGIC_CODE,
        crc_trailer=crc_trailer,
        physical_offset=physical_offset,
        sys_flag=int(SysFlag.ROLLBACK),
        born_timestamp=store_timestamp,
        store_timestamp=store_timestamp,
    )


def split(length: int, *, smallest: int = SMALLEST_FILLER, largest: int = LARGEST_FILLER) -> list[int] | None:
    """Lengths of fillers that fill a range of `length` bytes exactly; None when no lengths do.

    As few as possible, each of at least `smallest` and at most `largest` bytes; as long as `largest` is at
    least twice `smallest`, only 1 to `smallest` - 1 bytes cannot be filled. ValueError when it is not.
    """
    if largest < 2 * smallest:
        raise ValueError(f"fillers of {smallest} to {largest} bytes leave gaps")
    whole, rest = divmod(length, largest)
    if rest == 0:
        return [largest] * whole
    if rest >= smallest:
        return [largest] * whole + [rest]
    if whole == 0:
        return None
    return [largest] * (whole - 1) + [largest - smallest, rest + smallest]
