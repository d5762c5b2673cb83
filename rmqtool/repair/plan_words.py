"""Numbers of things in the words of a plan."""

from __future__ import annotations


def counted(count: int, thing: str) -> str:
    """`1 record`, `2 records`."""
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def differ(count: int, queue_offset: int) -> str:
    """Of so many consume queue entries, the first of them at a queue offset."""
    if count == 1:
        return f"the consume queue entry at queue offset {queue_offset} differs from the log"
    return f"{count} consume queue entries from queue offset {queue_offset} on differ from the log"


def dropped(count: int, queue_offset: int) -> str:
    """Of so many consume queue entries, the first of them at a queue offset."""
    why = "that do not name the queue, and are dropped"
    if count == 1:
        why = "that does not name the queue, and is dropped"
        return f"the entry at queue offset {queue_offset} leads to a message {why}"
    return f"{count} entries from queue offset {queue_offset} on lead to messages {why}"
