"""What is true of a compound store, by readers that share nothing with rmqtool."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from fixtures import strict

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from fixtures.compound import Compound
    from fixtures.strict import Entry, Record

    Key = tuple[str, str, int, int]
    """kind of queue, topic, queue, slot"""

_BATCH = 0x80
_DELAYED = "SCHEDULE_TOPIC_XXXX"


@dataclass(frozen=True)
class Truth:
    """`proven_lost`: records of which something left in the store shows that they were there.

    `damaged`: offsets of those of them of which all that can be told to be wrong is the body, or its CRC.
    `undispatched`: whole records without their unit although a later record has its own. `units`: those that
    lie there. `alike`: records that are changed, but the same to every reader, and not among the lost.
    """

    proven_lost: tuple[Record, ...]
    alike: tuple[Record, ...]
    damaged: frozenset[int]
    undispatched: tuple[Record, ...]
    units: dict[tuple[str, int, int], tuple[int, int]]


def truth(made: Compound) -> Truth:
    """Of the damaged store as it lies. What is missing in front looks like what has expired."""
    here, units = strict.carve(made.root), strict.units(made.root)
    last = max(made.intact, default=-1)
    indexed = strict.last_indexed(made.root, int(str(made.settings.get("maxHashSlotNum", 0))))
    first = min((base for base, _ in strict.segments(made.root)), default=0)
    alike = tuple(one for one in made.lost.values() if _negative_length(one, made))
    lost = [
        one
        for at, one in made.lost.items()
        if at not in here
        and one not in alike
        and at >= first
        and (at < last or units.get(one.slot) == (at, one.size) or at == indexed)
    ]
    plain = [one for one in made.intact.values() if one.placed and not one.sys_flag & _BATCH]
    served = [one.offset for one in plain if units.get(one.slot) == (one.offset, one.size)]
    newest = max(served, default=-1)
    missing = [
        one
        for one in plain
        if one.offset < newest and units.get(one.slot) != (one.offset, one.size) and has_queue(made, one)
    ]
    damaged = frozenset(one.offset for one in lost if _only_body(one, made))
    return Truth(tuple(lost), alike, damaged, tuple(missing), units)


def under_other_names(made: Compound) -> dict[int, Record]:
    """Records of the healthy store that lie whole in segments under other names, by where they belong.

    Those of the latest use of the file: what its first whole record says of its begin, if a segment begins
    there (others are misdirected, and their place may have expired). None that lies at its
    own place as well. Of a file that has records at their own place, those of a segment that has some, too.
    """
    here, healthy = strict.carve(made.root), strict.carve(made.pristine)
    found: dict[int, Record] = {}
    whole = {base: list(strict.wherever(data)) for base, data in strict.segments(made.root)}
    bases = {base for base, _ in strict.segments(made.pristine)}
    own = {base for base, records in whole.items() if any(one.offset == base + at for at, one in records)}
    for base, records in whole.items():
        shift = records[0][1].offset - records[0][0] if records else base
        for at, one in () if shift not in (own if base in own else bases) else records:
            known = healthy.get(one.offset)
            if one.offset - at == shift and one.offset not in here and known and known.raw == one.raw:
                found[one.offset] = one
    return found


def _only_body(one: Record, made: Compound) -> bool:
    """Whether it is whole with its body and its CRC: nobody knows which of the two is wrong."""
    now, at = bytearray(_bytes_at(one, made)), one.raw.index(one.body, 80)
    now[8:12], now[at : at + len(one.body)] = one.raw[8:12], one.body
    read = strict.parse(bytes(now), 0, one.offset)
    return read is not None and read.slot == one.slot


def _negative_length(one: Record, made: Compound) -> bool:
    """A length of the body below zero, which brokers and clients take for zero; all else fits that."""
    now, at = _bytes_at(one, made), 84 + 12 * (one.sys_flag >> 4 & 1) + 12 * (one.sys_flag >> 5 & 1)
    read = strict.parse(now[:at] + bytes(4) + now[at + 4 :], 0, one.offset)
    return now[at : at + 1] >= b"\x80" and read is not None and read.slot == one.slot


def _bytes_at(one: Record, made: Compound) -> bytes:
    """What lies in the damaged store where a record was."""
    base = max((base for base, _ in strict.segments(made.root) if base <= one.offset), default=None)
    if base is None:
        return b""
    with (made.root / "commitlog" / f"{base:020d}").open("rb") as file:
        file.seek(one.offset - base)
        return file.read(one.size)


def has_queue(made: Compound, one: Record) -> bool:
    """Whether the healthy store had a plain queue for the record."""
    entry = healthy_entries(made).get(("consumequeue", *one.slot))
    return entry is not None and (entry.offset, entry.size) == (one.offset, one.size)


_ENTRIES: dict[str, dict[Key, Entry]] = {}


def strict_units(made: Compound) -> dict[tuple[str, int, int], Entry]:
    """Plain units of the healthy store."""
    return {key[1:]: one for key, one in healthy_entries(made).items() if key[0] == "consumequeue"}


def healthy_entries(made: Compound) -> dict[Key, Entry]:
    """Units of all queues of the healthy store."""
    key = str(made.pristine)
    if key not in _ENTRIES:
        _ENTRIES.clear()
        _ENTRIES[key] = strict.entries(made.pristine)
    return _ENTRIES[key]


def unproven(made: Compound, said: Collection[Mapping[str, Any]]) -> set[Key]:
    """Places of which `recover` said that nothing proves them: rows of its `unproven_offsets`."""
    begins = {(row["topic"], row["queue_id"]): row["physical_offset"] for row in said}
    return {
        key
        for key, one in healthy_entries(made).items()
        if key[1:3] in begins and one.offset >= begins[key[1:3]]
    }


def undecided(said: Collection[Mapping[str, Any]]) -> set[int]:
    """Physical offsets of records of which `recover` said that one or the other may be wrong."""
    return {offset for row in said for offset in row["physical_offsets"]}


def kept(
    root: Path,
    made: Compound,
    *,
    dispatched: bool = True,
    besides: Collection[Key] = (),
    doubted: Collection[int] = (),
) -> list[str]:
    """Whole records that `root` does not serve at their queue offset, with the same bytes at the same place.

    Served in each queue that had them: their own, plain or of batches, and light ones. Unless `dispatched`,
    units may be missing behind the last record that has one, and those of delayed messages need no time of
    delivery: recovery of 4.9.2 to 4.9.8 makes them without. What lies where recovery of a queue has ended, or
    behind, is no unit then, whatever it is: dispatching writes there. besides: places that nobody asks for.
    doubted: records that may have another place.
    """
    here, now = strict.carve(root), strict.entries(root)
    if not dispatched:
        ends = strict.recovered_ends(root)
        now = {key: one for key, one in now.items() if key[0] != "consumequeue" or key[3] < ends[key[1:3]]}
    queued = {
        key: one
        for key, one in healthy_entries(made).items()
        if one.offset in made.intact and made.intact[one.offset].size == one.size
        if key not in besides and one.offset not in doubted
    }
    if not dispatched:
        for key, one in queued.items():
            found = now.get(key)
            if found is not None and key[1] == _DELAYED and found.offset == one.offset:
                now[key] = replace(found, tags=one.tags)
    served = {key for key, one in queued.items() if one.same(now.get(key))}
    newest = max(made.intact if dispatched else (queued[key].offset for key in served), default=-1)
    wrong = [
        f"record {at} {one.slot} is gone"
        for at, one in made.intact.items()
        if at not in here or (here[at].raw != one.raw and at not in doubted)
    ]
    return wrong + [
        f"unit of {one.offset} {key} is {now.get(key)}, was {one}"
        for key, one in queued.items()
        if key not in served and (one.offset <= newest or key in now)
    ]


def in_rocksdb(made: Compound) -> bool:
    """Whether the broker keeps queues in RocksDB and fills them from the log, not only beside files."""
    return made.settings.get("storeType") == "defaultRocksDB" or bool(in_database(made))


def in_database(made: Compound) -> set[Key]:
    """Plain queues whose files a mutator took away for a database; settings do not say so."""
    if not any("queues_in_rocksdb" in one for one in made.done):
        return set()
    return {key for key in healthy_entries(made) if key[0] == "consumequeue"}


def lost_tables(made: Compound) -> list[str]:
    """Config tables of which what is left, file or backup, cannot be read.

    Where nothing is left, nobody can know that a table was there; of an empty one nothing is lost.
    """
    found = []
    for path in sorted((made.pristine / "config").glob("*.json")):
        here = made.root / "config" / path.name
        texts = [_table(one) for one in (here, here.with_name(path.name + ".bak"))]
        reported = here.exists() or here.with_name(path.name + ".bak").exists()
        if reported and all(one is None for one in texts) and _holds(_table(path)):
            found.append(path.name)
    return found


def _holds(table: Any) -> bool:
    return isinstance(table, dict) and any(table.values())


def _table(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes().decode("utf-8-sig"))  # fastjson skips the mark, too
    except (OSError, ValueError, RecursionError):
        return None


def tree(root: Path) -> dict[str, tuple[object, ...]]:
    """Every path with mode, owner, times, link target and content; links are not followed."""
    return {str(path.relative_to(root.parent)): _facts(path) for path in (root, *sorted(root.rglob("*")))}


def _facts(path: Path) -> tuple[object, ...]:
    facts = path.lstat()
    content: object = None
    if stat.S_ISLNK(facts.st_mode):
        content = os.readlink(path)
    elif stat.S_ISREG(facts.st_mode):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
    return facts.st_mode, facts.st_uid, facts.st_gid, facts.st_mtime_ns, content
