"""Sentences with words that go with a number: `{found} {found:record has|records have} no entry`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

_NUMBERED = re.compile(r"\{(\w+):([^{}|]*)\|([^{}|]*)\}")


def filled(sentence: str, facts: Mapping[str, Any]) -> str:
    """The sentence with these facts in it."""
    return _NUMBERED.sub(
        lambda found: found[2] if str(facts.get(found[1])) == "1" else found[3], sentence
    ).format_map(facts)


def of_many(sentence: str) -> str:
    """The sentence with its facts in braces, as it is about several."""
    return _NUMBERED.sub(r"\3", sentence)
