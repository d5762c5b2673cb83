"""Items of other hashes in the chains of an index that a query follows: whether their hashes are theirs.

A wrong hash that leads into the same slot breaks no chain, and the key it stood for looks like one that is
not there. So what lies in the chains beside the wanted hashes is held against its records, too.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from formats.index import key_hash
from rmqtool.errors import RmqtoolError
from rmqtool.query.key_scan import COMPARED
from rmqtool.query.locate import What, look_at
from rmqtool.query.lost_place import LOOKED_AT
from rmqtool.scan.fields import Check
from rmqtool.scan.picked import Damaged, Missing, pick

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from rmqtool.query.index_lookup import IndexItem
    from rmqtool.store.segments import SegmentSet

MOST = 10_000
"""items that are looked at for one question"""


def misplaced(segments: SegmentSet, items: Iterable[IndexItem]) -> dict[str, set[int]]:
    """Physical offsets, by the path of the index file, to which items lead that no broker has put there.

    Those inside of a whole record, of which the first few are looked for, and of records that have no key
    with the item's hash. An item that leads to damage may be right, and one to a record with torn properties.
    """
    inside = [one for one in items if one.physical_offset >= segments.first_offset]
    own: dict[int, set[int]] = {}
    torn: list[Damaged] = []
    looked = 0
    places = sorted({one.physical_offset for one in inside})
    for part in pick(segments, places, COMPARED, checks=Check.ALL & ~Check.CRC, damaged=torn):
        if not isinstance(part, Missing):
            own |= record_hashes(part)
        elif (looked := looked + 1) <= LOOKED_AT and _is_inside(segments, part.physical_offset):
            own[part.physical_offset] = set()
    for one in torn:
        own.pop(one.physical_offset, None)
    wrong: dict[str, set[int]] = defaultdict(set)
    for item in inside:
        if item.key_hash not in own.get(item.physical_offset, (item.key_hash,)):
            wrong[item.path].add(item.physical_offset)
    return wrong


def _is_inside(segments: SegmentSet, offset: int) -> bool:
    try:
        return look_at(segments, offset).what is What.INSIDE
    except RmqtoolError:
        return False  # what cannot be read proves nothing


def record_hashes(batch: pa.RecordBatch) -> dict[int, set[int]]:
    """Hashes of all keys of each record of the columns `COMPARED`, by physical offset."""
    columns = (batch[name].to_pylist() for name in COMPARED)
    return {
        offset: {key_hash(topic or "", key) for key in (*(keys or ()), uniq_key or "")}
        for offset, topic, keys, uniq_key, _ in zip(*columns, strict=True)
    }
