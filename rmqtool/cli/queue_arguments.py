"""The arguments TOPIC QUEUE OFFSET of commands about one queue."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rmqtool.cli.parse import INT32_MAX, named, parse_int
from rmqtool.errors import UsageError

if TYPE_CHECKING:
    from rmqtool.broker.queue_view import QueueView
    from rmqtool.cli.context import Context
    from rmqtool.store.layout import Store


def parse_queue(text: str) -> int:
    """A queue number."""
    with named("QUEUE"):
        return parse_int(text, minimum=0, maximum=INT32_MAX)


def parse_count(text: str) -> int:
    """How many messages, at least one."""
    with named("--number"):
        return parse_int(text, minimum=1)


def parse_queue_offset(
    store: Store, view: QueueView, topic: str, queue_id: int, text: str | None, group: str | None
) -> int:
    """A queue offset: a number, `min`, `max` (the last message), or where the group goes on."""
    if text == "min":
        return max(view.min_offset, 0)
    if text == "max":
        return max(view.max_offset - 1, view.min_offset, 0)
    if text is not None:
        with named("OFFSET"):
            return parse_int(text)
    if group is None:
        raise UsageError("OFFSET is missing: give a queue offset, min or max, or --group")
    from rmqtool.query.groups import committed_offset

    committed = committed_offset(store, group, topic, queue_id)
    if committed is None:
        from rmqtool.query.near import known_groups, near, suggestion

        names = [name for name in near(group, known_groups(store)) if name != group]
        text = f"group {group} has no committed offset in queue {queue_id} of topic {topic}: give an OFFSET"
        raise UsageError(text + suggestion(names))
    return committed


def unlisted_queue(context: Context, store: Store, topic: str, queue_id: int) -> list[dict[str, Any]]:
    """Directories on the way to the queue that could not be listed, as rows of `not_covered`."""
    from rmqtool.cli.left_out import unlisted
    from rmqtool.store.names import escape_name

    places = [escape_name(f"{kind}/{topic}/{queue_id}/") for kind in ("consumequeue", "batchconsumequeue")]
    rows = unlisted(store, context)
    return [row for row in rows if any(place.startswith(f"{row['path']}/") for place in places)]


def say_queues(context: Context, store: Store, topic: str, view: QueueView) -> None:
    """Says which queues there are when the one asked for has no directory."""
    if view.files:
        return
    from rmqtool.query.served_queue import queue_numbers

    numbers = queue_numbers(store, topic)
    if numbers:
        context.console.note(f"topic {topic} has queues {', '.join(map(str, numbers))}")
    else:
        from rmqtool.query.near import near, suggestion
        from rmqtool.query.topics import known_topics

        names = near(topic, known_topics(store))
        text = f"there is no queue of topic {topic} in this store"
        context.console.note(text + suggestion([name for name in names if name != topic]))
