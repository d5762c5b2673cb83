"""Names in a store: numbers as Java reads them, and a form that is safe to print."""

from __future__ import annotations

import os
import re

from formats.java import java_parse_int

LONG_MAX = (1 << 63) - 1
INT_MAX = (1 << 31) - 1
_LONGEST_NAME = 255
"""bytes of a directory's name, on all usual file systems"""

_UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\\\\\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")

_ESCAPED = re.compile(r"\\\\|\\x[0-9a-f]{2}|\\u[0-9a-f]{4}")


def parse_base_offset(name: str) -> int | None:
    """Base offset in bytes that a mapped file's name means, None when Java would refuse it.

    The whole name is parsed as a decimal long (`DefaultMappedFile#init`): padding is optional, digits may
    be those of the broker's locale (`UtilAll#offset2FileName` formats with it). A negative base is refused
    here too.
    """
    value = java_parse_int(name, 64)
    return None if value is None or name.startswith("-") else value


def file_name(base: int) -> str:
    """The name of a mapped file that begins at byte `base` of its queue (`UtilAll#offset2FileName`).

    At least 20 digits, behind a minus sign where damage makes a base negative.
    """
    return f"-{-base:020d}" if base < 0 else f"{base:020d}"


def parse_queue_id(name: str) -> int | None:
    """Queue number that a directory name means, None when nothing in it is ever read.

    Loading parses the name (`Integer.parseInt`), but opens the directory that the number spells
    (`ConsumeQueue`): files in `00` or `+1` are not those of queue 0 or 1.
    """
    value = java_parse_int(name)
    return value if name == str(value) else None


def escape_name(name: str) -> str:
    r"""`name` with control characters, backslashes and bytes that are not UTF-8 as `\xNN` / `\uNNNN`.

    File names arrive with undecodable bytes as lone surrogates (`os.fsdecode`); those cannot be printed or
    put into JSON. Two different names never get the same escaped form.
    """
    return _UNPRINTABLE.sub(_escape, name)


def _escape(match: re.Match[str]) -> str:
    char = match.group()
    code = ord(char)
    if char == "\\":
        return "\\\\"
    if 0xDC80 <= code <= 0xDCFF:
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{code:04x}"


def unescape_name(shown: str) -> str:
    """The name that `escape_name` made `shown` of."""

    def restore(match: re.Match[str]) -> str:
        text = match.group()
        if text == "\\\\":
            return "\\"
        code = int.from_bytes(bytes.fromhex(text[2:]), "big")
        return chr(code + 0xDC00 if text[1] == "x" else code)

    return _ESCAPED.sub(restore, shown)


def may_be_path(name: str) -> bool:
    """Whether the system takes `name` for a path: it has no NUL, and no surrogate but of a byte."""
    try:
        return b"\0" not in os.fsencode(name)
    except UnicodeEncodeError:
        return False


def names_directory(name: str) -> bool:
    """Whether a directory can have this name, and lies then where it should."""
    inside = name not in {"", os.curdir, os.pardir} and os.sep not in name
    return inside and may_be_path(name) and len(os.fsencode(name)) <= _LONGEST_NAME


def as_text(name: str) -> str:
    """A name as tables have it: lone surrogates (it is not UTF-8) as escapes, as rows of JSON have them."""
    return name.encode("utf-8", "backslashreplace").decode()


def topic_keys(name: str | None) -> dict[str, str | None]:
    """A topic taken from a name on disk as columns: `topic`, or null and `topic_hex` when it is not UTF-8."""
    if name is None or name.isascii():
        return {"topic": name}
    try:
        name.encode()
    except UnicodeEncodeError:
        return {"topic": None, "topic_hex": _stored(name).hex()}
    return {"topic": name}


def _stored(name: str) -> bytes:
    """The bytes of a name; of lone surrogates that stand for no byte (from JSON) what Java would write."""
    try:
        return os.fsencode(name)
    except UnicodeEncodeError:
        return name.encode("utf-8", "surrogatepass")
