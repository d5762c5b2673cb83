"""Small JSON documents on the disk: written whole or not at all."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from rmqtool.errors import UsageError
from rmqtool.store.access import open_source
from rmqtool.store.names import escape_name
from rmqtool.store.whole import within

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rmqtool.repair.disk import Disk

_LARGEST = 1 << 30
"""bytes of a plan or journal: some million changes"""


def write_document(disk: Disk, path: str, content: Mapping[str, Any]) -> None:
    """Writes JSON into `path`, in place of what was there, synced with its directory. Raises `OSError`."""
    temporary = f"{path}.part"
    if os.path.lexists(temporary):
        disk.unlink(temporary)
    data = json.dumps(content, indent=1, ensure_ascii=True).encode() + b"\n"
    try:
        descriptor = disk.create(temporary, 0o644)
        try:
            disk.write(descriptor, data, 0, temporary)
            disk.sync(descriptor, temporary)
        finally:
            os.close(descriptor)
        disk.rename(temporary, path)
    except OSError:
        with suppress(OSError):
            disk.unlink(temporary)
        raise
    disk.sync_directory(os.path.dirname(path))


def read_document(path: str, what: str, shown: str | None = None) -> dict[str, Any]:
    """The JSON object in a file, which must be a regular one; `shown` is what messages call it.

    Raises `UsageError` for anything else, `StoreIOError` and `UnreadableError` when it cannot be read.
    """
    shown = shown or escape_name(path)
    with open_source(path, "pread", name=shown) as source:
        data = within(source, _LARGEST, what)
    try:
        found = json.loads(data)
    except (ValueError, RecursionError):
        raise UsageError(f"{shown} is not {what}: not JSON") from None
    if not isinstance(found, dict):
        raise UsageError(f"{shown} is not {what}: not a JSON object")
    return found
