"""Messages of a queue from a queue offset on: what a pull answers, and further records behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rmqtool.broker.get_message import GetMessageStatus, pull

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.broker.get_message import Delivered, Passes, Pull
    from rmqtool.broker.queue_view import QueueView

_GOES_ON = {
    GetMessageStatus.FOUND,
    GetMessageStatus.NO_MATCHED_MESSAGE,
    GetMessageStatus.MESSAGE_WAS_REMOVING,
    GetMessageStatus.OFFSET_FOUND_NULL,
}


def pull_on(
    view: QueueView,
    offset: int,
    count: int,
    passes: Passes | None = None,
    most: int | None = None,
) -> tuple[Pull, Iterator[Delivered]]:
    """One pull of `count`, and up to `most` messages (default `count`) from it and those behind it.

    Only where the first one finds something; past the broker's limits for one pull.
    """
    first = pull(view, offset, count, passes)
    return first, _deliveries(view, first, offset, count if most is None else most, passes)


def _deliveries(
    view: QueueView, first: Pull, offset: int, count: int, passes: Passes | None
) -> Iterator[Delivered]:
    answer, left = first, count
    if first.status is not GetMessageStatus.FOUND:
        return
    while True:
        yield from answer.delivered
        left -= sum(one.messages for one in answer.delivered)
        following = answer.next_begin_offset
        if left <= 0 or answer.status not in _GOES_ON or following <= offset or following >= view.max_offset:
            return
        offset = following
        answer = pull(view, offset, left, passes)
        first.skipped += answer.skipped
        first.first_skipped = answer.first_skipped if first.first_skipped is None else first.first_skipped
