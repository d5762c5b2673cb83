"""Which delayed messages a store had delivered when it was killed, as its log tells.

`delayOffset.json` is written every ten seconds: a broker delivers what came since then once more. A copy has
the message's body, properties, born time and flag, and was stored when that was due; copies are the first
messages of a level, in order.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from typing import TYPE_CHECKING

from formats import properties as props
from rmqtool.messagestore.services.copying import properties_of, real_place
from rmqtool.messagestore.services.since import messages_since

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rmqtool.messagestore.messages import StoredMessage
    from rmqtool.messagestore.services.engine import Engine

_AT_ONCE = 1024
_NOT_ALIKE = (props.DELAY, props.WAIT)
"""properties that some releases leave out of the copy"""
Place = tuple[str, int]


def delivered_until(engine: Engine, waiting: Mapping[int, Sequence[tuple[int, int, int]]]) -> dict[int, int]:
    """Queue offset behind the last delivered message of each level that has one.

    waiting: by level, queue offset, physical offset and time (ms) of messages that are due. Raises
    `StoreIOError`, `UnreadableError`.
    """
    wanted: dict[Place, int] = {}
    prints: dict[int, list[tuple[int, bytes]]] = {}
    for level, places in waiting.items():
        prints[level] = []
        for at in range(0, len(places), _AT_ONCE):
            part = places[at : at + _AT_ONCE]
            messages = engine.records([one for _, one, _ in part])
            for (offset, _, due), message in zip(part, messages, strict=True):
                place = None if message is None else real_place(properties_of(message))
                if message is None or place is None:
                    continue
                wanted[place] = min(wanted.get(place, due), due)
                prints[level].append((offset, _print_of(place, message)))
    left = Counter(
        _print_of(place, one)
        for place, since in wanted.items()
        for one in messages_since(engine, place, since)
    )
    found: dict[int, int] = {}
    for level, marks in prints.items():
        for offset, mark in marks:
            if left[mark]:
                left[mark] -= 1
                found[level] = offset + 1
    return found


def _print_of(place: Place, message: StoredMessage) -> bytes:
    """What a message and its copy have in common."""
    header = message.header
    digest = hashlib.blake2b(message.body, digest_size=16)
    properties = [one for one in properties_of(message).items() if one[0] not in _NOT_ALIKE]
    beside = (
        place, sorted(properties), message.flag, message.born_timestamp,
        header["born_host.ip"], header["born_host.port"], message.reconsume_times,
    )  # fmt: skip
    digest.update(repr(beside).encode("utf-8", "surrogatepass"))
    return digest.digest()
