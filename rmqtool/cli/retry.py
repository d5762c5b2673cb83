"""`rmqtool retry`: messages that consumers gave back."""

from __future__ import annotations

from rmqtool.cli.options import OutputOptions, ReadOptions, StoreArgument, StoreOptions
from rmqtool.cli.returned import ReturnedOptions, list_returned
from rmqtool.cli.verb import verb


@verb(
    examples=[
        "rmqtool retry /data/store",
        "rmqtool retry /data/store --group 'order-*' --to again.replay",
    ]
)
def command(
    path: StoreArgument = None,
    *,
    returned: ReturnedOptions,
    store: StoreOptions,
    read: ReadOptions,
    output: OutputOptions,
) -> int:
    """Messages that consumers sent back, in their retry topics.

    Group, original topic and id, number of retries, and whether the group has consumed them. What is still
    delayed is listed by delayed, what was retried too often by dlq.
    """
    return list_returned("retry", path, returned, store, read, output)
