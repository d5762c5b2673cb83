"""Names that a person may have meant: topics and groups of a store that look like one that is not there."""

from __future__ import annotations

from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from rmqtool.query.groups import committed_offsets, group_configs
from rmqtool.query.topics import known_topics

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from rmqtool.store.layout import Store

_COMPARED = 10_000
"""names that a mistyped one is compared with: each takes some microseconds"""
_MOST = 3


def known_groups(store: Store) -> list[str]:
    """Groups with settings or with committed offsets, sorted."""
    return sorted({*group_configs(store), *(one.group for one in committed_offsets(store))})


def near(name: str, known: Sequence[str]) -> list[str]:
    """Names that are most like `name`, the likeliest first: in another case, then by their letters."""
    some = known[:_COMPARED]
    same = [one for one in some if one.casefold() == name.casefold()]
    longer = [one for one in some if len(name) > 2 and name.casefold() in one.casefold()]
    return list(dict.fromkeys([*same, *get_close_matches(name, some, _MOST), *longer]))[:_MOST]


def unknown_topics(store: Store, globs: Iterable[str]) -> dict[str, list[str]]:
    """Which of these match no topic with a queue or an entry in topics.json, and what was perhaps meant."""
    names = known_topics(store)
    missing = [glob for glob in globs if glob not in names and not any(fnmatchcase(n, glob) for n in names)]
    return {glob: near(glob.strip("*?"), names) for glob in missing}


def suggestion(names: Sequence[str]) -> str:
    """`; did you mean A or B?`, nothing without names."""
    return f"; did you mean {' or '.join(names)}?" if names else ""
