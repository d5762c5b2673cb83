"""Options of a stream: those of a read, where it begins, and what becomes of what is gone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rmqtool.errors import UsageError
from rmqtool.pipeline.follow import EARLIEST, LATEST
from rmqtool.pipeline.options import SourceOptions, moment, parse_options

if TYPE_CHECKING:
    from collections.abc import Mapping

STREAM_OPTIONS = ("start", "expired", "max_bytes_per_trigger")
EXPIRED = ("fail", "skip")


@dataclass(frozen=True)
class StreamOptions:
    """What is followed.

    start: `earliest`, `latest`, a physical offset, or with `start_is_time` epoch milliseconds. expired: what
    becomes of a range whose segment is gone before it was read, `fail` or `skip`. most: bytes of all logs
    that a batch reads, about; None for all there is.
    """

    source: SourceOptions
    start: str | int = EARLIEST
    start_is_time: bool = False
    expired: str = "fail"
    most: int | None = None


def parse_stream_options(given: Mapping[str, str]) -> StreamOptions:
    """The options of `spark.readStream`; raises `UsageError` for what is unknown or cannot be meant."""
    own = {name.lower(): value for name, value in given.items() if name.lower() in STREAM_OPTIONS}
    source = parse_options({name: value for name, value in given.items() if name.lower() not in own})
    start, is_time = parse_start(own.get("start", EARLIEST))
    expired = own.get("expired", "fail")
    if expired not in EXPIRED:
        raise UsageError(f"option expired: {expired} is neither of {', '.join(EXPIRED)}")
    most = own.get("max_bytes_per_trigger")
    if most is not None and not (most.isdecimal() and int(most)):
        raise UsageError(f"option max_bytes_per_trigger: '{most}' is not a valid number of bytes")
    return StreamOptions(source, start, is_time, expired, None if most is None else int(most))


def parse_start(text: str) -> tuple[str | int, bool]:
    """Where a stream begins, and whether that is a time: a number is a physical offset."""
    if text in {EARLIEST, LATEST}:
        return text, False
    if text.isdecimal():
        return int(text), False
    try:
        return moment("start", text), True
    except UsageError as error:
        known = "earliest, latest, a physical offset, an ISO 8601 time"
        raise UsageError(f"start: '{text}' must be one of: {known}") from error
