"""`config/*.json` as the broker left them, and how far they are JSON.

RocketMQ writes with fastjson: maps with integer keys get bare keys (`{0:250}`), which is normal and no
damage. Damage is what a crash leaves (cut files, NUL tails, since ≥ 5.1.0 a file is overwritten in place)
or an editor (BOM, trailing text, duplicate keys).
"""

from __future__ import annotations

import json
import marshal
import os
import re
import stat
from collections import OrderedDict
from dataclasses import dataclass, replace
from enum import StrEnum
from math import isfinite
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple

from formats.java import java_parse_int
from rmqtool.errors import RmqtoolError, VanishedError
from rmqtool.store.config_types import OUT_OF_RANGE, BareName, Repeated, misfits, misnamed, with_its_names
from rmqtool.store.fastjson import LEVELS, SPECIAL, TRIMMED, only_blank, parse
from rmqtool.store.names import INT_MAX
from rmqtool.store.remote.address import is_remote
from rmqtool.store.whole import TABLE, read_whole, within

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from rmqtool.store.files import StoreFile

_DEEP = f"is nested more than {LEVELS} levels deep"
_JSON_NAMES = {list: "a list", str: "a string", bool: "a truth value", type(None): "null"}
_BARE_KEY = re.compile(r'("(?:[^"\\]|\\.)*")|([{,]\s*)(-?(?:0|[1-9]\d*))(?=\s*:)', re.DOTALL)
_BARE = "\ud800"
"""begins names that had no quotes, until these are made; no UTF-8 has it"""
_BARE_ESCAPED = re.compile(r"\\ud800", re.IGNORECASE)


class ParseState(StrEnum):
    """How a configuration file was read.

    strict: JSON as in the standard. fastjson: JSON with bare integer keys, as the broker writes. lenient:
    read, but with something in it that no broker writes. unparsable, empty, missing, unreadable: no data.
    """

    STRICT = "strict"
    FASTJSON = "fastjson"
    LENIENT = "lenient"
    UNPARSABLE = "unparsable"
    EMPTY = "empty"
    MISSING = "missing"
    UNREADABLE = "unreadable"

    @property
    def has_data(self) -> bool:
        """Whether something was read."""
        return self in (ParseState.STRICT, ParseState.FASTJSON, ParseState.LENIENT)


class ParsedConfig(NamedTuple):
    """data: the object, None without one. detail: what is remarkable, one line, None when nothing is."""

    data: Any
    state: ParseState
    detail: str | None


def has_entries(data: Any) -> bool:
    """Whether a table holds anything besides its version: `{"offsetTable":{}}` is an empty one."""
    return isinstance(data, dict) and any(held for name, held in data.items() if name != "dataVersion")


def lost_to_backup(data: Any, backup: Any) -> bool:
    """Whether a table holds nothing, its `.bak` does, and no later version says that it was all removed.

    A broker that starts without a table writes an empty one, and with the next write the same over `.bak`.
    """
    return not has_entries(data) and has_entries(backup) and _counter(data) <= _counter(backup)


def _counter(data: Any) -> int:
    version = data.get("dataVersion") if isinstance(data, dict) else None
    counter = version.get("counter") if isinstance(version, dict) else None
    return counter if isinstance(counter, int) else 0


