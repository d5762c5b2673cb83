"""HTML that is escaped by construction: text becomes markup only through `tag` and `text`.

Topics, groups, paths and messages come from a store and are hostile: whatever they hold is drawn as text.
Names of tags and attributes are the program's own.
"""

from __future__ import annotations

import base64
import hashlib
from html import escape
from typing import TYPE_CHECKING, Any

from rmqtool.output.text import safe

if TYPE_CHECKING:
    from collections.abc import Iterable

_VOID = frozenset({"meta", "rect", "line", "path", "br"})


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def text(value: object) -> Markup:
    """Any value as text: what moves or hides its surroundings is shown escaped."""
    return value if isinstance(value, Markup) else Markup(escape(safe(str(value))))


def tag(name: str, /, *children: object, **attributes: object) -> Markup:
    """An element. children: markup, text, or None for nothing. attributes: `class_` is class, `_` is `-`.

    An attribute of True stands without a value, one of None or False not at all.
    """
    given = "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _VOID:
        return Markup(f"<{name}{given}>") if name in {"meta", "br"} else Markup(f"<{name}{given}/>")
    return Markup(f"<{name}{given}>{joined(children)}</{name}>")


def _attribute(key: str, value: object) -> str:
    if value is None or value is False:
        return ""
    name = key.rstrip("_").replace("_", "-")
    return f" {name}" if value is True else f' {name}="{text(value)}"'


def joined(children: Iterable[object]) -> Markup:
    """All of them, one behind the other."""
    return Markup("".join(text(one) for one in children if one is not None))


def data(value: object) -> Markup:
    """A name or a text of the store, which does not change the direction of what stands around it."""
    return tag("bdi", value)


def digest(content: str) -> str:
    """The source of a Content-Security-Policy that allows this script or style alone."""
    made = hashlib.sha256(content.encode()).digest()
    return f"'sha256-{base64.b64encode(made).decode()}'"


_IN_JSON = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def embedded(json_text: str) -> Markup:
    """JSON in an element that is never run: nothing in it can end the element."""
    for char, shown in _IN_JSON.items():
        json_text = json_text.replace(char, shown)
    return Markup(f'<script type="application/json" id="document">{json_text}</script>')


def number(value: Any) -> str:
    """With thousands apart."""
    return f"{value:,}" if isinstance(value, (int, float)) else str(value)
