"""The shuffle join: keys are a table, what may have them is another, and Spark brings them together.

Tasks over index files and parts of logs yield narrow rows; joined with the keys by their code, and compared
as text, they say which records are meant. Only these are then read, those near each other by one task.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from formats.index import Item
from formats.primitives import sizeof
from rmqtool.pipeline.keys.broadcast import plan_scan
from rmqtool.pipeline.keys.fetching import ByStore, FetchHits
from rmqtool.pipeline.keys.key_request import PROBES, Bucket, ItemUnit, KeyRequest, Kind, Unit, hits_schema
from rmqtool.pipeline.keys.probing import CompareItems, ItemTask, ScanTask
from rmqtool.pipeline.keys.running import Made
from rmqtool.pipeline.keys.sums import StoreSums, scan, take
from rmqtool.pipeline.keys.tasks import KeyTask, PlanTask
from rmqtool.query.by_key import KeySource, asks_index, compares_all, index_topics, outside
from rmqtool.query.index_coverage import Coverage, IndexFileView
from rmqtool.query.lost_place import LOOKED_AT

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

    from rmqtool.pipeline.keys.table import KeyTable
    from rmqtool.pipeline.options import SourceOptions
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store

    Row = dict[str, Any]

_BUCKET = 128 << 20
"""bytes of a log whose records are fetched by one task"""
_ITEMS = 4_000_000
"""items of an index file that one task reads"""


@dataclass
class ShuffleJoin:
    """keys: their number, each counted once. wanted: `KeyTable.frame`, kept. sums: added to."""

    session: SparkSession
    options: SourceOptions
    stores: Mapping[str, Store]
    asked: KeyRequest
    table: KeyTable
    wanted: DataFrame
    keys: int
    sums: Mapping[str, StoreSums]

    def __post_init__(self) -> None:
        self._paths = list(self.stores)
        context = self.session.sparkContext
        self._sent = context.broadcast(self.asked)
        self._sieve = context.broadcast(self.table.sieve(self.asked.topic))
        self._few = Made(self.session, hits_schema(self.asked))
        self._lost: DataFrame | None = None

    def run(self) -> list[Made]:
        """Tables of `hits_schema`."""
        asked = self.asked
        indexed = [
            path for path, store in self.stores.items() if asks_index(store, asked.topic, asked.source)
        ]
        plan_scan(self.session, self.options, self.stores.keys() - indexed, asked, self.sums)
        matches = self._by_index(indexed)
        if asked.source is not KeySource.INDEX:
            matches += self._by_scan()
        return [self._few, self._fetched(matches)]

    def _by_index(self, indexed: Sequence[str]) -> list[DataFrame]:
        """What the indexes lead to, by comparing all items; where keys are few, by their chains."""
        topics = {path: len(index_topics(self.stores[path], self.asked.topic)) for path in indexed}
        many = [path for path in indexed if compares_all(self.keys, topics[path])]
        if len(many) < len(indexed):
            asked = replace(self.asked, keys=self.table.keys())
            task = KeyTask(self.session.sparkContext.broadcast(asked), self.options)
            self._few.by_item([Unit(path) for path in indexed if path not in many], task)
            take(self.sums, self._few.notes)
        plans = Made(self.session, PROBES)
        plans.by_item([Unit(path) for path in many], PlanTask(self._sent, self.options, index=True))
        asking = [_IndexOf.of(self.stores[note["store"]], note) for note in plans.notes if "low" in note]
        take(self.sums, [note | {"rest": []} for note in plans.notes])
        self._note_lost({note["store"]: note["not_used"] for note in plans.notes if note.get("not_used")})
        return self._compared(asking) if asking else []

    def _note_lost(self, unused: Mapping[str, Iterable[str]]) -> None:
        """Counts the places without a record to which items lead in files that do not answer, by store."""
        from pyspark.sql import functions as f

        files = [
            (path, file)
            for path, names in unused.items()
            for file in self.stores[path].index_files()
            if file.display_path in names
        ]
        if not files:
            return
        units = [
            ItemUnit(path, self._paths.index(path), file.path, number, first, first + _ITEMS)
            for number, (path, file) in enumerate(files)
            for first in _firsts(file)
        ]
        items = Made(self.session, PROBES)
        items.by_item(units, self._task(ItemTask))
        found = items.rows.join(self.wanted.select("code"), "code", "left_semi")
        places = _kept(found.select("store", "physical_offset").distinct())
        picked = self._near(places, self._comparing(), PROBES)
        take(self.sums, picked.notes)
        lost = picked.rows.where(f.col("kind") >= Kind.MISSING)
        self._lost = self._candidates(lost, "store", "physical_offset")
        self._count(self._lost)

    def _compared(self, asking: Sequence[_IndexOf]) -> list[DataFrame]:
        from pyspark.sql import functions as f

        names: list[tuple[str, str]] = []
        units: list[ItemUnit] = []
        for one in asking:
            for view in one.asked(self.asked.window):
                place = one.path, self._paths.index(one.path), view.file.path, len(names)
                units += [ItemUnit(*place, first, first + _ITEMS) for first in _firsts(view.file)]
                names.append((one.path, view.file.display_path))
        items = Made(self.session, PROBES)
        broken = {note["file"]: note["error"] for note in items.by_item(units, self._task(ItemTask))}
        codes = self.wanted.select("code")
        found = items.rows.where(~f.col("unit").isin(list(broken))).join(codes, "code", "left_semi")
        found = _kept(found.select("store", f.col("unit").alias("file"), "physical_offset").distinct())
        picked = self._near(found.select("store", "physical_offset").distinct(), self._comparing(), PROBES)
        take(self.sums, picked.notes)
        candidates = self._candidates(picked.rows, "store", "physical_offset")
        self._count(candidates if self._lost is None else _once(candidates, self._lost))
        misdirected = candidates.where(
            (f.col("kind") == Kind.MISDIRECTED) | (f.col("kind") < Kind.MISSING) & ~f.col("hit")
        ).select("store", "physical_offset", "kind")
        self._note_other_keys(misdirected.where(f.col("kind") < Kind.MISSING))
        wrong = (
            found.join(misdirected, ["store", "physical_offset"])
            .groupBy("file")
            .agg(f.min("physical_offset"))
        )
        errors = {names[file]: error for file, error in broken.items()}
        for file, offset in wrong.collect():
            errors.setdefault(names[file], f"an index entry leads to {offset}, where its key is not")
        for one in asking:
            own = {shown: error for (path, shown), error in errors.items() if path == one.path}
            self.sums[one.path].add(one.outcome(own, self.asked.window))
        return [candidates]

    def _note_other_keys(self, misdirected: DataFrame) -> None:
        """Records to which items lead and that have no key with the code of one of these."""
        from pyspark.sql import Window
        from pyspark.sql import functions as f

        of_store = Window.partitionBy("store")
        rank = f.row_number().over(of_store.orderBy("physical_offset"))
        ranked = misdirected.select("store", "physical_offset").distinct().withColumn("rank", rank)
        counted = ranked.withColumn("all", f.count("*").over(of_store)).where(f.col("rank") <= LOOKED_AT + 1)
        for number, offset, rank_there, count in counted.select(
            "store", "physical_offset", "rank", "all"
        ).collect():
            found = self.sums[self._paths[number]]
            found.without_record.add(offset)
            found.inside.add(offset)
            if rank_there == 1:
                found.add({"missing": count, "missing_inside": count})

    def _comparing(self) -> CompareItems:
        numbers = {path: number for number, path in enumerate(self._paths)}
        return CompareItems(self._sent, self._sieve, self.options, numbers)

    def _task(self, kind: Any) -> Any:
        return kind(self._sent, self._sieve, self.options)

    def _by_scan(self) -> list[DataFrame]:
        made = Made(self.session, PROBES)
        scan(made, self._task(ScanTask), self.stores, self.options, self.sums)
        if not made.frames:
            return []
        candidates = self._candidates(made.rows, "store", "segment", "unit", "physical_offset")
        self._count(candidates)
        return [candidates]

    def _candidates(self, rows: DataFrame, *record: str) -> DataFrame:
        """A row a record that is a candidate: whether a key has a wanted code, and which keys are wanted."""
        from pyspark.sql import functions as f

        codes = rows.where(f.col("kind") <= Kind.CODE).join(self.wanted, "code")
        same = f.when(f.col("key") == f.col("wanted_key"), f.col("wanted_key"))
        met = codes.select(*record, "kind", (f.col("kind") == Kind.CODE).alias("hit"), same.alias("key"))
        read = rows.where(f.col("kind") > Kind.CODE).select(*record, "kind", f.lit(False), f.lit(None))
        return _kept(
            met.union(read)
            .groupBy(*record)
            .agg(
                f.max("kind").alias("kind"),
                f.max("hit").alias("hit"),
                f.array_sort(f.collect_set("key")).alias("matched_keys"),
            )
        )

    def _count(self, candidates: DataFrame) -> None:
        from pyspark.sql import Window
        from pyspark.sql import functions as f

        absent = f.col("kind") >= Kind.MISSING
        misdirected = f.col("kind") == Kind.MISDIRECTED
        compared = f.col("kind") < Kind.BEYOND
        foreign = compared & (f.size("matched_keys") == 0)
        sums = [f.count_if(one) for one in (compared, foreign, absent, misdirected)]
        for number, *counts in candidates.groupBy("store").agg(*sums).collect():
            names = ("candidates", "collisions", "missing", "missing_inside")
            self.sums[self._paths[number]].add(dict(zip(names, counts, strict=True)))
        lost = candidates.where(absent).select("store", "kind", "physical_offset").distinct()
        order = Window.partitionBy("store", "kind").orderBy("physical_offset")
        first = lost.withColumn("rank", f.row_number().over(order)).where(f.col("rank") <= LOOKED_AT + 1)
        for number, kind, offset in first.select("store", "kind", "physical_offset").collect():
            found = self.sums[self._paths[number]]
            found.without_record.add(offset)
            if kind == Kind.MISDIRECTED:
                found.inside.add(offset)

    def _fetched(self, candidates: Sequence[DataFrame]) -> Made:
        from pyspark.sql import functions as f

        matches = [
            one.where(f.size("matched_keys") > 0).select("store", "physical_offset", "matched_keys")
            for one in candidates
        ]
        if not matches:
            return Made(self.session, hits_schema(self.asked))
        every = matches[0] if len(matches) == 1 else matches[0].union(matches[1])
        each = every.groupBy("store", "physical_offset").agg(f.first("matched_keys").alias("matched_keys"))
        made = self._near(each, FetchHits(self._sent), hits_schema(self.asked))
        take(self.sums, made.notes)
        return made

    def _near(self, rows: DataFrame, work: Any, schema: pa.Schema) -> Made:
        """Hands records (columns `store`, `physical_offset`) to tasks, those near each other to one."""
        from pyspark.sql import functions as f

        bucket = f.floor(f.col("physical_offset") / _BUCKET)
        name = f.concat_ws(" ", "store", bucket)

        def buckets() -> list[Bucket]:
            found = rows.select("store", bucket).distinct().collect()
            return [Bucket(self._paths[store], int(number), _BUCKET) for store, number in found]

        def some(frame: DataFrame, wanted: Sequence[Bucket]) -> DataFrame:
            chosen = [f"{self._paths.index(one.store)} {one.number}" for one in wanted]
            kept = frame.where(name.isin(chosen)) if chosen else frame
            return kept.repartition("store", bucket).sortWithinPartitions("store", "physical_offset")

        made = Made(self.session, schema)
        made.by_bucket(rows, buckets, some, ByStore(tuple(self._paths), self.options, work))
        return made


def _once(candidates: DataFrame, lost: DataFrame) -> DataFrame:
    """Without the places of no record that are in `lost`."""
    from pyspark.sql import functions as f

    absent = f.col("kind") >= Kind.MISSING
    place = ["store", "physical_offset"]
    return candidates.where(~absent).union(
        candidates.where(absent).join(lost.select(*place), place, "left_anti")
    )


@dataclass
class _IndexOf:
    """The index of one store, as it was found. span: of its log."""

    path: str
    span: tuple[int, int]
    views: list[IndexFileView]

    @classmethod
    def of(cls, store: Store, note: Row) -> _IndexOf:
        """From the note of a `PlanTask`."""
        files = ((store.file(name), ends) for name, *ends in note["files"])
        views = [IndexFileView(file, *ends) for file, ends in files if file is not None]
        return cls(note["store"], (note["low"], note["high"]), views)

    def asked(self, window: tuple[int | None, int | None]) -> list[IndexFileView]:
        """Files that may hold something of the window."""
        return [view for view in self.views if not outside(window, view)]

    def outcome(self, errors: Mapping[str, str], window: tuple[int | None, int | None]) -> Row:
        """Which files answered, and what none answers for."""
        used = [view for view in self.views if view.file.display_path not in errors]
        return {
            "index_files": [view.file.display_path for view in used if not outside(window, view)],
            "not_used": dict(errors),
            "rest": Coverage(used).uncovered(*self.span),
        }


def _firsts(file: StoreFile) -> range:
    """The first items of the parts of a file that one task reads each."""
    return range(1, file.size // sizeof(Item) + 2, _ITEMS)


def _kept(frame: DataFrame) -> DataFrame:
    from pyspark import StorageLevel

    return frame.persist(StorageLevel.DISK_ONLY)
