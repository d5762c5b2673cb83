"""Messages and bytes by any of the columns, added up batch by batch with Arrow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from rmqtool.query.duplicates.copies import copy_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

Row = dict[str, Any]

_HOUR, _DAY = 3_600_000, 86_400_000
MERGE_AT = 1 << 16
"""rows of partial sums that are kept before they are added up"""
_SUMS = {"messages": "sum", "bytes": "sum", "body_bytes": "sum", "compressed": "sum"}
_BOUNDS = {"largest": "max", "first_timestamp": "min", "last_timestamp": "max"}
_PLAIN = {"plain_bytes": "sum"}


def _floor(size: int) -> Callable[[pa.RecordBatch], pa.Array]:
    def build(batch: pa.RecordBatch) -> pa.Array:
        times = batch["store_timestamp"]
        whole = pc.divide(times, size)
        down = pc.if_else(pc.less(times, pc.multiply(whole, size)), pc.subtract(whole, 1), whole)
        return pc.multiply(down, size)

    return build


def _host(batch: pa.RecordBatch) -> pa.Array:
    return pc.replace_substring_regex(batch["born_host"], r":\d+$", "")


def _kind(batch: pa.RecordBatch) -> pa.Array:
    coded = pc.dictionary_encode(batch["topic"])
    names = pa.array([str(copy_of(topic)) for topic in coded.dictionary.to_pylist()], pa.string())
    return pc.take(names, coded.indices)


DIMENSIONS: dict[str, dict[str, tuple[str, Callable[[pa.RecordBatch], pa.Array]]]] = {
    "topic": {"topic": ("topic", lambda batch: batch["topic"])},
    "queue": {
        "topic": ("topic", lambda batch: batch["topic"]),
        "queue_id": ("queue_id", lambda batch: batch["queue_id"]),
    },
    "tag": {"tags": ("tags", lambda batch: batch["tags"])},
    "hour": {"hour_timestamp": ("store_timestamp", _floor(_HOUR))},
    "day": {"day_timestamp": ("store_timestamp", _floor(_DAY))},
    "host": {"host": ("born_host", _host)},
    "kind": {"kind": ("topic", _kind)},
    "segment": {"path": ("path", lambda batch: batch["path"])},
}
"""what to group by → key of the row → column that it is made of, and how"""


class Groups:
    """Sums for every combination of the named dimensions; memory goes with their number, not the log's.

    plain: add up what bodies are when decompressed, too.
    """

    def __init__(self, names: Sequence[str], *, plain: bool = False) -> None:
        self._made = {key: how for name in names for key, how in DIMENSIONS[name].items()}
        self.keys = tuple(self._made)
        self._facts = _SUMS | _BOUNDS | (_PLAIN if plain else {})
        self._plain = plain
        self._parts: list[pa.Table] = []
        self._waiting = 0

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the record table that batches must have."""
        own = [column for column, _ in self._made.values()]
        facts = ["store_size", "body_length", "sys_flag", "store_timestamp"]
        return tuple(dict.fromkeys((*own, *facts, *(("plain_length",) if self._plain else ()))))

    def add(self, batch: pa.RecordBatch) -> None:
        """Adds the records of a batch."""
        if not batch.num_rows:
            return
        sizes, times = batch["store_size"].cast(pa.int64()), batch["store_timestamp"]
        compressed = pc.bit_wise_and(batch["sys_flag"], 1).cast(pa.int64())
        made = {key: build(batch) for key, (_, build) in self._made.items()}
        facts = {
            "messages": pa.repeat(pa.scalar(1, pa.int64()), batch.num_rows),
            "bytes": sizes,
            "body_bytes": pc.max_element_wise(batch["body_length"].cast(pa.int64()), 0),
            "compressed": compressed,
            "largest": sizes,
            "first_timestamp": times,
            "last_timestamp": times,
        }
        if self._plain:
            facts["plain_bytes"] = batch["plain_length"].cast(pa.int64())
        self._keep(self._sum(pa.table({**made, **facts})))

    def _sum(self, table: pa.Table) -> pa.Table:
        wanted = list(self._facts.items())
        summed = table.group_by(list(self.keys), use_threads=False).aggregate(wanted)
        names = {f"{name}_{how}": name for name, how in wanted}
        named = summed.rename_columns([names.get(name, name) for name in summed.column_names])
        return named.select([*self.keys, *self._facts])

    def part(self, **columns: Any) -> pa.Table:
        """Sums that were made elsewhere, a row for each group, in the form of `partial`."""
        return pa.table({name: columns[name] for name in (*self.keys, *self._facts)})

    def _keep(self, part: pa.Table) -> None:
        self._parts.append(part)
        self._waiting += part.num_rows
        if self._waiting > max(MERGE_AT, 4 * self._parts[0].num_rows):
            self._merge()

    def _merge(self) -> None:
        if len(self._parts) > 1:
            self._parts = [self._sum(pa.concat_tables(self._parts))]
        self._waiting = sum(part.num_rows for part in self._parts)

    def partial(self) -> pa.Table | None:
        """The sums so far, to be added up with others by `add_partial`; None without any."""
        self._merge()
        return self._parts[0] if self._parts else None

    def add_partial(self, part: pa.Table) -> None:
        """Adds the sums that other `Groups` of the same names made."""
        self._keep(part)

    def rows(self) -> list[Row]:
        """One row for each group, the largest first; those of hours and days in order of time."""
        self._merge()
        if not self._parts:
            return []
        found: list[Row] = self._parts[0].to_pylist()
        total = sum(row["bytes"] for row in found)
        for row in found:
            seconds = (row["last_timestamp"] - row["first_timestamp"]) / 1000
            row["share"] = round(row["bytes"] / total, 6) if total else None
            row["messages_per_second"] = round(row["messages"] / seconds, 3) if seconds > 0 else None
            row["bytes_per_second"] = round(row["bytes"] / seconds, 3) if seconds > 0 else None
        times = [key for key in self.keys if key.endswith("_timestamp")]
        found.sort(
            key=lambda row: ([row[key] for key in times], -row["bytes"], [str(row[key]) for key in self.keys])
        )
        return found