class _Values:
    """What becomes of objects and numbers while they are read; it remembers what is remarkable.

    The last of equal keys counts, as with fastjson. What no double (1e999) or no long holds is null, unless a
    reader of types wants it: he gets a mark in its place, what stood under a key earlier, and which names
    have no quotes. mark: begins these.
    """

    def __init__(self, *, for_types: bool, mark: str = "") -> None:
        self.keys: list[str] = []
        self._numbers: list[str] = []
        self._for_types, self._mark = for_types, mark

    @property
    def remarks(self) -> list[str]:
        keys = ", ".join(map(repr, self.keys[:3]))
        return [f"has duplicate keys: {keys}"] * bool(keys) + self._numbers

    def made(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """An object of its names and values."""
        if self._mark:
            pairs = [(self.name(key[1:]) if key.startswith(self._mark) else key, held) for key, held in pairs]
        result = dict(pairs)
        if not SPECIAL.isdisjoint(result):
            raise ValueError(f"{' and '.join(sorted(SPECIAL & result.keys()))} is not a name")
        if len(result) == len(pairs):
            return result
        last = {key: at for at, (key, _) in enumerate(pairs)}
        earlier = tuple(pair for at, pair in enumerate(pairs) if last[pair[0]] != at)
        self.keys += [key for key, _ in earlier]
        if self._for_types:
            result = Repeated(pair for at, pair in enumerate(pairs) if last[pair[0]] == at)
            result.earlier = earlier
        return result

    def name(self, text: str) -> str:
        """A whole number without quotes as a name."""
        return BareName(text) if self._for_types else text

    def real(self, text: str) -> Any:
        """One with a point or an exponent; NaN."""
        value = float(text)
        return value if isfinite(value) else self._replaced(text)

    def whole(self, text: str) -> Any:
        """Any other."""
        value = java_parse_int(text, 64)
        return self._replaced(text) if value is None else value

    def _replaced(self, text: str) -> Any:
        self._numbers.append(f"has a number out of range, read as null: {text[:40]}")
        return OUT_OF_RANGE if self._for_types else None


def _too_deep(data: dict[str, Any]) -> bool:
    """More levels than a reader of our own JSON can be expected to take."""
    level: list[Any] = [data]
    for _ in range(LEVELS):
        inner = (item for held in level for item in (held.values() if isinstance(held, dict) else held))
        level = [item for item in inner if isinstance(item, (dict, list))]
        if not level:
            return False
    return True


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _quote_bare_keys(text: str, mark: str = "") -> tuple[str, bool]:
    """`text` with integer keys in quotes, behind `mark`, and whether it had any; strings are left alone."""
    found = False

    def quote(match: re.Match[str]) -> str:
        nonlocal found
        if match.group(1) is not None:
            return match.group(1)
        found = True
        return f'{match.group(2)}"{mark}{match.group(3)}"'

    return _BARE_KEY.sub(quote, text), found


def _decode(raw: bytes) -> tuple[str, list[str]]:
    remarks: list[str] = []
    if raw.startswith(b"\xef\xbb\xbf"):
        raw = raw[3:]
        remarks.append("starts with a byte order mark")
    body = raw.rstrip(b"\0")
    if len(body) != len(raw):
        remarks.append(f"ends with {len(raw) - len(body)} NUL bytes")
    try:
        return body.decode("utf-8"), remarks
    except UnicodeDecodeError as error:
        remarks.append(f"is not UTF-8 at byte {error.start}")
        return body.decode("utf-8", "replace"), remarks


def parse_config(raw: bytes) -> ParsedConfig:
    """Parses the bytes of a configuration file: JSON with bare keys, else as far as fastjson goes."""
    return _parse(raw)


def _parse(raw: bytes, *, for_types: bool = False) -> ParsedConfig:
    """The same; for_types: with all that a broker's types decide about, see `_Values`."""
    if not raw.strip(b"\0 \t\r\n"):
        what = "NUL" if b"\0" in raw else "blank"
        return ParsedConfig(None, ParseState.EMPTY, f"holds {len(raw)} {what} bytes" if raw else None)
    text, remarks = _decode(raw)
    text = text.strip(TRIMMED)
    if not text:
        return ParsedConfig(None, ParseState.EMPTY, "; ".join([f"holds {len(raw)} blank bytes", *remarks]))
    return _read(text, remarks, for_types=for_types)


def _read(text: str, remarks: list[str], *, for_types: bool) -> ParsedConfig:
    """What `_parse` does with a text that is not blank."""
    if for_types and _BARE_ESCAPED.search(text):
        return _parse_leniently(text, remarks, ValueError("half a character"), for_types=True)
    mark = _BARE if for_types else ""
    quoted, bare = _quote_bare_keys(text, mark)
    values = _Values(for_types=for_types, mark=mark)
    decoder = json.JSONDecoder(
        object_pairs_hook=values.made,
        parse_float=values.real,
        parse_int=values.whole,
        parse_constant=_refuse_constant,
    )
    try:
        parsed: tuple[Any, int] = decoder.raw_decode(quoted)
    except (ValueError, RecursionError) as error:
        return _parse_leniently(text, remarks, error, for_types=for_types)
    data, end = parsed
    rest = quoted[end:].strip(TRIMMED)
    if rest and (only_blank(quoted[end:] + "\n") or not isinstance(data, dict)):
        more = ValueError("more follows behind the value")
        return _parse_leniently(text, remarks, more, for_types=for_types)
    if rest:
        remarks.append(f"{len(rest.encode('utf-8', 'replace'))} bytes follow behind the end of the object")
    remarks += values.remarks
    if not isinstance(data, dict):
        what = _JSON_NAMES.get(type(data), "a number")
        return ParsedConfig(None, ParseState.UNPARSABLE, f"holds {what}, not an object")
    if _too_deep(data):
        return ParsedConfig(None, ParseState.UNPARSABLE, _DEEP)
    if remarks:
        return ParsedConfig(data, ParseState.LENIENT, "; ".join(remarks))
    return ParsedConfig(data, ParseState.FASTJSON if bare else ParseState.STRICT, None)


def _parse_leniently(text: str, remarks: list[str], strict: Exception, *, for_types: bool) -> ParsedConfig:
    """What fastjson also takes: single quotes, bare words, comments, trailing commas."""
    problem = "; ".join([f"is not JSON: {strict}", *remarks])
    values = _Values(for_types=for_types)
    try:
        data = parse(text + "\n", values)
    except ValueError:
        return ParsedConfig(None, ParseState.UNPARSABLE, problem)
    if not isinstance(data, dict):
        return ParsedConfig(None, ParseState.UNPARSABLE, problem)
    return ParsedConfig(data, ParseState.LENIENT, "; ".join([problem, *values.remarks]))


def for_types(raw: bytes, parsed: ParsedConfig) -> Any:
    """What `misfits` takes: all that a broker's types decide about. parsed: of `raw`, with data.

    What was parsed has null for numbers out of range, no earlier values, and no names that are known as bare.
    """
    return parsed.data if parsed.state is ParseState.STRICT else _parse(raw, for_types=True).data


def parse_table(raw: bytes, name: str, *, before_5: bool | None = None) -> ParsedConfig:
    """The same of the file `name` in `config/`: no data where a value in it keeps brokers from loading it.

    before_5: as a release before 5.0, or a later one, reads it; None when both have to refuse it.
    """
    table = name.removesuffix(".bak")
    return _PARSED.get((raw, table, before_5), lambda: _parse_table(raw, table, before_5))


def _parse_table(raw: bytes, table: str, before_5: bool | None) -> ParsedConfig:
    parsed = _PARSED.get((raw, "", None), lambda: parse_config(raw))
    if not parsed.state.has_data:
        return parsed
    parsed = _named(parsed, table)
    releases = (True, False) if before_5 is None else (before_5,)
    data = for_types(raw, parsed)
    wrong = [next(misfits(table, data, before_5=one), None) for one in releases]
    if wrong[0] is None or None in wrong:
        return parsed
    return ParsedConfig(None, ParseState.UNPARSABLE, str(wrong[0]))


def _named(parsed: ParsedConfig, table: str) -> ParsedConfig:
    """With the names of fields that brokers read, and a remark where there are others."""
    data = with_its_names(table, parsed.data)
    remarks = [f"writes {one} in another way" for one in data if one not in parsed.data]
    if odd := misnamed(table, data):
        remarks.append(f"has its entries under {odd[:40]!r}, which brokers do not read")
    if not remarks:
        return parsed
    detail = "; ".join([*([parsed.detail] if parsed.detail else []), *remarks])
    return ParsedConfig(data, ParseState.LENIENT, detail)


class _Parsed:
    """Answers by the bytes of a table: a plan asks for the same ones some thirty times, of many views.

    Those asked for last are kept, with `_KEPT` bytes of tables together. Every caller gets data of its own.
    """

    def __init__(self) -> None:
        self._kept: OrderedDict[tuple[bytes, str, bool | None], tuple[bytes, ParsedConfig]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()

    def get(self, key: tuple[bytes, str, bool | None], parse: Callable[[], ParsedConfig]) -> ParsedConfig:
        with self._lock:
            found = self._kept.get(key)
            if found is not None:
                self._kept.move_to_end(key)
        if found is not None:
            data, parsed = found
            return parsed._replace(data=marshal.loads(data))  # noqa: S302 - made below
        parsed = parse()
        found = marshal.dumps(parsed.data), parsed._replace(data=None)
        with self._lock:
            if self._kept.setdefault(key, found) is found:
                self._bytes += len(key[0]) + _LEAST
            while self._bytes > _KEPT:
                self._bytes -= len(self._kept.popitem(last=False)[0][0]) + _LEAST
        return parsed


_KEPT = 16 << 20
_LEAST = 1024
"""bytes that each counts beside its own"""
_PARSED = _Parsed()


def load_json_config(path: str | os.PathLike[str]) -> ParsedConfig:
    """Reads one configuration file. Never raises: a file that cannot be read is a state with its reason."""
    from rmqtool.store.access import open_source

    try:
        if not is_remote(path) and not stat.S_ISREG(os.stat(path).st_mode):
            return ParsedConfig(None, ParseState.UNREADABLE, "is not a regular file")
        with open_source(path, "pread") as source:
            raw = within(source, TABLE, "a configuration file")
    except (FileNotFoundError, VanishedError):
        return ParsedConfig(None, ParseState.MISSING, None)
    except (OSError, RmqtoolError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        return ParsedConfig(None, ParseState.UNREADABLE, reason)
    return parse_table(raw, os.path.basename(os.fspath(path)))


def read_listed(file: StoreFile | None) -> tuple[ParsedConfig, bytes]:
    """The same of a file of a store (None: there is none), with the bytes that were parsed."""
    if file is None:
        return ParsedConfig(None, ParseState.MISSING, None), b""
    if not file.regular:
        return ParsedConfig(None, ParseState.UNREADABLE, "is not a regular file"), b""
    try:
        raw = read_whole(file)
    except VanishedError:
        return ParsedConfig(None, ParseState.MISSING, None), b""
    except RmqtoolError as error:
        return ParsedConfig(None, ParseState.UNREADABLE, str(error)), b""
    return parse_table(raw, file.name), raw


@dataclass(frozen=True, slots=True)
class ConfigPair:
    """A configuration file and its `.bak`, and which of the two a broker would load (`ConfigManager#load`).

    chosen: `primary`, `bak` (the primary is missing, empty or unparsable) or `empty` (neither can be used).
    """

    primary: ParsedConfig
    bak: ParsedConfig
    chosen: str

    @property
    def data(self) -> Any:
        """Content of the chosen file, an empty object without one."""
        if self.chosen == "empty":
            return {}
        return self.primary.data if self.chosen == "primary" else self.bak.data


def load_config_pair(path: str | os.PathLike[str]) -> ConfigPair:
    """Reads a configuration file and `<path>.bak`."""
    return chosen_of(load_json_config(path), load_json_config(os.fspath(path) + ".bak"))


def chosen_of(primary: ParsedConfig, bak: ParsedConfig) -> ConfigPair:
    """The pair of these two."""
    chosen = "primary" if primary.state.has_data else "bak" if bak.state.has_data else "empty"
    return ConfigPair(primary, bak, chosen)


MEMORY_TABLE = "memoryTopics"
"""in our own table of them"""


@dataclass(frozen=True, slots=True)
class TopicConfig:
    """One entry of `topics.json` (`TopicConfig`): perm bits 2 WRITE, 4 READ; numbers of queues."""

    name: str
    perm: int
    read_queue_nums: int
    write_queue_nums: int
    attributes: Mapping[str, str]
    order: bool = False
    topic_filter_type: str = "SINGLE_TAG"
    topic_sys_flag: int = 0
    memory: bool = False
    """this tool keeps its messages in memory only; brokers know no such topics"""

    @property
    def readable(self) -> bool:
        """Whether consumers may read the topic at all."""
        return bool(self.perm & 4)

    @property
    def writeable(self) -> bool:
        """Whether producers may write to the topic."""
        return bool(self.perm & 2)

    @property
    def queue_type(self) -> str:
        """`SimpleCQ` unless the attribute `queue.type` says otherwise (`QueueTypeUtils#getCQType`)."""
        return self.attributes.get("queue.type", "SimpleCQ")

    @property
    def cleanup_policy(self) -> str:
        """`DELETE` unless the attribute `cleanup.policy` says otherwise."""
        return self.attributes.get("cleanup.policy", "DELETE")


def _int(entry: Mapping[str, Any], key: str, default: int) -> int:
    value = entry.get(key, default)
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and -INT_MAX - 1 <= value <= INT_MAX else default


def topics_of(data: Any) -> dict[str, TopicConfig]:
    """Topic → settings from the content of a `topics.json`; entries of a wrong shape are left out."""
    table = data.get("topicConfigTable") if isinstance(data, dict) else None
    result: dict[str, TopicConfig] = {}
    for name, entry in table.items() if isinstance(table, dict) else ():
        if not isinstance(entry, dict):
            continue
        attributes = entry.get("attributes")
        result[name] = TopicConfig(
            name,
            _int(entry, "perm", 6),
            _int(entry, "readQueueNums", 16),
            _int(entry, "writeQueueNums", 16),
            {str(key): str(value) for key, value in attributes.items()}
            if isinstance(attributes, dict)
            else {},
            entry.get("order") is True,
            str(entry.get("topicFilterType", "SINGLE_TAG")),
            _int(entry, "topicSysFlag", 0),
            entry.get("memory") is True,
        )
    return result


def with_memory(topics: Mapping[str, TopicConfig], kept: Any) -> dict[str, TopicConfig]:
    """The topics, marked as in memory also where only our own table says so: brokers write none of it."""
    table = kept.get(MEMORY_TABLE) if isinstance(kept, dict) else None
    return {
        name: replace(one, memory=True) if isinstance(table, dict) and name in table else one
        for name, one in topics.items()
    }
