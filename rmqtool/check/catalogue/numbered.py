"""Sentences with words that go with a number: `{found} {found:record has|records have} no entry`.

What stands in `[…]` is left out where a number in it is zero.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_CLAUSE = re.compile(r"\[([^][]*)\]")
_NAME = re.compile(r"\{(\w+)")
_NUMBERED = re.compile(r"\{(\w+):([^{}|]*)\|([^{}|]*)\}")


def filled(sentence: str, facts: Mapping[str, Any]) -> str:
    """The sentence with these facts in it."""
    sentence = _CLAUSE.sub(
        lambda found: (
            "" if any(str(facts.get(name)) == "0" for name in _NAME.findall(found[1])) else found[1]
        ),
        sentence,
    )
    return _NUMBERED.sub(
        lambda found: found[2] if str(facts.get(found[1])) == "1" else found[3], sentence
    ).format_map(facts)


def of_many(sentence: str) -> str:
    """The sentence with its facts in braces, as it is about several."""
    return _NUMBERED.sub(r"\3", _CLAUSE.sub(r"\1", sentence))
