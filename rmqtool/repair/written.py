"""Small JSON documents on the disk: written whole or not at all."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from rmqtool.errors import StoreIOError
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rmqtool.repair.disk import Disk


def write_document(disk: Disk, path: str, content: Mapping[str, Any]) -> None:
    """Writes JSON into `path`, in place of what was there, synced with its directory. Raises `OSError`."""
    temporary = f"{path}.part"
    if os.path.lexists(temporary):
        disk.unlink(temporary)
    descriptor = disk.create(temporary, 0o644)
    try:
        data = json.dumps(content, indent=1, ensure_ascii=True).encode() + b"\n"
        disk.write(descriptor, data, 0, temporary)
        disk.sync(descriptor, temporary)
    finally:
        os.close(descriptor)
    disk.rename(temporary, path)
    disk.sync_directory(os.path.dirname(path))


def read_document(path: str, what: str) -> dict[str, Any]:
    """The JSON object in a file. Raises `StoreIOError` when it cannot be read, `ValueError` for others."""
    try:
        with open(path, "rb") as file:
            found = json.loads(file.read())
    except OSError as error:
        raise StoreIOError(f"{escape_name(path)}: {error.strerror}") from error
    except ValueError:
        raise ValueError(f"{escape_name(path)} is no {what}: not JSON") from None
    if not isinstance(found, dict):
        raise ValueError(f"{escape_name(path)} is no {what}: no JSON object")  # noqa: TRY004 - of the file's content
    return found
