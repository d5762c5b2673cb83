"""Documents of commands against their JSON Schemas."""

from __future__ import annotations

from functools import cache
from typing import Any

from jsonschema import Draft202012Validator

from rmqtool.output.schemas.catalogue import schemas


@cache
def validator(name: str) -> Draft202012Validator:
    """For the schema of this name."""
    return Draft202012Validator(schemas()[name])


def problems(document: dict[str, Any]) -> list[str]:
    """What of a document is not as its schema says, the first few."""
    name = document.get("schema") or document["summary"]["schema"]
    found = validator(name).iter_errors(document)
    return [f"{name}: {one.json_path}: {one.message[:200]}" for one, _ in zip(found, range(5), strict=False)]
