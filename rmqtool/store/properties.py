"""A Java properties file (`broker.conf`): ISO 8859-1 with escapes.

What is wrong is named by its line: its value may be a secret.
"""

from __future__ import annotations

import os

from rmqtool.errors import UsageError, VanishedError
from rmqtool.store.access import open_source, stat_named
from rmqtool.store.names import escape_name

_LARGEST = 1 << 16
"""bytes; with every option of 5.3.3 it has some 20,000"""


def read_properties(path: str | os.PathLike[str]) -> dict[str, str]:
    """Settings by name; of equal names the last counts.

    Raises `UsageError` for what is missing, no file or malformed, `StoreIOError` when it may not be read.
    """
    import javaproperties

    shown = escape_name(os.fspath(path))
    try:
        stat_named(path, shown)
    except VanishedError as error:
        raise UsageError(f"{shown}: no such settings file") from error
    with open_source(path, "pread", name=shown) as source:
        data = source.window(0, _LARGEST + 1).tobytes()
    if len(data) > _LARGEST:
        raise UsageError(f"{shown} is not a properties file: it has more than {_LARGEST} bytes")
    settings: dict[str, str] = {}
    line = 1
    try:
        for one in javaproperties.parse(data):
            if isinstance(one, javaproperties.KeyValue):
                settings[one.key] = one.value
            line += one.source.count("\n") or 1
    except ValueError:
        raise UsageError(f"{shown} is not a properties file: line {line} has an invalid \\u escape") from None
    return settings
