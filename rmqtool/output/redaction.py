"""What `--redact` hides of one record; docs/guide.md states the rule, `redaction_rules` has its tables.

Text that is hidden reads `(redacted)`, numbers and bytes are null, and the row's `redacted` names both. What
is absent stays absent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from formats.properties import KEYS, TAGS, UNIQ_KEY
from rmqtool.output import redaction_rules as rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

REDACTED = "(redacted)"

_HOST_COLUMNS = ("born_host", "store_host", "offset_msg_id")
_TEXT_COLUMNS = (("tags", TAGS), ("keys", KEYS), ("uniq_key", UNIQ_KEY))
NEEDED = ("topic", "sys_flag", *_HOST_COLUMNS, "tags", "keys", "uniq_key", "properties")
"""columns of the record table by which a record is judged"""


@dataclass(frozen=True)
class Redaction:
    """what: some of `body`, `keys`, `hosts`, `properties`."""

    what: frozenset[str] = frozenset()

    def record(self, row: Mapping[str, Any]) -> RecordRedaction:
        """The rule for one record. row: its values of `NEEDED`."""
        hosts = [row[name] for name in ("born_host", "store_host") if row[name] is not None]
        return RecordRedaction(self.what, row["topic"], hosts, _keys(row))


def _keys(row: Mapping[str, Any]) -> list[str]:
    return [*(row["keys"] or ()), *filter(None, [row["uniq_key"]])]


class RecordRedaction:
    """What is hidden of one record: by what it is, and because a hidden text of the record stands in it."""

    def __init__(
        self, what: frozenset[str], topic: str | None, hosts: Sequence[str], keys: Sequence[str]
    ) -> None:
        self.what = what
        self._topic = topic
        self._hosts = hosts
        self._keys = keys
        secrets: set[bytes] = set()
        if "hosts" in what:
            secrets.update(form for host in hosts for form in rules.host_forms(host))
        if what & {"keys", "properties"}:
            secrets.update(form for key in keys for form in rules.key_forms(key))
        self._secrets = tuple(secrets)

    def inner(self, row: Mapping[str, Any]) -> RecordRedaction:
        """The rule for a message inside this record. row: its `keys` and `uniq_key`."""
        return RecordRedaction(self.what, self._topic, self._hosts, [*self._keys, *_keys(row)])

    def hides(self, name: str, value: str) -> bool:
        """Is the value of this property hidden?"""
        if not self.what or rules.is_number(name, value):
            return False
        if "properties" in self.what or rules.DIGEST in name or rules.DIGEST in value:
            return True
        by_name = ("hosts" in self.what and rules.names_a_host(name)) or (
            "keys" in self.what and rules.names_a_key(name)
        )
        return by_name or self._stands_in(value.encode("utf-8", "surrogatepass"))

    def hides_name(self, name: str) -> bool:
        """Is the name of this property hidden?"""
        if not self.what or name in rules.NAMES:
            return False
        return "properties" in self.what or self._stands_in(name.encode("utf-8", "surrogatepass"))

    def hides_body(self, sys_flag: int, plain: bytes | None, *, known: bool = True) -> bool:
        """Is the body hidden? plain: None where it cannot be decompressed. known: False without a body."""
        if not self.what or "body" in self.what:
            return bool(self.what)
        if rules.is_composed(self._topic, sys_flag, plain):
            return True
        if not known:
            return False
        if plain is None:
            return True
        packed = map(rules.packed, self._hosts if "hosts" in self.what else ())
        return any(one in plain for one in packed) or self._stands_in(plain)

    def properties(self, properties: Mapping[str, str]) -> dict[str, str]:
        """The properties as they are shown, in their order."""
        shown: dict[str, str] = {}
        for name, value in properties.items():
            seen = self.name(name, shown)
            shown[seen] = REDACTED if self.hides(name, value) else value
        return shown

    def name(self, name: str, taken: Iterable[str] = ()) -> str:
        """The name as it is shown; hidden ones are counted so that none gets lost."""
        if not self.hides_name(name):
            return name
        number = sum(one.startswith(REDACTED[:-1]) for one in taken)
        return REDACTED if not number else f"{REDACTED[:-1]} {number + 1})"

    def changes(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """The columns of the row (`NEEDED`) that are shown otherwise, and how."""
        found: dict[str, Any] = {}
        if "hosts" in self.what:
            found |= {name: REDACTED for name in _HOST_COLUMNS if row.get(name) is not None}
        for column, name in _TEXT_COLUMNS:
            value = row[column]
            if value is not None and self.hides(name, value if column != "keys" else " ".join(value)):
                found[column] = [REDACTED] if column == "keys" else REDACTED
        properties = row["properties"]
        if properties:
            shown = self.properties(properties)
            if shown != properties:
                found["properties"] = shown
        return found

    def _stands_in(self, raw: bytes) -> bool:
        lowered = raw.lower()
        if "hosts" in self.what and rules.holds_host_text(lowered):
            return True
        return any(secret in lowered for secret in self._secrets)


def hide_read_bytes(row: dict[str, Any]) -> dict[str, Any]:
    """A row of bytes that are not a record, without the values read there, which may be any text of one."""
    if row.get("reason") in {None, "missing", "unreadable", "zero"} and "stored_length" not in row:
        return row
    names = [name for name in ("expected", "found", "stored_length", "frame_error") if name in row]
    return row | dict.fromkeys(names) | {"redacted": names}
