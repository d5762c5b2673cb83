"""The filters and body options of commands that list messages."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import typer

from rmqtool.cli.completing import complete_topics
from rmqtool.cli.filtering import Filters, Many
from rmqtool.cli.parse import named, parse_names, parse_text
from rmqtool.errors import UsageError

if TYPE_CHECKING:
    from rmqtool.cli.context import Context
    from rmqtool.query.subscription import Subscription

REDACTABLE = ("body", "keys", "hosts", "properties")

_PANEL = "Filters"
_BODIES = "Bodies"


def _text(flag: str, metavar: str, help_text: str) -> typer.models.OptionInfo:
    option: typer.models.OptionInfo = typer.Option(
        flag, metavar=metavar, help=help_text, show_default=False, rich_help_panel=_PANEL
    )
    return option


@dataclass(frozen=True)
class SubscriptionOptions:
    """What a consumer subscribed to."""

    filter: Annotated[
        str | None,
        _text(
            "--filter",
            "EXPR",
            "Passes this subscription expression: tags as 'a || b', or an SQL92 condition.",
        ),
    ] = None
    filter_type: Annotated[
        Literal["TAG", "SQL92"] | None,
        typer.Option(
            "--filter-type",
            help="Type of the expression in --filter; default TAG.",
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
        context.console.note(f"a broker ignores the end of the expression: {subscription.ignored}")


TagFilter = Annotated[Many, _text("--tag", "TAG", "TAGS is exactly TAG; repeatable.")]
KeyFilter = Annotated[Many, _text("--key", "KEY", "One of KEYS is KEY; repeatable.")]


@dataclass(frozen=True)
class PlaceFilters(Filters):
    """Whose messages."""

    topic: Annotated[
        Many,
        typer.Option(
            "--topic",
            metavar="GLOB",
            help="Topic, also as a glob; repeatable.",
            show_default=False,
            rich_help_panel=_PANEL,
            autocompletion=complete_topics,
        ),
    ] = None
    queue: Annotated[Many, _text("--queue", "N", "Queue number, or * for all; repeatable.")] = None


@dataclass(frozen=True)
class RangeFilters(Filters):
    """When they were stored and born, and where they lie in the log."""

    store_from: Annotated[str | None, _text("--from", "TIME", "Stored at or after TIME.")] = None
    store_to: Annotated[str | None, _text("--to", "TIME", "Stored before TIME.")] = None
    born_from: Annotated[str | None, _text("--born-from", "TIME", "Born at or after TIME.")] = None
    born_to: Annotated[str | None, _text("--born-to", "TIME", "Born before TIME.")] = None
    offset_range: Annotated[
        str | None, _text("--offset-range", "A:B", "Physical offsets from A up to but excluding B.")
    ] = None


@dataclass(frozen=True)
class QueueRangeFilters(Filters):
    """Where they lie in their queues."""

    queue_offset_range: Annotated[
        str | None, _text("--queue-offset-range", "A:B", "Queue offsets from A up to but excluding B.")
    ] = None


@dataclass(frozen=True)
class ContentFilters(Filters):
    """What they say, beside their keys."""

    tag: TagFilter = None
    property: Annotated[
        Many, _text("--property", "NAME=VALUE", "Has this property; if repeated, all must be present.")
    ] = None
    body_contains: Annotated[
        str | None, _text("--body-contains", "TEXT", "The decompressed body contains TEXT.")
    ] = None


@dataclass(frozen=True)
class KeyFilters(Filters):
    """Their keys."""

    key: KeyFilter = None
    uniq_key: Annotated[Many, _text("--uniq-key", "ID", "UNIQ_KEY is ID; repeatable.")] = None


# Python hands on the fields of bases from the last to the first: so does --help.
@dataclass(frozen=True)
class KeylessFilters(ContentFilters, QueueRangeFilters, RangeFilters, PlaceFilters):
    """Which messages count, whatever their keys."""


@dataclass(frozen=True)
class ChoosingOptions(KeyFilters, KeylessFilters):
    """Which messages count. `build` is that of `Filters`."""


@dataclass(frozen=True)
class ListingFilters(ChoosingOptions):
    """The same for what goes through a whole log and may stop early."""

    limit: Annotated[str | None, _text("--limit", "N", "Stop after N messages.")] = None


@dataclass(frozen=True)
class FilterOptions(ListingFilters):
    """The same with `--sample`, where messages can be spread over all that pass."""

    sample: Annotated[str | None, _text("--sample", "N", "N messages spread over all that pass.")] = None


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
