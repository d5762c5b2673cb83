"""The front of a log line: time, level, thread.

RocketMQ's own logback files write `yyy-MM-dd HH:mm:ss LEVEL THREAD - MESSAGE` with the time in GMT+8 wherever
the broker runs. Client logs have milliseconds and the class; collectors put their own words in front.
"""

from __future__ import annotations

import re
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import tzinfo

HEADER = r"^.{0,80}?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d"
"""how a line begins that is not a continuation"""
_LEVEL = re.compile(r"\b(TRACE|DEBUG|INFO|WARN|ERROR|FATAL)(?:ING)?\b")
_TIME = re.compile(rb"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(?:[.,](\d{1,9}))?(Z|[+-]\d\d:?\d\d)?(?![\d:])")
_HEADER = re.compile(HEADER)
_HEADER_BYTES = 200
_MESSAGE = re.compile(r"^.{0,160}? - ")
_EXCEPTION = re.compile(
    r"^\s*(?:Caused by: |Suppressed: )?"
    r"((?:[a-zA-Z_$][\w$]*\.)+[\w$]*(?:Exception|Error|Throwable|Failure)[\w$]*)(?:: |$|\s)"
)


def is_header(line: str) -> bool:
    """Whether a line opens an entry of a log."""
    return _HEADER.match(line) is not None


def exception_of(line: str) -> str | None:
    """The class of the exception that a line of a stack trace names."""
    match = _EXCEPTION.match(line)
    return match.group(1) if match else None


def level_of(line: str) -> str | None:
    """The level in the front of a line."""
    found = _HEADER.match(line)
    match = _LEVEL.search(line, found.end() if found else 0, _HEADER_BYTES)
    return match.group(1) if match else None


def message_of(line: str) -> str:
    """A line without time, level and thread."""
    if not (found := _HEADER.match(line)):
        return line
    rest = line[found.end() :]
    if match := _MESSAGE.match(rest):
        return rest[match.end() :]
    level = _LEVEL.search(rest, 0, _HEADER_BYTES)
    return rest[level.end() :].lstrip(" :-]") if level else rest.strip()


def time_of(line: bytes, zone: tzinfo | None) -> int | None:
    """Epoch milliseconds of a line, None without a time.

    zone: that of times that name none; None is the machine's.
    """
    match = _TIME.search(line, 0, _HEADER_BYTES)
    if match is None:
        return None
    day, clock, fraction, offset = (one.decode("ascii") if one else "" for one in match.groups())
    second = _second(f"{day}T{clock}{offset}", zone)
    return None if second is None else second + int(fraction[:3].ljust(3, "0") if fraction else 0)


@lru_cache(maxsize=4096)
def _second(text: str, zone: tzinfo | None) -> int | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return int(moment.replace(tzinfo=moment.tzinfo or zone).timestamp()) * 1000
