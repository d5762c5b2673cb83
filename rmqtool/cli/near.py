"""Notes about names that a store does not know, with those that were perhaps meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rmqtool.cli.context import Context
    from rmqtool.store.layout import Store


def say_unknown_topics(context: Context, store: Store, globs: Iterable[str]) -> None:
    """A filter that matches no topic explains an empty answer; records of a deleted topic may still match."""
    from rmqtool.query.near import suggestion, unknown_topics

    globs = tuple(globs)
    for glob, names in (unknown_topics(store, globs) if globs else {}).items():
        told = f"no topic with a queue or an entry in topics.json matches '{glob}'"
        context.console.note(told + suggestion(names))


def say_unknown_group(context: Context, store: Store, group: str) -> None:
    """A group without settings and offsets."""
    from rmqtool.query.near import known_groups, near, suggestion

    known = known_groups(store)
    if group not in known:
        told = f"group '{group}' has neither settings nor offsets in this store"
        context.console.note(told + suggestion(near(group, known)))
