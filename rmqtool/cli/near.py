"""Notes about names that a store does not know, with those that were perhaps meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rmqtool.cli.context import Context
    from rmqtool.store.config import StoreConfig
    from rmqtool.store.layout import Store

_SETTINGS = 1000
_ALMOST = 0.93
"""one letter in fifteen: brokers have hundreds of settings, and some of them differ by a word"""


def say_unknown_topics(context: Context, store: Store, globs: Iterable[str]) -> None:
    """A filter that matches no topic explains an empty answer; records of a deleted topic may still match."""
    from rmqtool.query.near import suggestion, unknown_topics

    globs = tuple(globs)
    for glob, names in (unknown_topics(store, globs) if globs else {}).items():
        text = f"no topic with a queue or an entry in topics.json matches '{glob}'"
        context.console.note(text + suggestion(names))


def say_unknown_settings(context: Context, config: StoreConfig) -> None:
    """Settings of a broker that nothing here reads, and that are almost those of a store."""
    from difflib import get_close_matches

    from rmqtool.query.near import suggestion

    known = {name.casefold(): name for name in config.names()}
    for name in list(config.model_extra or ())[:_SETTINGS]:
        meant = get_close_matches(name.casefold(), known, 1, _ALMOST)
        if meant:
            text = f"--store-config: no setting of a store is named {name}"
            context.console.note(text + suggestion([known[meant[0]]]))


def say_unknown_group(context: Context, store: Store, group: str) -> None:
    """A group without settings and offsets."""
    from rmqtool.query.near import known_groups, near, suggestion

    known = known_groups(store)
    if group not in known:
        text = f"group '{group}' has neither settings nor offsets in this store"
        context.console.note(text + suggestion(near(group, known)))
