"""JSON Schemas from short words: `record("topic:str|null queue_id:int state=ok|bad")`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable
    from enum import StrEnum

Schema = dict[str, Any]

_TYPES: dict[str, Schema] = {
    "int": {"type": "integer"},
    "num": {"type": "number"},
    "str": {"type": "string"},
    "bool": {"type": "boolean"},
    "null": {"type": "null"},
    "obj": {"type": "object"},
    "list": {"type": "array"},
    "ints": {"type": "array", "items": {"type": "integer"}},
    "strs": {"type": "array", "items": {"type": "string"}},
    "objs": {"type": "array", "items": {"type": "object"}},
    "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
    "any": {},
}


def record(words: str = "", /, **nested: Schema) -> Schema:
    """An object that has all that is named, and may have more.

    A word is `name:TYPE` or, for fixed strings, `name=one|another`; alternatives are parted by `|`, `null`
    among them is the JSON null; `name?` may be absent. nested: further required members.
    """
    properties: dict[str, Schema] = {}
    required: list[str] = []
    for word in words.split():
        name, sign, value = word.partition("=") if "=" in word else word.partition(":")
        if not sign:
            raise ValueError(f"{word} has no type")
        properties[name.removesuffix("?")] = _fixed(value) if sign == "=" else _typed(value)
        if not name.endswith("?"):
            required.append(name)
    return {"type": "object", "required": [*required, *nested], "properties": properties | nested}


def _fixed(value: str) -> Schema:
    words = value.split("|")
    if len(words) == 1:
        return {"const": words[0]}
    return {"enum": [None if one == "null" else one for one in words]}


def _typed(value: str) -> Schema:
    kinds = [_TYPES[one] for one in value.split("|")]
    if len(kinds) == 1:
        return dict(kinds[0])
    plain = [one["type"] for one in kinds if set(one) == {"type"}]
    return {"type": plain} if len(plain) == len(kinds) else {"anyOf": kinds}


def one_of(words: Iterable[StrEnum] | Iterable[str]) -> str:
    """The values of an enumeration as alternatives of a word."""
    return "|".join(map(str, words))


def array(items: Schema) -> Schema:
    """A list of such items."""
    return {"type": "array", "items": items}


def nullable(schema: Schema) -> Schema:
    """The same, or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def with_more(schema: Schema, words: str = "", /, **nested: Schema) -> Schema:
    """The same with more members."""
    more = record(words, **nested)
    return schema | {
        "required": [*schema["required"], *more["required"]],
        "properties": schema["properties"] | more["properties"],
    }


def when(name: str, values: Iterable[Any], then: Schema, otherwise: Schema | None = None) -> Schema:
    """A rule that holds where member `name` is there and has one of these values."""
    rule = {
        "if": {"properties": {name: {"enum": list(values)}}, "required": [name]},
        "then": then,
    }
    return rule if otherwise is None else rule | {"else": otherwise}
