"""Edits of derived files, with the modification times that writing their records leaves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.repair.content import Inline
from rmqtool.repair.plan import Action, Change, Edit

if TYPE_CHECKING:
    from rmqtool.repair.content import Content

_MS = 1_000_000


def put_whole(path: str, content: Content, why: str, message: str, timestamp: int | None) -> Edit:
    """A new file; timestamp: store time of its last record, ms."""
    return Edit(
        Change(
            action=Action.PUT,
            path=path,
            length=content.size,
            size=content.size,
            mtime_ns=timestamp * _MS if timestamp else None,
            why=why,
            message=message,
        ),
        content,
    )


def over(path: str, position: int, data: bytes, why: str, message: str, timestamp: int | None) -> Edit:
    """Bytes over those of a file that is there; timestamp: as of `put_whole`."""
    return Edit(
        Change(
            action=Action.WRITE,
            path=path,
            position=position,
            length=len(data),
            mtime_ns=timestamp * _MS if timestamp else None,
            why=why,
            message=message,
        ),
        Inline(data),
    )
