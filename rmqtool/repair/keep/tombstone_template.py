"""Many tombstones fast: those of one topic and length differ in a few header fields only.

Whether they do is not assumed but tried: a second one is made for another place, and the first with its
fields put in has to be the same bytes. Where it is not, as in topics with forms of their own, each is made by
itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rmqtool.repair.tombstone import tombstone
from rmqtool.scan.fields import OFF_PHYSICAL_OFFSET, OFF_QUEUE_ID, OFF_QUEUE_OFFSET

if TYPE_CHECKING:
    from rmqtool.repair.place import Place

_MOST, _LONGEST = 4096, 8192
"""templates that are kept, and the bytes of one at most"""

_Key = tuple[str, int, int]


@dataclass
class TombstoneTemplates:
    """Tombstones without properties of the damaged record, which nothing but their place decides."""

    plan_id: str
    _known: dict[_Key, bytes | None] = field(default_factory=dict)
    """by topic, length and store time; None where places make more of a difference"""

    def make(self, place: Place, length: int) -> bytes | None:
        """As `tombstone`, for a place with nothing but topic, queue, offsets and store time."""
        key = place.topic, length, place.store_timestamp
        template = self._known.get(key)
        if template is not None:
            return _stamped(template, place)
        made = tombstone(place, length, self.plan_id)
        if made is not None and key not in self._known and length <= _LONGEST and len(self._known) < _MOST:
            other = replace(
                place,
                queue_id=place.queue_id + 1,
                queue_offset=place.queue_offset + 1,
                physical_offset=place.physical_offset + 1,
            )
            same = _stamped(made, other) == tombstone(other, length, self.plan_id)
            self._known[key] = made if same else None
        return made


def _stamped(template: bytes, place: Place) -> bytes:
    """The record with queue number, queue offset and physical offset of a place."""
    numbers = place.queue_id.to_bytes(4, "big", signed=True)
    offsets = place.queue_offset.to_bytes(8, "big") + place.physical_offset.to_bytes(8, "big")
    between = template[OFF_QUEUE_ID + 4 : OFF_QUEUE_OFFSET]
    return template[:OFF_QUEUE_ID] + numbers + between + offsets + template[OFF_PHYSICAL_OFFSET + 8 :]
