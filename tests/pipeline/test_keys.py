"""`pipeline query-key`: both joins answer what the local command answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.helpers import rmq

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pyspark.sql import SparkSession

SMALL = ("--part-size", "8192")
MANY = 20_001
"""keys that nobody has, so that whole columns of hashes are compared"""


def keys_of(store: Path) -> list[str]:
    rows = rmq("dump", store, "--format", "ndjson").of_type("message")
    found = {key for row in rows for key in row["keys"] or ()} | {
        row["uniq_key"] for row in rows if row["uniq_key"]
    }
    return sorted(key for key in found if key == key.strip() and "\n" not in key)[::3]


def key_file(directory: Path, stores: Sequence[Path], absent: int = 1) -> Path:
    keys = {key: None for store in stores for key in keys_of(store)}
    file = directory / "keys.txt"
    file.write_text("\n".join([*keys, *(f"absent-{number}" for number in range(absent))]))
    return file


def same(stores: Sequence[Path], file: Path, *options: object, topic: str | None = None, join: str) -> Any:
    """Compares the answer over all stores with the local one of each; the closing summary."""
    given = ("--keys-file", file, *options, "--format", "ndjson")
    in_topic = () if topic is None else ("--key-topic", topic)
    done = rmq("pipeline", "query-key", *stores, *in_topic, *given, *SMALL, "--join", join)
    *rows, summary = done.rows
    assert summary["join"] == join
    told = {part["store"]: part for part in summary["stores"]}
    codes = []
    found: set[str] = set()
    for store in stores:
        local = rmq("query-key", store, topic or "-", *given)
        *expected, whole = local.rows
        mine = [without(row, "store") for row in rows if row["store"] == str(store)]
        assert mine == sorted(expected, key=lambda row: row["physical_offset"]), store
        part = told[str(store)]
        names = set(whole) - {"schema", "type", "seconds", "not_found"}
        assert names == set(part) - {"store"}, store
        for name in sorted(names):
            assert settled(part[name]) == settled(whole[name]), (store, name)
        found |= set(file.read_text().split()) - set(whole["not_found"])
        codes.append(local.exit_code)
    some = any(row["type"] == "message" for row in rows)
    assert done.exit_code == (3 if 3 in codes else 0 if some else 1), done.stderr
    return summary


def settled(value: Any) -> Any:
    return sorted(value, key=str) if isinstance(value, list) else value


def without(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


@pytest.mark.parametrize(
    ("join", "source"),
    [("broadcast", "auto"), ("broadcast", "scan"), ("shuffle", "auto"), ("shuffle", "scan")],
)
def test_both_joins_answer_as_the_command(
    spark: SparkSession,
    goldens: dict[str, Path],
    damaged_stores: dict[str, Path],
    tmp_path: Path,
    join: str,
    source: str,
) -> None:
    stores = [goldens["v498-basic"], goldens["v533-compressed"], *damaged_stores.values()]
    file = key_file(tmp_path, stores, absent=MANY if join == "shuffle" else 1)
    summary = same(stores, file, "--source", source, join=join)
    assert summary["messages"]
    assert "absent-0" in summary["not_found"]
