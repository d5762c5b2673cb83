"""Time zones and the ISO 8601 form of RocketMQ's epoch milliseconds."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from rmqtool.errors import UsageError

if TYPE_CHECKING:
    from datetime import date, tzinfo

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_FIXED = re.compile(r"(?:UTC|GMT)?([+-])([0-9]{1,2})(?::?([0-5][0-9]))?", re.IGNORECASE)
_RULE = re.compile(r"(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]{3,}>)[+-]?[0-9]")


@dataclass(frozen=True)
class Zone:
    """A time zone with the name that is shown to the user. `info` is None for the machine's own zone."""

    name: str
    info: tzinfo | None

    def iso(self, millis: int) -> str:
        """Epoch milliseconds as `2024-05-01T08:00:00.123+08:00`; outside years 1 to 9999 the plain number."""
        try:
            moment = (EPOCH + millis * _MILLISECOND).astimezone(self.info)
        except (OverflowError, ValueError):
            return f"{millis}ms"
        return moment.isoformat(timespec="milliseconds")

    def day_and_clock(self, millis: int) -> tuple[str | None, str]:
        """`2024-05-01, Asia/Shanghai (+08:00)` and `08:00:00.123`; a day that has no name is None."""
        if "T" not in (text := self.iso(millis)):
            return None, text
        day, _, rest = text.partition("T")
        offset = rest[12:]
        zone = self.name if self.name in {"UTC", offset} else f"{self.name} ({offset})"
        return f"{day}, {zone}", rest[:12]

    def moment(self, millis: int) -> str:
        """`2024-05-01 08:00:00`, where the zone stands elsewhere."""
        text = self.iso(millis)
        return text[:19].replace("T", " ") if "T" in text else text

    def date(self, millis: int) -> date:
        """The day of a moment, by the calendar of this zone. OverflowError outside years 1 to 9999."""
        return (EPOCH + millis * _MILLISECOND).astimezone(self.info).date()

    def millis(self, moment: datetime) -> int:
        """Epoch milliseconds of `moment`, which is read in this zone when it names none.

        Of an hour that the clock shows twice the first is taken. OverflowError outside years 1 to 9999.
        """
        if moment.tzinfo is None and self.info is not None:
            moment = moment.replace(tzinfo=self.info)
        return (moment.astimezone(UTC) - EPOCH) // _MILLISECOND


def zone_of(text: str) -> Zone:
    """The zone that `--tz` names: `local`, `UTC`, an offset (`+08:00`) or a name (`Asia/Shanghai`)."""
    if text.lower() == "local":
        return Zone(_local_name(), None)
    if text.upper() in {"UTC", "Z", "GMT"}:
        return Zone("UTC", UTC)
    if match := _FIXED.fullmatch(text):
        sign, hours, minutes = match.groups()
        offset = timedelta(hours=int(hours), minutes=int(minutes or 0))
        if offset < timedelta(hours=24):
            return Zone(text, timezone(-offset if sign == "-" else offset))
    try:
        return Zone(text, ZoneInfo(text))
    except (OSError, ValueError, KeyError) as error:  # a name that zoneinfo does not know is a KeyError
        hint = "give local, UTC, +08:00 or a name such as Asia/Shanghai"
        raise UsageError(f"--tz: '{text}' is not a valid time zone; {hint}") from error


def _local_name() -> str:
    """The zone that the C library uses: that of TZ, else of /etc/localtime, else its abbreviation."""
    given = os.environ.get("TZ")
    if given is not None:
        name = given.removeprefix(":")
        if not name:
            return "UTC"
        return name if _is_zone(name) else f"UTC (TZ={name} is not a valid time zone)"
    _, mark, name = os.path.realpath("/etc/localtime").partition("/zoneinfo/")
    if mark and Path("/etc/localtime").exists():
        return name
    return datetime.now().astimezone().tzname() or "local"


def _is_zone(name: str) -> bool:
    """A name or path of a zone file, or a rule of its own (`CST-8`, `<+08>-8`)."""
    if _RULE.match(name):
        return True
    try:
        return os.path.isfile(name) if os.path.isabs(name) else bool(ZoneInfo(name))
    except (OSError, ValueError, KeyError):
        return False


def age(millis: int) -> str:
    """A span of time in its two largest units."""
    sign, seconds = ("-" if millis < 0 else ""), abs(millis) // 1000
    for unit, small, size in (("d", "h", 86400), ("h", "m", 3600), ("m", "s", 60)):
        if seconds >= size:
            whole, rest = divmod(seconds, size)
            return f"{sign}{whole}{unit}{rest * {86400: 24, 3600: 60, 60: 60}[size] // size:02}{small}"
    return f"{sign}{seconds}s"
