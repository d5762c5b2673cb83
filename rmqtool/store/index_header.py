"""The header of an index file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.index import Header
from formats.primitives import sizeof
from rmqtool.errors import RmqtoolError

if TYPE_CHECKING:
    from formats.primitives import Container
    from rmqtool.store.files import StoreFile


def index_header(file: StoreFile) -> Container | None:
    """None when it cannot be read, or is too short for one."""
    try:
        with file.open("pread") as source:
            raw = source.window(0, sizeof(Header)).tobytes()
    except RmqtoolError:
        return None
    return Header.parse(raw) if len(raw) == sizeof(Header) else None
