"""Types of the values in configuration tables: one that does not fit costs a broker the whole file.

`RemotingSerializable#fromJson` throws, and `ConfigManager#load` goes on as with a file that is not JSON. Seen
with every kind of value at every place, with fastjson 1.2.69 (4.9.7) and 1.2.83 (5.3.3). Fields that a class
does not know are skipped whatever they hold.
"""

from __future__ import annotations

import copy
import json
from dataclasses import dataclass, field, replace
from decimal import Decimal
from enum import Enum
from types import NoneType
from typing import TYPE_CHECKING, Any

from formats.java import java_parse_int

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_SHOWN = 40
_SCALE = 100
"""decimal places, to either side, of a real number that is cut to a long"""
_NULL = frozenset({"", "null", "NULL"})
_TRUTH = frozenset({"true", "false", "0", "1", "y", "n", "t", "f"})


class _Scalar(Enum):
    """A field of a Java class; as a value of a map it may be neither null nor blank."""

    INT = 32
    LONG = 64
    BOOLEAN = 1
    NAME = 0
    """of an enumeration; an unknown one is null"""
    LIST = -1
    ANY = -2
    STRING = -3
    """anything becomes one; null stays null"""


@dataclass(frozen=True, slots=True)
class _Map:
    """A `ConcurrentMap`: no null among its values. numbered: bits of its keys, where these are numbers.

    blank_later: from 5.0 on an empty string in its place is null.
    """

    values: _Shape
    numbered: int = 0
    blank_later: bool = False


@dataclass(frozen=True, slots=True)
class _Object:
    """An object of a class, by its fields; `later`: those that releases before 5.0 do not know.

    needed: fields that `ConfigManager#decode` goes into without a look: null in them throws. The same of
    `needed_later` from 5.0 on.
    """

    fields: Mapping[str, _Shape]
    later: Mapping[str, _Shape] = field(default_factory=dict)
    needed: frozenset[str] = frozenset()
    needed_later: frozenset[str] = frozenset()
    always: str | None = None
    """a field that the class does not fill by itself, from 5.0 on"""
    entries: tuple[str, ...] = ()
    """fields of a table that hold what it is for"""

    def knows(self, name: str) -> bool:
        """Whether some release reads a field of this name."""
        return name in self.fields or name in self.later

    def named(self, name: str) -> str:
        """The field that a name is taken for, whatever its case (`JavaBeanDeserializer#smartMatch`)."""
        if self.knows(name):
            return name
        folded = _folded(name)
        return next((one for one in (*self.fields, *self.later) if _folded(one) == folded), name)


_Shape = _Scalar | _Map | _Object


class _OutOfRange:
    """A number that no long and no double holds: `JSONLexerBase#intValue` and `#longValue` throw."""


OUT_OF_RANGE = _OutOfRange()


class BareName(str):
    """A whole number without quotes as a name: where a string is due, `JSONLexer#scanSymbol` throws."""

    __slots__ = ()


class Repeated(dict[str, Any]):
    """An object with names given twice: the last one counts, but what came earlier is read, too."""

    earlier: tuple[tuple[str, Any], ...] = ()


