"""What points to one record, as rows of `rmqtool show`: its consume-queue units and its index items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from formats.properties import INNER_MULTI_DISPATCH, TAGS
from rmqtool.output.redaction import REDACTED
from rmqtool.query.index_lookup import items_of_record
from rmqtool.query.units import units_of

if TYPE_CHECKING:
    from rmqtool.output.redaction import RecordRedaction
    from rmqtool.query.one_record import OneRecord
    from rmqtool.query.units import UnitView
    from rmqtool.store.layout import Store

Row = dict[str, Any]


def units(store: Store, record: OneRecord, rule: RecordRedaction | None) -> Row:
    """The unit of the record in its own queue and those in others. rule: what is redacted, None for nothing.

    Units elsewhere are named by a property of the record, and a tags code is a hash of its tags.
    """
    own, others = units_of(store, record)
    code = _hides(record, rule, TAGS)
    names = _hides(record, rule, INNER_MULTI_DISPATCH)
    return {
        "unit": _unit(own, code=code),
        "unit_absent": own.absent,
        "dispatch_units": [
            _elsewhere(row, names=names) for one in others if (row := _unit(one, code=code)) is not None
        ],
        "dispatch_absent": [
            _elsewhere(
                {"topic": one.topic, "queue_id": one.queue_id, "slot": one.slot, "reason": one.absent},
                names=names,
            )
            for one in others
            if one.values is None
        ],
    }


def disagrees(reported: Row) -> bool:
    """Does one of the units say something else than the record?"""
    return any(one["agrees"] is False for one in (reported["unit"], *reported["dispatch_units"]) if one)


def index_items(store: Store, record: OneRecord, rule: RecordRedaction | None) -> Row:
    """The index items of the record's keys. Where a key is redacted, its hash and its slot are, too."""
    keys = record.indexed_keys
    wanted = dict.fromkeys(key for _, key in keys)
    found, skipped = items_of_record(store, record.topic, wanted, record.physical_offset)
    items: list[Row] = []
    absent: list[Row] = []
    for name, key in keys:
        hidden = rule is not None and rule.hides(name, key)
        named = {"property": name, "key": REDACTED if hidden else key}
        unsaid = {"key_hash": None, "slot": None} if hidden else {}
        items += [{**named, **_values(one), **unsaid} for one in found[key]]
        if not found[key]:
            absent.append({**named, "reason": _why_absent(store, record, skipped)})
    return {"index_items": items, "index_absent": absent, "index_skipped": skipped}


def _hides(record: OneRecord, rule: RecordRedaction | None, name: str) -> bool:
    value = record.properties.get(name)
    return rule is not None and value is not None and rule.hides(name, value)


def _unit(unit: UnitView, *, code: bool) -> Row | None:
    """code: is the tags code hidden? A time of delivery is none of the tags."""
    if unit.values is None:
        return None
    code &= unit.meaning != "time of delivery"
    differences = [dict(zip(("field", "expected", "found"), one, strict=True)) for one in unit.differences]
    row: Row = {
        "kind": unit.kind.value,
        "topic": unit.topic,
        "queue_id": unit.queue_id,
        "path": unit.path,
        "position": unit.position,
        "slot": unit.slot,
        **unit.values,
        "state": unit.state,
        "agrees": unit.agrees,
        "differences": differences,
        "tags_code_meaning": unit.meaning,
    }
    if unit.ext_tags_code is not None:
        row["ext_tags_code"] = None if code else unit.ext_tags_code
    if code:
        row |= {"tags_code": None, "tags_code_meaning": f"{unit.meaning} {REDACTED}"}
        for one in differences:
            if one["field"] == "tags_code":
                one.update(expected=None, found=None)
    return row


def _elsewhere(row: Row, *, names: bool) -> Row:
    """names: is it hidden which queues these are?"""
    hidden = {"topic", "path", "reason"} & set(row) if names else ()
    return row | dict.fromkeys(hidden, REDACTED)


def _values(item: Any) -> Row:
    return {name: getattr(item, name) for name in item.__slots__}


def _why_absent(store: Store, record: OneRecord, skipped: list[str]) -> str:
    if record.values["sys_flag"] & 0xC == 0xC:
        return "a rollback record is not indexed"
    if not store.index_files():
        return "there is no index file"
    return "not in the index" if not skipped else f"not found; {', '.join(skipped)} cannot be searched"
