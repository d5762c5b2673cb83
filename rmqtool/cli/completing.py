"""Completion of topics and groups of a store, scenarios, schemas. Whatever goes wrong, there is none."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

import typer  # noqa: TC002 - typer looks at the annotations of these functions

if TYPE_CHECKING:
    from collections.abc import Callable

    from rmqtool.store.layout import Store

_MOST = 200
"""names that a shell is given"""


def complete_topics(ctx: typer.Context, incomplete: str) -> list[str]:
    """Topics with a queue or an entry in topics.json."""
    from rmqtool.query.topics import known_topics

    return _names(ctx, incomplete, known_topics)


def complete_groups(ctx: typer.Context, incomplete: str) -> list[str]:
    """Groups with settings or committed offsets."""
    from rmqtool.query.near import known_groups

    return _names(ctx, incomplete, known_groups)


def complete_scenarios(incomplete: str) -> list[str]:
    """Workarounds that doctor simulates; several are joined with +."""
    from rmqtool.recovery.scenarios import NAMES

    head, plus, last = incomplete.rpartition("+")
    words = (name.partition(" ")[0] for name in NAMES)
    return [f"{head}{plus}{word}" for word in words if word.startswith(last)]


def complete_schemas(incomplete: str) -> list[str]:
    """Names of schemas, without what all have, or with it."""
    from rmqtool.output.schemas.catalogue import schemas

    names = list(schemas())
    if not incomplete.startswith("rmqtool."):
        names = [one.removeprefix("rmqtool.").rpartition("/")[0] for one in names]
    return [one for one in names if one.startswith(incomplete)]


def _names(ctx: typer.Context, incomplete: str, known: Callable[[Store], list[str]]) -> list[str]:
    from rmqtool.store.layout import Store

    with suppress(Exception):  # a shell asks: an error has nowhere to go
        given = ctx.params.get("path") or os.environ.get("RMQTOOL_STORE")
        if given and given != "-":
            names = known(Store.open(given))
            return [name for name in names if name.startswith(incomplete) and name.isprintable()][:_MOST]
    return []
