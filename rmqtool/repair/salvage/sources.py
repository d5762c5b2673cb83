"""The files that a salvage reads: what was given, directories with all that lies in them."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from rmqtool.errors import UsageError
from rmqtool.store.access import describe_mode, stat_named
from rmqtool.store.coverage import unreadable
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rmqtool.store.patched import BadRange


@dataclass(slots=True)
class Source:
    """One regular file. `path` as messages call it, `bad` the ranges that could not be read."""

    path: str
    location: str
    size: int
    bad: list[BadRange] = field(default_factory=list)


@dataclass(slots=True)
class Sources:
    """Files in the order of the command line, each once, and rows of `not_covered` for what is none."""

    files: list[Source]
    not_covered: list[dict[str, Any]]


def collect(paths: Iterable[str]) -> Sources:
    """All regular files at and below `paths`, also where links to directories lead.

    Raises what `stat_named` raises, and `UsageError` for a path that is not a file or directory.
    """
    found = Sources([], [])
    seen: set[tuple[int, int]] = set()
    for given in paths:
        facts = stat_named(given, escape_name(given))
        if stat.S_ISDIR(facts.st_mode):
            _walk(given, found, seen)
        elif stat.S_ISREG(facts.st_mode):
            _add(given, facts, found, seen)
        else:
            what = describe_mode(facts.st_mode)
            raise UsageError(f"{escape_name(given)} is {what}; salvage reads files, such as an image of it")
    return found


def _walk(root: str, found: Sources, seen: set[tuple[int, int]]) -> None:
    def failed(error: OSError) -> None:
        path = escape_name(str(error.filename))
        found.not_covered.append(unreadable(path, error.strerror or "cannot be listed"))

    walked: set[tuple[int, int]] = set()
    for directory, inside, names in os.walk(root, onerror=failed, followlinks=True):
        here = os.stat(directory)
        if (here.st_dev, here.st_ino) in walked:  # links may lead back
            inside.clear()
            continue
        walked.add((here.st_dev, here.st_ino))
        inside.sort()
        for name in sorted(names):
            path = os.path.join(directory, name)
            try:
                facts = os.stat(path)
            except OSError as error:
                found.not_covered.append(unreadable(escape_name(path), error.strerror or "cannot be opened"))
                continue
            if stat.S_ISREG(facts.st_mode):
                _add(path, facts, found, seen)
            else:
                what = f"is {describe_mode(facts.st_mode)}"
                found.not_covered.append(unreadable(escape_name(path), what))


def _add(path: str, facts: os.stat_result, found: Sources, seen: set[tuple[int, int]]) -> None:
    identity = (facts.st_dev, facts.st_ino)
    if identity not in seen:
        seen.add(identity)
        found.files.append(Source(escape_name(path), path, facts.st_size))
