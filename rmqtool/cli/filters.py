"""The filters and body options of commands that list messages, and what they mean as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal, TypeVar

import typer

from rmqtool.cli.parse import (
    named,
    parse_int,
    parse_name_value,
    parse_names,
    parse_offset_range,
    parse_range,
    parse_text,
    parse_time,
)
from rmqtool.errors import UsageError
from rmqtool.query.message_filter import MessageFilter

if TYPE_CHECKING:
    from collections.abc import Callable

    from rmqtool.cli.context import Context
    from rmqtool.output.times import Zone
    from rmqtool.query.subscription import Subscription

T = TypeVar("T")

BODY_FORMS = ("auto", "utf8", "gbk", "hex", "base64", "none")
REDACTABLE = ("body", "keys", "hosts", "properties")
INT32_MAX = (1 << 31) - 1

_PANEL = "Filters"
_BODIES = "Bodies"


def _text(flag: str, metavar: str, help_text: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        flag, metavar=metavar, help=help_text, show_default=False, rich_help_panel=_PANEL
    )
    return option


Many = list[str] | None


@dataclass(frozen=True)
class SubscriptionOptions:
    """What a consumer subscribed to."""

    filter: Annotated[
        str | None,
        _text("--filter", "EXPR", "Passes this subscription: tags as 'a || b', or with SQL92 a condition."),
    ] = None
    filter_type: Annotated[
        Literal["TAG", "SQL92"] | None,
        typer.Option(
            "--filter-type",
            help="What --filter is; default TAG.",
            show_default=False,
            rich_help_panel=_PANEL,
            case_sensitive=False,
        ),
    ] = None

    def build(self) -> Subscription | None:
        """The subscription, None without `--filter`."""
        if self.filter is None:
            if self.filter_type is not None:
                raise UsageError("--filter-type goes with --filter")
            return None
        from rmqtool.query.subscription import FilterType, Subscription

        with named("--filter"):
            return Subscription.of(parse_text(self.filter), FilterType(self.filter_type or "TAG"))


def say_ignored(context: Context, subscription: Subscription | None) -> None:
    """Says what a broker does not look at in an expression that it takes."""
    if subscription is not None and subscription.ignored:
        context.talk.note(f"a broker does not look at the end of the expression: {subscription.ignored}")


TopicFilter = Annotated[Many, _text("--topic", "GLOB", "Topic, also as a glob; repeatable.")]
QueueFilter = Annotated[Many, _text("--queue", "N", "Queue number, or * for all; repeatable.")]
FromFilter = Annotated[str | None, _text("--from", "TIME", "Stored at or after TIME.")]
ToFilter = Annotated[str | None, _text("--to", "TIME", "Stored before TIME.")]
BornFromFilter = Annotated[str | None, _text("--born-from", "TIME", "Born at or after TIME.")]
BornToFilter = Annotated[str | None, _text("--born-to", "TIME", "Born before TIME.")]
OffsetRange = Annotated[
    str | None, _text("--offset-range", "A:B", "Physical offsets from A up to, without, B.")
]
QueueOffsetRange = Annotated[
    str | None, _text("--queue-offset-range", "A:B", "Queue offsets from A up to, without, B.")
]
TagFilter = Annotated[Many, _text("--tag", "TAG", "TAGS is exactly TAG; repeatable.")]
KeyFilter = Annotated[Many, _text("--key", "KEY", "One of KEYS is KEY; repeatable.")]
UniqKeyFilter = Annotated[Many, _text("--uniq-key", "ID", "UNIQ_KEY is ID; repeatable.")]
PropertyFilter = Annotated[
    Many, _text("--property", "NAME=VALUE", "Has this property; all of several must be there.")
]
BodyFilter = Annotated[str | None, _text("--body-contains", "TEXT", "TEXT stands in the decompressed body.")]
Limit = Annotated[str | None, _text("--limit", "N", "Stop after N messages.")]
Sample = Annotated[str | None, _text("--sample", "N", "N messages spread over all that pass.")]


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


@dataclass(frozen=True)
class ChoosingOptions(Filters):
    """Which messages count. `build` is that of `Filters`."""

    topic: TopicFilter = None
    queue: QueueFilter = None
    store_from: FromFilter = None
    store_to: ToFilter = None
    born_from: BornFromFilter = None
    born_to: BornToFilter = None
    offset_range: OffsetRange = None
    queue_offset_range: QueueOffsetRange = None
    tag: TagFilter = None
    key: KeyFilter = None
    uniq_key: UniqKeyFilter = None
    property: PropertyFilter = None
    body_contains: BodyFilter = None


@dataclass(frozen=True)
class ListingFilters(ChoosingOptions):
    """The same for what goes through a whole log and may stop early."""

    limit: Limit = None


@dataclass(frozen=True)
class FilterOptions(ListingFilters):
    """The same with `--sample`, where messages can be spread over all that pass."""

    sample: Sample = None


@dataclass(frozen=True)
class ExportFilterOptions(FilterOptions):
    """The same where `--to` names a file."""

    end_flag: ClassVar[str] = "--until"
    store_to: Annotated[str | None, _text("--until", "TIME", "Stored before TIME.")] = None


@dataclass(frozen=True)
class ExportChoosingOptions(ChoosingOptions):
    """Which messages count, where `--to` names a directory."""

    end_flag: ClassVar[str] = "--until"
    store_to: Annotated[str | None, _text("--until", "TIME", "Stored before TIME.")] = None


@dataclass(frozen=True)
class RedactionOptions:
    """What is hidden."""

    redact: Annotated[
        str | None,
        typer.Option(
            "--redact",
            metavar="WHAT",
            help="Hide some of body,keys,hosts,properties (comma-separated), with all copies and digests of "
            "them: in ids, traces, batches, other properties, hex views. See Redacting in the guide.",
            show_default=False,
            rich_help_panel=_BODIES,
        ),
    ] = None

    @property
    def redacted(self) -> frozenset[str]:
        """What is hidden: some of body, keys, hosts, properties."""
        if self.redact is None:
            return frozenset()
        with named("--redact"):
            return parse_names(self.redact, REDACTABLE)


@dataclass(frozen=True)
class BodyOptions(RedactionOptions):
    """Whether and how bodies are shown, and what is hidden."""

    body: Annotated[
        Literal["auto", "utf8", "gbk", "hex", "base64", "none"] | None,
        typer.Option(
            "--body",
            help="Show bodies, decompressed, in this form; --body alone is auto.",
            show_default=False,
            rich_help_panel=_BODIES,
        ),
    ] = None
    body_sha256: Annotated[
        bool,
        typer.Option(
            "--body-sha256", help="SHA-256 of bodies, as stored and decompressed.", rich_help_panel=_BODIES
        ),
    ] = False


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
        raise UsageError(f"{first} lies behind {second}")


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
