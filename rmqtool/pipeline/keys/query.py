"""`query-key` over many stores: any number of keys, as a broadcast join or as a shuffle join.

First each store's index is asked; what no sound index file covers is then read, cut by parts of the log.
Records stay with the executors until they are listed; what comes back to the driver is what tasks say of
their work.
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from rmqtool.pipeline.keys.broadcast import broadcast_join
from rmqtool.pipeline.keys.key_request import Join, KeyRequest
from rmqtool.pipeline.keys.shuffle import ShuffleJoin
from rmqtool.pipeline.keys.sums import StoreSums
from rmqtool.pipeline.keys.table import KeyTable
from rmqtool.store.names import as_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from contextlib import ExitStack

    from pyspark.sql import DataFrame, SparkSession

    from rmqtool.pipeline.keys.running import Made
    from rmqtool.pipeline.options import SourceOptions
    from rmqtool.store.layout import Store

    Row = dict[str, Any]

BROADCAST_MOST = 100_000
"""keys up to which `auto` sends all of them to every task"""
_NAMED = 1000
"""keys without a message that the summary names; the rest is counted"""


@dataclass
class KeysFound:
    """records: a table with `store`, the columns asked for and `matched_keys`, in order. stores: summaries.

    keys: how many were looked for, each counted once; found: how many have a record in some store, whether
    it passes the filters or not; lacking: the first of the others.
    """

    records: DataFrame
    join: Join
    keys: int
    found: int = 0
    lacking: list[str] = field(default_factory=list)
    stores: dict[str, Row] = field(default_factory=dict)

    def missing(self) -> Row:
        """For the summary."""
        return {"keys": self.keys, "keys_not_found": self.keys - self.found, "not_found": self.lacking}


@dataclass(frozen=True)
class KeySearch:
    """Where is searched. stack: closes what is needed until the records are listed.

    unread: store → rows of `not_covered` that are known beforehand. named: keys without a message are named.
    """

    session: SparkSession
    options: SourceOptions
    stores: Mapping[str, Store]
    stack: ExitStack
    unread: Mapping[str, list[Row]] = field(default_factory=dict)
    named: bool = True

    def find(self, asked: KeyRequest, keys: Iterable[str], join: Join = Join.AUTO) -> KeysFound:
        """Looks up the keys in all stores. What cannot be read is in the summaries of `stores`."""
        left = iter(keys)
        if join is Join.BROADCAST:
            return self._broadcast(asked, tuple(dict.fromkeys(left)))
        first = [] if join is Join.SHUFFLE else list(islice(left, BROADCAST_MOST + 1))
        if 0 < len(first) <= BROADCAST_MOST:
            return self._broadcast(asked, tuple(dict.fromkeys(first)))
        return self._shuffled(asked, chain(first, left))

    def _broadcast(self, asked: KeyRequest, keys: tuple[str, ...]) -> KeysFound:
        sums = {path: StoreSums() for path in self.stores}
        asked = KeyRequest(asked.topic, asked.chosen, asked.source, asked.columns, keys)
        made = broadcast_join(self.session, self.options, self.stores, asked, sums)
        rows = _each_once(made)
        found = self._answer(asked, rows, sums, KeysFound(_listed(rows, asked), Join.BROADCAST, len(keys)))
        known = {row[0] for row in _keys_of(rows).distinct().collect()}
        found.found = len(known)
        found.lacking = list(islice((key for key in keys if key not in known), _NAMED))
        return found

    def _shuffled(self, asked: KeyRequest, keys: Iterable[str]) -> KeysFound:
        from pyspark import StorageLevel
        from pyspark.sql import functions as f

        sums = {path: StoreSums() for path in self.stores}
        directory = self.stack.enter_context(tempfile.TemporaryDirectory(prefix="rmqtool-keys-"))
        table = KeyTable.written(keys, directory)
        wanted = table.frame(self.session).persist(StorageLevel.DISK_ONLY)
        self.stack.callback(wanted.unpersist)
        count = wanted.count()
        join = ShuffleJoin(self.session, self.options, self.stores, asked, table, wanted, count, sums)
        rows = _each_once(join.run())
        found = self._answer(asked, rows, sums, KeysFound(_listed(rows, asked), Join.SHUFFLE, count))
        known = _keys_of(rows).distinct().persist(StorageLevel.DISK_ONLY)
        found.found = known.count()
        if self.named and found.found < count:
            lacking = wanted.join(known, f.col("wanted_key") == f.col("key"), "left_anti")
            first = lacking.orderBy("number").select("wanted_key").limit(_NAMED)
            found.lacking = [row[0] for row in first.collect()]
        return found

    def _answer(
        self, asked: KeyRequest, rows: DataFrame, sums: Mapping[str, StoreSums], found: KeysFound
    ) -> KeysFound:
        """Adds the summaries of the stores."""
        from pyspark.sql import functions as f

        counts = rows.groupBy("store").agg(f.count("*"), f.count_if("kept"))
        counted = {store: (matches, kept) for store, matches, kept in counts.collect()}
        each = rows.select("store", f.explode("matched_keys").alias("key"))
        keys: dict[str, int] = dict(map(tuple, each.groupBy("store").agg(f.count_distinct("key")).collect()))
        for path, store in self.stores.items():
            matches, kept = counted.get(as_text(path), (0, 0))
            one: Row = {
                "messages": kept,
                "keys": found.keys,
                "keys_not_found": found.keys - keys.get(as_text(path), 0),
            }
            if not asked.chosen.selects_all:
                one["kept_back"] = matches - kept
            found.stores[path] = one | sums[path].summary(store, asked, self.unread.get(path, []))
        return found


def _each_once(made: Sequence[Made]) -> DataFrame:
    rows = [one.rows for one in made if one.frames] or [made[0].rows]
    whole = rows[0]
    for more in rows[1:]:
        whole = whole.unionByName(more)
    return whole.dropDuplicates(["store", "physical_offset"])


def _keys_of(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    return rows.select(f.explode("matched_keys").alias("key"))


def _listed(rows: DataFrame, asked: KeyRequest) -> DataFrame:
    columns = list(dict.fromkeys(("store", *asked.columns, "matched_keys")))
    return rows.where("kept").orderBy("store", "physical_offset").select(columns)