_OFFSETS = _Map(_Map(_Scalar.LONG, numbered=32), blank_later=True)
_VERSION = _Object(dict.fromkeys(("counter", "timestamp", "stateVersion"), _Scalar.LONG))
_TAKEN_VERSION = replace(_VERSION, needed=frozenset({"counter"}))
"""one whose counter is read (`DataVersion#assignNewOne`)"""
_TOPIC = _Object(
    {
        **dict.fromkeys(("perm", "readQueueNums", "writeQueueNums", "topicSysFlag"), _Scalar.INT),
        "order": _Scalar.BOOLEAN,
        "topicFilterType": _Scalar.NAME,
    },
    {"attributes": _Map(_Scalar.ANY)},
)
_SWITCHES = (
    "consumeEnable",
    "consumeFromMinEnable",
    "consumeBroadcastEnable",
    "notifyConsumerIdsChangedEnable",
)
_RETRIES = _Object(
    {
        "type": _Scalar.NAME,
        "exponentialRetryPolicy": _Object(dict.fromkeys(("initial", "max", "multiplier"), _Scalar.LONG)),
        "customizedRetryPolicy": _Object({}),
    }
)
_GROUP = _Object(
    {
        **dict.fromkeys(_SWITCHES, _Scalar.BOOLEAN),
        **dict.fromkeys(("retryQueueNums", "retryMaxTimes"), _Scalar.INT),
        **dict.fromkeys(("brokerId", "whichBrokerWhenConsumeSlowly"), _Scalar.LONG),
    },
    {
        **dict.fromkeys(("groupSysFlag", "consumeTimeoutMinute"), _Scalar.INT),
        "consumeMessageOrderly": _Scalar.BOOLEAN,
        "attributes": _Map(_Scalar.STRING),
        "groupRetryPolicy": _RETRIES,
    },
)
_OF_OFFSETS: dict[str, _Shape] = {"dataVersion": _VERSION, "groupTopicMap": _Map(_Scalar.LIST)}
_FILTER = _Object(
    {
        **dict.fromkeys(("bornTime", "deadTime", "clientVersion"), _Scalar.LONG),
        **dict.fromkeys(("bloomFilterData", "compiledExpression"), _Object({})),
    }
)
_FILTERS = _Object({"groupFilterData": _Map(_FILTER)})
_ORDER = _Object(
    {
        **dict.fromkeys(("popTime", "i", "l", "cm"), _Scalar.LONG),
        "o": _Scalar.LIST,
        "ot": _Map(_Scalar.LONG, numbered=64),
        "oc": _Map(_Scalar.INT, numbered=64),
    }
)
_MAPPING = _Object(
    {
        "totalQueues": _Scalar.INT,
        "epoch": _Scalar.LONG,
        "dirty": _Scalar.BOOLEAN,
        "currIdMap": _Map(_Scalar.INT, numbered=32),
        "hostedQueues": _Map(_Scalar.LIST, numbered=32),
    }
)

_TABLES: dict[str, _Object] = {
    "topics.json": _Object(
        {"topicConfigTable": _Map(_TOPIC), "dataVersion": _TAKEN_VERSION},
        needed=frozenset({"topicConfigTable", "dataVersion"}),
        entries=("topicConfigTable",),
    ),
    "subscriptionGroup.json": _Object(
        {"subscriptionGroupTable": _Map(_GROUP)},
        {"dataVersion": _TAKEN_VERSION, "forbiddenTable": _Map(_Map(_Scalar.INT))},
        needed=frozenset({"subscriptionGroupTable"}),
        needed_later=frozenset({"dataVersion"}),
        entries=("subscriptionGroupTable",),
    ),
    "consumerOffset.json": _Object(
        {"offsetTable": _OFFSETS},
        _OF_OFFSETS,
        needed_later=frozenset({"groupTopicMap"}),
        entries=("offsetTable",),
    ),
    "lmqConsumerOffset.json": _Object(
        {"offsetTable": _OFFSETS, "lmqOffsetTable": _Map(_Scalar.LONG, blank_later=True)},
        _OF_OFFSETS,
        needed_later=frozenset({"groupTopicMap"}),
        entries=("offsetTable", "lmqOffsetTable"),
    ),
    "delayOffset.json": _Object(
        {"offsetTable": _Map(_Scalar.LONG, numbered=32)},
        {"dataVersion": _VERSION},
        needed=frozenset({"offsetTable"}),
        entries=("offsetTable",),
    ),
    "consumerFilter.json": _Object({"filterDataByTopic": _Map(_FILTERS)}, entries=("filterDataByTopic",)),
    "consumerOrderInfo.json": _Object({"table": _Map(_Map(_ORDER, numbered=32))}, entries=("table",)),
    "topicQueueMapping.json": _Object(
        {"topicQueueMappingInfoMap": _Map(_MAPPING)},
        {"dataVersion": _TAKEN_VERSION},
        needed_later=frozenset({"topicQueueMappingInfoMap", "dataVersion"}),
        always="topicQueueMappingInfoMap",
        entries=("topicQueueMappingInfoMap",),
    ),
}


