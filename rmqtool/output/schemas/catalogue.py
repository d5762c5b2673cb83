"""Every schema by its name."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from rmqtool.output.schemas.documents import documents
from rmqtool.output.schemas.listings import Listing, listings
from rmqtool.output.schemas.words import Schema, record

if TYPE_CHECKING:
    from collections.abc import Mapping

DRAFT = "https://json-schema.org/draft/2020-12/schema"


def full_name(name: str) -> str:
    """The name as documents say it: `rmqtool.dump/1` of `dump` or `rmqtool.dump`."""
    plain = name.removeprefix("rmqtool.").removesuffix("/1")
    return f"rmqtool.{plain}/1"


@cache
def schemas() -> dict[str, Schema]:
    """All of them by their full names, sorted."""
    found = {full_name(name): _listing(full_name(name), one) for name, one in listings().items()}
    for name, (about, schema) in documents().items():
        found[full_name(name)] = _document(full_name(name), about, schema)
    return dict(sorted(found.items()))


def _head(name: str, about: str) -> Schema:
    text = f"{about} Numbers of 64 bits are numbers here, and strings with --int64-as-string."
    return {"$schema": DRAFT, "$id": f"urn:{name.replace('/', ':')}", "title": name, "description": text}


def _document(name: str, about: str, schema: Schema) -> Schema:
    own = {"properties": {**schema.get("properties", {}), "schema": {"const": name}}}
    required = list(dict.fromkeys(["schema", *schema.get("required", ())]))
    return {**schema, **_head(name, about), **own, "required": required}


def _listing(name: str, listing: Listing) -> Schema:
    """A document of `--format json`; of NDJSON the last line is the summary, the others are rows."""
    rows = listing.rows
    row = {
        "type": "object",
        "required": ["type"],
        "properties": {"type": {"enum": [*rows, *listing.others]}},
        "allOf": [_of_type(one) for one in rows],
    }
    summary = listing.summary
    named = {"schema": {"const": name}, "type": {"const": "summary"}}
    return {
        **_head(name, listing.about),
        **record(
            schema={"const": name},
            rows={"type": "array", "items": {"$ref": "#/$defs/row"}},
            summary={"$ref": "#/$defs/summary"},
        ),
        "$defs": {
            "row": row,
            "summary": {
                **summary,
                "required": ["schema", *summary["required"]],
                "properties": summary["properties"] | named,
            },
            **_defs(rows),
        },
    }


def _of_type(kind: str) -> Schema:
    return {
        "if": {"properties": {"type": {"const": kind}}},
        "then": {"$ref": f"#/$defs/row_{kind}"},
    }


def _defs(rows: Mapping[str, Schema]) -> dict[str, Schema]:
    return {f"row_{kind}": schema for kind, schema in rows.items()}
