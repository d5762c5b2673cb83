"""What the record holds of long lists: their beginnings, and how many entries are left out."""

from __future__ import annotations

from itertools import islice
from typing import Any

MOST = 500
"""entries of a list or a table"""


def bounded(content: Any, left_out: dict[str, int], place: str = "") -> Any:
    """The same content with long lists and tables cut. left_out: gets the number of entries by place."""
    if isinstance(content, dict):
        if len(content) > MOST:
            left_out[place] = len(content) - MOST
        return {
            name: bounded(one, left_out, f"{place}.{name}" if place else str(name))
            for name, one in islice(content.items(), MOST)
        }
    if isinstance(content, (list, tuple)):
        if len(content) > MOST:
            left_out[place] = max(left_out.get(place, 0), len(content) - MOST)
        return [bounded(one, left_out, f"{place}[]") for one in content[:MOST]]
    return content