@dataclass(frozen=True, slots=True)
class Misfit:
    """A value that a broker cannot take. keys: the way to it from the top, empty for the table itself.

    unquoted: it is its name that has to be a string, what is under it may be right.
    """

    keys: tuple[str, ...]
    why: str
    unquoted: bool = False

    def __str__(self) -> str:
        return f"{'.'.join(self.keys)[:200] or 'it'} {self.why}"


def misfits(name: str, data: Any, *, before_5: bool) -> Iterator[Misfit]:
    """The values of the table `name` that a broker cannot take, in the order of the file.

    data: the parsed object. before_5: as a release before 5.0 reads it.
    """
    table = _TABLES.get(name)
    if table is not None:
        yield from _misfits(table, data, (), before_5=before_5)


def with_its_names(name: str, data: dict[str, Any]) -> dict[str, Any]:
    """The table with the names of its fields as its class has them, whatever case they are written in."""
    table = _TABLES.get(name)
    return data if table is None else {table.named(key): value for key, value in data.items()}


def _folded(name: str) -> str:
    """Without what `JavaBeanDeserializer#smartMatch` looks past."""
    return name.lower().replace("_", "").replace("-", "")


def misnamed(name: str, data: Any) -> str | None:
    """A field of the table `name` that no release reads, with entries, while one for entries is missing.

    What is under it is lost to a broker: the name is damaged, or the file is another table's.
    """
    table = _TABLES.get(name)
    if table is None or not isinstance(data, dict) or all(one in data for one in table.entries):
        return None
    odd = (key for key, held in data.items() if held and isinstance(held, dict) and not table.knows(key))
    return next(odd, None)


def without(data: Any, wrong: Iterable[Misfit]) -> Any:
    """A copy of a table that lacks these values, and None when it is one of them."""
    made = copy.deepcopy(data)
    for one in wrong:
        if not one.keys:
            return None
        holder = made
        for key in one.keys[:-1]:
            holder = holder[key]
        del holder[one.keys[-1]]
    return made


def with_numbers(name: str, data: Any) -> Any:
    """A copy of the table `name` with 1 and 0 for truth values that are read as a long from 5.0 on."""
    table = _TABLES.get(name)
    return data if table is None else _with_numbers(table, data)


def _with_numbers(shape: _Shape | None, value: Any) -> Any:
    if shape is _Scalar.LONG and isinstance(value, bool):
        return int(value)
    if not isinstance(value, dict) or not isinstance(shape, _Map | _Object):
        return value
    if isinstance(shape, _Map):
        return {key: _with_numbers(shape.values, held) for key, held in value.items()}
    return {key: _with_numbers({**shape.later, **shape.fields}.get(key), one) for key, one in value.items()}


def with_number_keys(name: str, data: Any) -> Any:
    """A copy of the table `name` whose maps by queue or level have numbers for keys, as brokers read them."""
    table = _TABLES.get(name)
    return data if table is None else _with_number_keys(table, data)


def _with_number_keys(shape: _Shape | None, value: Any) -> Any:
    if not isinstance(value, dict) or not isinstance(shape, _Map | _Object):
        return value
    if isinstance(shape, _Object):
        known = {**shape.later, **shape.fields}
        return {key: _with_number_keys(known.get(key), one) for key, one in value.items()}
    held = {key: _with_number_keys(shape.values, one) for key, one in value.items()}
    numbers = {key: java_parse_int(key, shape.numbered) for key in held} if shape.numbered else {}
    return held if None in numbers.values() else {numbers.get(key, key): one for key, one in held.items()}


