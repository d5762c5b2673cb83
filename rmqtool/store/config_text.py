"""Tables of `config` as brokers write them: fastjson's pretty form (`RemotingSerializable#toJson`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any


def config_text(data: Mapping[str, Any]) -> str:
    """The text of a table. Maps with integer keys get these bare, their entries on one line."""
    return _text(data, 0)


def _text(value: Any, depth: int) -> str:
    if isinstance(value, Mapping):
        return _object(value, depth)
    if isinstance(value, list):
        return f"[{','.join(_text(one, depth) for one in value)}]"
    return json.dumps(value, ensure_ascii=False)


def _object(value: Mapping[Any, Any], depth: int) -> str:
    if not value:
        return "{}"
    indent = "\n" + "\t" * depth
    if all(type(key) is int for key in value):
        inner = ",".join(f"{key}:{_text(one, depth + 1)}" for key, one in value.items())
        return f"{{{inner}{indent}}}"
    lines = [
        f"{indent}\t{json.dumps(str(key), ensure_ascii=False)}:{_text(one, depth + 1)}"
        for key, one in value.items()
    ]
    return f"{{{','.join(lines)}{indent}}}"
