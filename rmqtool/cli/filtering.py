"""What filters of the command line mean as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, TypeVar

from rmqtool.cli.parse import (
    INT32_MAX,
    named,
    parse_int,
    parse_name_value,
    parse_offset_range,
    parse_range,
    parse_text,
    parse_time,
)
from rmqtool.errors import UsageError
from rmqtool.query.message_filter import MessageFilter

if TYPE_CHECKING:
    from collections.abc import Callable

    from rmqtool.output.times import Zone
    from rmqtool.query.subscription import Subscription

T = TypeVar("T")
Many = list[str] | None


class Filters:
    """What a group of filters means. A command's group is a subclass that declares those that it offers."""

    end_flag: ClassVar[str] = "--to"
    topic: Many = None
    queue: Many = None
    store_from: str | None = None
    store_to: str | None = None
    born_from: str | None = None
    born_to: str | None = None
    offset_range: str | None = None
    queue_offset_range: str | None = None
    tag: Many = None
    key: Many = None
    uniq_key: Many = None
    property: Many = None
    body_contains: str | None = None
    limit: str | None = None
    sample: str | None = None

    def build(
        self,
        zone: Zone,
        now_millis: int | None = None,
        resolve: Callable[[int, int], int] | None = None,
        subscription: Subscription | None = None,
    ) -> MessageFilter:
        """The filter as data. `zone` reads times without one, `resolve` is that of `parse_offset`."""

        def moment(option: str, text: str | None) -> int | None:
            return _one(option, text, lambda value: parse_time(value, zone, now_millis))

        store_from, store_to = moment("--from", self.store_from), moment(self.end_flag, self.store_to)
        born_from, born_to = moment("--born-from", self.born_from), moment("--born-to", self.born_to)
        _in_order("--from", store_from, self.end_flag, store_to)
        _in_order("--born-from", born_from, "--born-to", born_to)
        offsets = _one("--offset-range", self.offset_range, lambda text: parse_offset_range(text, resolve))
        queue_offsets = _one("--queue-offset-range", self.queue_offset_range, _queue_offset_range)
        return MessageFilter(
            topics=tuple(_each("--topic", self.topic, parse_text)),
            queues=_queues(_each("--queue", self.queue, _queue_number)),
            store_from=store_from,
            store_to=store_to,
            born_from=born_from,
            born_to=born_to,
            offset_from=offsets[0] if offsets else None,
            offset_to=offsets[1] if offsets else None,
            queue_offset_from=queue_offsets[0] if queue_offsets else None,
            queue_offset_to=queue_offsets[1] if queue_offsets else None,
            tags=frozenset(_each("--tag", self.tag, parse_text)),
            keys=frozenset(_each("--key", self.key, parse_text)),
            uniq_keys=frozenset(_each("--uniq-key", self.uniq_key, parse_text)),
            properties=tuple(
                _each("--property", self.property, lambda text: parse_name_value(parse_text(text)))
            ),
            body_contains=_one("--body-contains", self.body_contains, parse_text),
            subscription=subscription,
            limit=_one("--limit", self.limit, _count),
            sample=_one("--sample", self.sample, _count),
        )


def _one(option: str, text: str | None, parse: Callable[[str], T]) -> T | None:
    if text is None:
        return None
    with named(option):
        return parse(text)


def _each(option: str, texts: list[str] | None, parse: Callable[[str], T]) -> list[T]:
    with named(option):
        return [parse(text) for text in texts or ()]


def _in_order(first: str, low: int | None, second: str, high: int | None) -> None:
    if low is not None and high is not None and low > high:
        raise UsageError(f"{first} is later than {second}")


def _queue_number(text: str) -> int | None:
    """A queue number, or None for `*`: every queue."""
    return None if text == "*" else parse_int(text, minimum=0, maximum=INT32_MAX)


def _queues(given: list[int | None]) -> frozenset[int]:
    """The numbers to keep; empty is every queue, also when `*` stands beside numbers."""
    numbers = frozenset(number for number in given if number is not None)
    return numbers if None not in given else frozenset()


def _queue_offset_range(text: str) -> tuple[int | None, int | None]:
    return parse_range(text, lambda side: parse_int(side, minimum=0))


def _count(text: str) -> int:
    return parse_int(text, minimum=0)
