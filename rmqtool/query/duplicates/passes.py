"""Which records are there more than once, in as many passes over them as memory demands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.query.duplicates.hashes import Repeated
from rmqtool.query.duplicates.suspects import Suspects

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rmqtool.query.duplicates.verdict import Duplicates

    Row = dict[str, Any]


def judged(
    first: Repeated, again: Callable[[Repeated | Suspects], None], reported: Duplicates
) -> Iterator[Row]:
    """The rows of `Duplicates`, in order of the keys as long as these fit into one pass.

    first: has been given all records once. again: gives them to another taker. A share of the keys at a
    time: one pass finds which of them come again, and where some do, another one gets their records.
    """
    repeated = first
    while True:
        hashes = repeated.found()
        shares = [repeated.share] if len(hashes) else []
        while shares:
            suspects = Suspects(hashes, repeated.by_key, shares.pop(), room=repeated.room)
            again(suspects)
            yield from reported.rows(suspects.table())
            shares += suspects.left
        if not repeated.left:
            return
        repeated = Repeated(repeated.by_key, repeated.left.pop(), repeated.left, repeated.room)
        again(repeated)