def number_of(value: Any) -> int | None:
    """What a broker makes of a value in the place of a long; None where it throws.

    A truth value is 1 or 0, which only releases from 5.0 on take for a long. A real number is cut to its low
    64 bits (`TypeUtils#longValue`). Whole ones beyond a long never fit in a
    map. As a field of a class fastjson takes those whose low 64 bits are not negative, unless a blank stands
    in front of them (`JSONLexerBase#scanFieldLong`); no broker writes them, and here they never fit.
    """
    if isinstance(value, str):
        return java_parse_int(value, 64)
    if isinstance(value, float):
        number = Decimal(repr(value))
        low = int(number) & (1 << 64) - 1
        return (low ^ 1 << 63) - (1 << 63) if abs(number.as_tuple().exponent) <= _SCALE else None  # type: ignore[arg-type]
    return int(value) if isinstance(value, int) and -(1 << 63) <= value < 1 << 63 else None


def _misfits(
    shape: _Shape, value: Any, keys: tuple[str, ...], *, before_5: bool, in_map: bool = False
) -> Iterator[Misfit]:
    if isinstance(shape, _Scalar):
        if not _fits(shape, value, in_map=in_map, before_5=before_5):
            yield Misfit(keys, _why(value))
        return
    blank = value is None or (isinstance(shape, _Object) and value in ("", []))
    blank |= isinstance(shape, _Map) and shape.blank_later and value == "" and not before_5
    if blank and keys and not in_map:
        return
    if not isinstance(value, dict):
        yield Misfit(keys, _why(value))
        return
    is_map = isinstance(shape, _Map)
    if isinstance(shape, _Object) and shape.always not in (None, *value) and not before_5:
        yield Misfit(keys, f"lacks {shape.always}, without which brokers cannot read it")
    for key, held in (*getattr(value, "earlier", ()), *value.items()):
        if isinstance(key, BareName) and not (isinstance(shape, _Map) and shape.numbered):
            yield Misfit((*keys, key), "should have its name in quotes", unquoted=True)
        if isinstance(shape, _Map):
            inner: _Shape | None = shape.values
            if shape.numbered and java_parse_int(key, shape.numbered) is None:
                yield Misfit((*keys, key), "should have a number for a name")
                continue
        else:
            field_name = shape.named(key)
            inner = shape.fields.get(field_name) or (None if before_5 else shape.later.get(field_name))
            needed = shape.needed if before_5 else shape.needed | shape.needed_later
            if field_name in needed and held in (None, "", [], "null", "NULL"):
                yield Misfit((*keys, key), _why(held))
                continue
        if inner is not None:
            yield from _misfits(inner, held, (*keys, key), before_5=before_5, in_map=is_map)


def _fits(shape: _Scalar, value: Any, *, in_map: bool, before_5: bool) -> bool:
    """`TypeUtils#castToInt`, `#castToBoolean`, `LongCodec`, `EnumDeserializer`."""
    if shape is _Scalar.STRING:
        return True
    if shape in {_Scalar.ANY, _Scalar.LIST}:
        return value is not None if shape is _Scalar.ANY else isinstance(value, list | NoneType)
    if value is None or (isinstance(value, str) and value in _NULL):
        return not in_map
    if shape is _Scalar.NAME:
        return isinstance(value, str)
    if isinstance(value, bool) and shape is _Scalar.LONG:
        return not before_5
    if shape is _Scalar.BOOLEAN and isinstance(value, str):
        return value.lower() in _TRUTH
    number = number_of(value)
    if isinstance(value, float):  # cut to either length
        return number is not None
    bits = 64 if shape is _Scalar.LONG else 32
    return number is not None and -(1 << bits - 1) <= number < 1 << bits - 1


def _why(value: Any) -> str:
    kinds = {dict: "an object", list: "a list", type(None): "null", _OutOfRange: "a number out of range"}
    shown = kinds.get(type(value)) or json.dumps(value)[:_SHOWN]
    return f"is {shown}, which brokers cannot read there"
