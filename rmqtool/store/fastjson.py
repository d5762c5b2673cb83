"""JSON as far as fastjson takes it beyond the standard, and no further.

Seen with 1.2.69 (4.9.7) and 1.2.83 (5.3.3), which agree. What only some places of a table forgive, as text
between a value and the next comma, is refused here: nobody may call a table sound that a broker gives up.
"""

from __future__ import annotations

import re
from typing import Any, Protocol

LEVELS = 128
"""levels of objects and arrays; settings of a broker have about five"""
TRIMMED = "".join(map(chr, range(ord(" ") + 1)))
"""what `String#trim` takes from both ends of a text"""
SPECIAL = frozenset({"@type", "$ref"})
"""names that fastjson takes for instructions, not for those of fields"""
_SPACE = re.compile(r"[ \t\r\n\f\b]*+")
_BLANK = re.compile(r"[ \t\r\n\f\b]++|//[^\n]*+\n|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r""""((?:[^"\\\x1a]++|\\[^\x1a])*+)"|'((?:[^'\\\x1a]++|\\[^\x1a])*+)'""")
"""0x1A is the end of the text to fastjson"""
_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_WHOLE = re.compile(r"-?[0-9]+")
_NUMBER = re.compile(r"([+-]?[0-9]++)(\.[0-9]*+)?([eE][+-]?[0-9]++)?(?![A-Za-z_$.])")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|x([0-9A-Fa-f]{2})|(.))", re.DOTALL)
_ESCAPED = dict(zip("\"'\\/bfFnrtv01234567", "\"'\\/\b\f\f\n\r\t\v\0\1\2\3\4\5\6\7", strict=True))
_WORDS = {"true": True, "false": False, "null": None}


class Values(Protocol):
    """What becomes of what is read."""

    def made(self, pairs: list[tuple[str, Any]]) -> Any:
        """Of an object, by its names and values."""

    def name(self, text: str) -> str:
        """Of a whole number without quotes as a name."""

    def real(self, text: str) -> Any:
        """Of a number with a point or an exponent, or of NaN."""

    def whole(self, text: str) -> Any:
        """Of any other number."""


def only_blank(text: str) -> bool:
    """Whether nothing stands there but blanks and comments."""
    return _behind_blanks(text, 0) == len(text)


def _behind_blanks(text: str, at: int) -> int:
    while found := _BLANK.match(text, at):
        at = found.end()
    return at


def parse(text: str, values: Values) -> Any:
    """The value that a whole text holds. Raises `ValueError` where fastjson does, and in some more cases."""
    reader = _Reader(text, values)
    value = reader.value(LEVELS)
    reader.skip()
    if reader.at != len(text):
        raise ValueError(f"Extra data: char {reader.at}")
    return value


class _Reader:
    def __init__(self, text: str, values: Values) -> None:
        self._text, self._values = text, values
        self.at = 0

    def skip(self) -> str:
        """Goes behind blanks and comments; the character that stands there."""
        self.at = _behind_blanks(self._text, self.at)
        return self._text[self.at : self.at + 1]

    def value(self, levels: int) -> Any:
        here = self.skip()
        if here in ("{", "["):
            if not levels:
                raise ValueError(f"more than {LEVELS} levels")
            self.at += 1
            return self._object(levels - 1) if here == "{" else self._array(levels - 1)
        if here in ('"', "'"):
            return self._string()
        if found := _NUMBER.match(self._text, self.at):
            self.at = found.end()
            whole, part, power = found.groups()
            if part is power is None:
                return self._values.whole(whole)
            return self._values.real(found.group())
        word = self._taken(_NAME)
        if word == "NaN":
            return self._values.real(word)
        if word not in _WORDS:
            raise self._wrong("value")
        return _WORDS[word]

    def _object(self, levels: int) -> Any:
        pairs: list[tuple[str, Any]] = []
        while self.skip() != "}":
            key = self._key()
            self._taken(_SPACE)  # a comment is not taken everywhere here
            if not self._text.startswith(":", self.at):
                raise self._wrong("':'")
            self.at += 1
            pairs.append((key, self.value(levels)))
            self._between("}")
        self.at += 1
        return self._values.made(pairs)

    def _array(self, levels: int) -> list[Any]:
        made: list[Any] = []
        while self.skip() != "]":
            made.append(self.value(levels))
            self._between("]")
        self.at += 1
        return made

    def _between(self, closing: str) -> None:
        """Goes behind the comma that follows a value, unless what it stands in ends there."""
        here = self.skip()
        if here not in (",", closing):
            raise self._wrong("','")
        self.at += here == ","

    def _key(self) -> str:
        if self.skip() in ('"', "'"):
            return self._string()
        if _WHOLE.match(self._text, self.at):
            return self._values.name(str(int(self._taken(_WHOLE))))
        word = self._taken(_NAME)
        if not word or word in _WORDS:
            raise self._wrong("name")
        return word

    def _string(self) -> str:
        found = _STRING.match(self._text, self.at)
        if found is None:
            raise self._wrong("end of the string")
        self.at = found.end()
        return _ESCAPE.sub(_unescaped, found[1] if found[2] is None else found[2])

    def _taken(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self._text, self.at)
        self.at = found.end() if found else self.at
        return found.group() if found else ""

    def _wrong(self, wanted: str) -> ValueError:
        return ValueError(f"Expecting {wanted}: char {self.at}")


def _unescaped(found: re.Match[str]) -> str:
    code = found[1] or found[2]
    if code:
        return chr(int(code, 16))
    if found[3] not in _ESCAPED:
        raise ValueError(f"\\{found[3]} is not an escape")
    return _ESCAPED[found[3]]
