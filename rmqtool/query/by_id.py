"""Finding the records of a unique client id: by the index where it answers, else by reading the log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rmqtool.query.by_key import KeySource, find_keys
from rmqtool.query.displaced import displaced_at
from rmqtool.query.lost_place import where_items_lead
from rmqtool.query.wanted_keys import WantedKeys

if TYPE_CHECKING:
    from rmqtool.scan.options import ReadOptions
    from rmqtool.store.layout import Store

Row = dict[str, Any]


@dataclass(frozen=True)
class Matches:
    """Physical offsets of records with the id, in order; `source` as in `by_key.KeyAnswer`.

    unreadable: what could not be read, or was not because of an interrupt, as rows of `not_covered`.
    """

    offsets: tuple[int, ...]
    source: str
    unreadable: tuple[Row, ...] = ()


def find_uniq_key(store: Store, uniq_key: str, reading: ReadOptions, *, thorough: bool = True) -> Matches:
    """Records whose UNIQ_KEY is `uniq_key` as given, in upper or in lower case.

    thorough: where the index, and the log where there is no index, know none, read all of the log.
    """
    forms = dict.fromkeys((uniq_key, uniq_key.upper(), uniq_key.lower()))
    wanted = WantedKeys(forms, uniq_key_only=True)
    answer = find_keys(store, wanted, reading=reading)
    known: list[Row] = []
    if (
        thorough and not answer.matches
    ):  # a topic that nothing but its records names is not asked for in the index
        places = [one.physical_offset for one in answer.missing]
        known = [*where_items_lead(store.segments, places), *displaced_at(store, places)]
        answer = find_keys(store, wanted, source=KeySource.SCAN, reading=reading)
    return Matches(tuple(sorted(answer.matches)), answer.source, (*answer.not_covered, *known))
