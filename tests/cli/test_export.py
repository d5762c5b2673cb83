"""`export`: every form has every message once, damage is reported, nothing is overwritten."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from fixtures.builder import FIRST_TIME, HandmadeLog
from fixtures.many import Many
from tests.cli.dumping import assert_one_line, keys_of, plain_body, raw_record, records
from tests.helpers import Result, rmq
from tests.scan.replay_reader import ReplayReader

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import fixtures

SEGMENT = 4096
STORES = ("v498-basic", "v533-compressed", "v533-ipv6", "v533-tx", "v533-v2", "v498-expired-head")


@pytest.fixture
def log() -> HandmadeLog:
    log = HandmadeLog(segment_size=SEGMENT)
    for number in range(60):
        log.put(f"Topic{number % 2}", b"x" * 100, {"KEYS": f"k{number}", "TAGS": "AB"[number % 3 == 0]})
    return log


@pytest.fixture
def store(tmp_path: Path, log: HandmadeLog) -> Path:
    log.write(tmp_path / "store/commitlog")
    return tmp_path / "store"


def export(store: Path, to: Path, *options: object) -> dict[str, Any]:
    """The summary document of an export that succeeds."""
    result = rmq("export", store, "--to", to, *options, "--json")
    assert result.exit_code == 0, result.stderr
    reported: dict[str, Any] = json.loads(result.stdout)
    assert reported["schema"] == "rmqtool.export/1"
    return reported


def rows_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def table(path: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(path).to_pylist()
    return rows


def replayed(path: Path) -> list[bytes]:
    with path.open("rb") as stream:
        reader = ReplayReader(stream)
        found = list(reader)
    assert reader.end is not None
    assert reader.end.whole
    return found


@pytest.mark.share
@pytest.mark.parametrize("name", STORES)
def test_parquet_is_what_java_answers(
    golden: Callable[[str], fixtures.Golden], tmp_path: Path, name: str
) -> None:
    opened = golden(name)
    reported = export(opened.path, tmp_path / "all.parquet")
    rows = table(tmp_path / "all.parquet")
    java = records(opened)
    assert reported["messages"] == len(rows) == len(java)
    for row, record in zip(rows, java, strict=True):
        assert row["physical_offset"] == record["physicalOffset"]
        assert row["topic"] == record["topic"]
        assert row["queue_offset"] == record["queueOffset"]
        assert (row["keys"] or []) == keys_of(record)
        assert row["store_timestamp"] == record["storeTimestamp"]
        assert int(row["store_time"].timestamp() * 1000 + 0.5) == record["storeTimestamp"]
        if record["sysFlag"] & 0x700 in {0, 0x300}:
            assert row["plain_body"] == plain_body(opened.path, record)


@pytest.mark.share
@pytest.mark.parametrize("name", STORES)
def test_stored_records_come_back(
    golden: Callable[[str], fixtures.Golden], tmp_path: Path, name: str
) -> None:
    opened = golden(name)
    stored = [raw_record(opened.path, record) for record in records(opened)]
    export(opened.path, tmp_path / "all.raw")
    assert (tmp_path / "all.raw").read_bytes() == b"".join(stored)
    export(opened.path, tmp_path / "all.replay")
    assert replayed(tmp_path / "all.replay") == stored


def test_ndjson_is_what_dump_lists(store: Path, tmp_path: Path) -> None:
    export(store, tmp_path / "all.ndjson", "--topic", "Topic1")
    *rows, summary = rows_of(tmp_path / "all.ndjson")
    listed = rmq("dump", store, "--topic", "Topic1", "--format", "ndjson").of_type("message")
    assert rows == listed
    assert (summary["type"], summary["messages"], summary["complete"]) == ("summary", 30, True)


def test_csv_is_what_dump_lists(store: Path, tmp_path: Path) -> None:
    export(store, tmp_path / "all.csv", "--limit", 7)
    listed = list(csv.DictReader(rmq("dump", store, "--format", "csv", "--limit", 7).stdout.splitlines()))
    written = list(csv.DictReader((tmp_path / "all.csv").read_text().splitlines()))
    assert len(written) == 7
    assert [{name: row[name] for name in written[0]} for row in listed] == written


def test_csv_for_spreadsheets(tmp_path: Path) -> None:
    log = HandmadeLog(segment_size=SEGMENT)
    log.put("-T", b"x", {"TAGS": "=1+1", "KEYS": "@k"})
    log.write(tmp_path / "store" / "commitlog")
    export(tmp_path / "store", tmp_path / "all.csv", "--spreadsheet")
    (row,) = csv.DictReader((tmp_path / "all.csv").read_text().splitlines())
    assert (row["topic"], row["tags"]) == ("'-T", "'=1+1")
    for command, *more in (("dump",), ("tail",), ("sql", "select topic, tags, -1 as low from messages")):
        done = rmq(command, tmp_path / "store", *more, "--format", "csv", "--spreadsheet")
        row = next(csv.DictReader(done.stdout.splitlines()))
        assert (row["topic"], row["tags"], row.get("low", "-1")) == ("'-T", "'=1+1", "-1")
    for refused in (
        ("info", tmp_path / "store"),
        ("export", tmp_path / "store", "--to", tmp_path / "x.ndjson"),
    ):
        assert_one_line(rmq(*refused, "--spreadsheet"), 2)


def test_filters(store: Path, log: HandmadeLog, tmp_path: Path) -> None:
    middle = FIRST_TIME + 31
    for number, (options, wanted) in enumerate(
        (
            (("--tag", "A"), [n for n in range(60) if n % 3]),
            (("--from", middle), list(range(30, 60))),
            (("--until", middle), list(range(30))),
            (("--filter", "A || C"), [n for n in range(60) if n % 3]),
            (("--filter", "TAGS = 'B'", "--filter-type", "SQL92"), list(range(0, 60, 3))),
            (("--key", "k7"), [7]),
            (
                ("--offset-range", f"{log.records[5].physical_offset}:{log.records[8].physical_offset}"),
                [5, 6, 7],
            ),
        )
    ):
        to = tmp_path / f"{number}.parquet"
        export(store, to, *options)
        offsets = [row["physical_offset"] for row in table(to)]
        assert offsets == [log.records[n].physical_offset for n in wanted], options


def test_whole_segments_outside_of_the_time_are_not_read(tmp_path: Path) -> None:
    log = HandmadeLog(segment_size=SEGMENT)
    hour = 3_600_000
    for number in range(60):
        log.put("T", b"x" * 100, store_timestamp=FIRST_TIME + number * hour)
    log.write(tmp_path / "commitlog")
    reported = export(tmp_path, tmp_path.parent / f"{tmp_path.name}.raw", "--from", FIRST_TIME + 50 * hour)
    assert reported["messages"] == 10
    assert 0 < reported["segments_skipped"] < len(log.segments)


def test_limit_is_no_failure(store: Path, tmp_path: Path) -> None:
    reported = export(store, tmp_path / "some.replay", "--limit", 5)
    assert (reported["messages"], reported["complete"], reported["incomplete_reason"]) == (5, False, "limit")
    assert len(replayed(tmp_path / "some.replay")) == 5


def test_sample(store: Path, tmp_path: Path) -> None:
    assert export(store, tmp_path / "some.parquet", "--sample", 9)["messages"] == 9
    assert len(table(tmp_path / "some.parquet")) == 9


def test_nothing_found_is_an_empty_file(store: Path, tmp_path: Path) -> None:
    export(store, tmp_path / "none.parquet", "--topic", "Nope")
    assert pq.read_table(tmp_path / "none.parquet").num_rows == 0
    assert "topic" in pq.read_schema(tmp_path / "none.parquet").names
    export(store, tmp_path / "none.replay", "--topic", "Nope")
    assert replayed(tmp_path / "none.replay") == []


def damage(store: Path, log: HandmadeLog, number: int, inside: int, count: int) -> None:
    at = log.records[number].physical_offset + inside
    with (store / f"commitlog/{at // SEGMENT * SEGMENT:020d}").open("r+b") as file:
        file.seek(at % SEGMENT)
        file.write(b"\xee" * count)


@pytest.mark.parametrize("form", ["ndjson", "csv", "parquet", "raw", "replay"])
def test_damage_in_the_scope_is_reported(store: Path, log: HandmadeLog, tmp_path: Path, form: str) -> None:
    damage(store, log, 9, 0, 8)
    result = rmq("export", store, "--to", tmp_path / f"x.{form}", "--json")
    assert result.exit_code == 3
    reported = json.loads(result.stdout)
    assert (reported["messages"], reported["complete"], reported["incomplete_reason"]) == (
        59,
        False,
        "damage",
    )
    (row,) = reported["not_covered"]
    placed = log.records[9]
    assert (row["physical_offset"], row["length"]) == (placed.physical_offset, len(placed.data))


def test_damage_elsewhere_is_none_of_the_question(store: Path, log: HandmadeLog, tmp_path: Path) -> None:
    damage(store, log, 9, 0, 8)
    first, last = log.records[20].physical_offset, log.records[30].physical_offset
    assert export(store, tmp_path / "x.raw", "--offset-range", f"{first}:{last}")["complete"]


def test_a_damaged_body_is_exported_and_reported(store: Path, log: HandmadeLog, tmp_path: Path) -> None:
    damage(store, log, 9, 100, 3)
    result = rmq("export", store, "--to", tmp_path / "x.parquet", "--json")
    reported = json.loads(result.stdout)
    assert (result.exit_code, reported["messages"], reported["bad_crc"]) == (3, 60, 1)
    assert [row["crc"] for row in table(tmp_path / "x.parquet")].count("bad") == 1


def test_damaged_bodies_are_a_row_of_each_file(tmp_path: Path) -> None:
    """However many they are: none is beyond what a summary lists."""
    many = Many(1, 1, 4000, queue_file=40_000)
    root = many.write(tmp_path / "store")
    many.spoil(root, np.arange(1, 4000, 2))
    result = rmq("export", root, "--to", tmp_path / "x.raw", "--json")
    reported = json.loads(result.stdout)
    assert (result.exit_code, reported["messages"], reported["bad_crc"]) == (3, 4000, 2000)
    (row,) = reported["not_covered"]
    assert (row["records"], row["cause"], row["error"]) == (2000, "body", "2000 bodies fail their CRC")
    size = many.record_size
    assert (row["position"], row["length"]) == (size, 3999 * size)
    assert "not_covered_left_out" not in reported


@pytest.mark.parametrize("missing", [False, True])
def test_a_segment_that_is_not_there(store: Path, log: HandmadeLog, tmp_path: Path, missing: bool) -> None:
    second = store / f"commitlog/{SEGMENT:020d}"
    if missing:
        second.unlink()
    else:
        second.write_bytes(b"")
    result = rmq("export", store, "--to", tmp_path / "x.parquet", "--json")
    reported = json.loads(result.stdout)
    assert (result.exit_code, reported["complete"]) == (3, False)
    assert sum(row["length"] for row in reported["not_covered"]) == SEGMENT


def test_nothing_is_overwritten(store: Path, tmp_path: Path) -> None:
    to = tmp_path / "x.raw"
    to.write_text("mine")
    result = rmq("export", store, "--to", to)
    assert_one_line(result, 2)
    assert "--force" in result.stderr
    assert to.read_text() == "mine"
    export(store, to, "--force")
    assert to.stat().st_size > 4
    assert sorted(path.name for path in tmp_path.iterdir()) == ["store", "x.raw"]


def test_a_directory_that_no_export_made_is_never_replaced(store: Path, tmp_path: Path) -> None:
    to = tmp_path / "lake"
    to.mkdir()
    (to / "mine").write_text("mine")
    for force in ((), ("--force",)):
        assert_one_line(rmq("export", store, "--to", to, "--partition", "topic", *force), 2)
    assert (to / "mine").read_text() == "mine"
    to.rename(tmp_path / "lake.part")
    for more in (("--partition", "topic"), ("--format", "parquet")):
        assert_one_line(rmq("export", store, "--to", to, "--force", *more), 2)
    assert (tmp_path / "lake.part" / "mine").read_text() == "mine"
    (tmp_path / "lake.part" / "mine").unlink()
    (tmp_path / "lake.part").rename(to)
    export(store, to, "--partition", "topic")
    assert_one_line(rmq("export", store, "--to", to, "--partition", "topic"), 2)
    export(store, to, "--partition", "topic", "--force", "--topic", "Topic0")
    assert ds.dataset(to, format="parquet", partitioning="hive").to_table().num_rows == 30


@pytest.mark.parametrize(
    "options",
    [
        (), ("--to", ""), ("--to", "-"), ("--to", "x.unknown"), ("--to", "x.raw", "--to", "-1h"),
        ("--to", "x.raw", "--redact", "body"), ("--to", "x.replay", "--body", "hex"),
        ("--to", "x.csv", "--partition", "topic"), ("--to", "x", "--partition", "tag"),
        ("--to", "x.csv", "--compression", "zstd"), ("--to", "no/such/x.csv"),
        ("--to", "x.csv", "--until", "1", "--from", "2"), ("--to", "x.parquet", "--int64-as-string"),
    ],
)  # fmt: skip
def test_senseless_options_are_one_clear_line(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert_one_line(rmq("export", store, *options), 2)
    assert [path.name for path in tmp_path.iterdir()] == ["store"]


@pytest.mark.parametrize("time", ["-2h", "now", "2026-11-21", "1700000000000", "2026-11-21#10:00:00:000"])
def test_a_time_is_no_name_of_a_file(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, time: str
) -> None:
    monkeypatch.chdir(tmp_path)
    for more in ((), ("--format", "csv"), ("--format", "parquet", "--partition", "topic")):
        result = rmq("export", store, "--from", "1", "--to", time, *more)
        assert_one_line(result, 2)
        assert "--until" in result.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["store"]
    export(store, f"./{time}", "--format", "csv")  # type: ignore[arg-type] - as it is typed
    assert (tmp_path / time).is_file()


def test_the_end_of_a_time_span(store: Path, tmp_path: Path, log: HandmadeLog) -> None:
    times = sorted(
        row["store_timestamp"] for row in rmq("dump", store, "--format", "ndjson").of_type("message")
    )
    export(store, tmp_path / "x.ndjson", "--from", times[10], "--until", times[20])
    found = [row["store_timestamp"] for row in rows_of(tmp_path / "x.ndjson")[:-1]]
    assert found == [one for one in times if times[10] <= one < times[20]]
    assert len(log.records) == len(times)


def test_nothing_is_written_in_the_store(store: Path, store_unchanged: Callable[[Path], Path]) -> None:
    store_unchanged(store)
    for place in ("x.raw", "commitlog/x.raw"):
        result = rmq("export", store, "--to", store / place)
        assert_one_line(result, 2)
        assert "in the store" in result.stderr


def test_partitions(store: Path, log: HandmadeLog, tmp_path: Path) -> None:
    to = tmp_path / "lake"
    export(store, to, "--partition", "topic,day")
    names = {path.relative_to(to).as_posix() for path in to.rglob("*.parquet")}
    assert names == {f"topic=Topic{n}/day=2023-11-14/part-00000.parquet" for n in (0, 1)}
    read = ds.dataset(to, format="parquet", partitioning="hive").to_table()
    assert sorted(read["physical_offset"].to_pylist()) == [one.physical_offset for one in log.records]
    assert json.loads((to / "_rmqtool-export.json").read_bytes())["messages"] == 60


def test_odd_topics_and_times_are_partitions_too(tmp_path: Path) -> None:
    log = HandmadeLog()
    topics = ["%RETRY%g", "a/b", "..", "ü ", "x=y"]
    for topic in topics:
        log.put(topic, b"x", store_timestamp=1 << 62)
    log.put("T", b"x")
    log.write(tmp_path / "store/commitlog")
    export(tmp_path / "store", tmp_path / "lake", "--partition", "topic,day")
    read = ds.dataset(tmp_path / "lake", format="parquet", partitioning="hive").to_table()
    assert sorted(read["topic"].to_pylist()) == sorted([*topics, "T"])
    assert read["day"].null_count == read["store_time"].null_count == 5
    assert all(path.parent.parent.parent == tmp_path / "lake" for path in tmp_path.rglob("*.parquet"))


def test_readers_may_skip_row_groups(store: Path, tmp_path: Path) -> None:
    export(store, tmp_path / "x.parquet")
    metadata = pq.read_metadata(tmp_path / "x.parquet")
    group = metadata.row_group(0)
    columns = {group.column(n).path_in_schema: group.column(n) for n in range(metadata.num_columns)}
    assert columns["store_timestamp"].statistics.min == FIRST_TIME + 1
    assert (columns["topic"].statistics.min, columns["topic"].statistics.max) == ("Topic0", "Topic1")
    assert columns["topic"].has_dictionary_page
    assert columns["plain_body"].statistics is None
    (order,) = metadata.row_group(0).sorting_columns
    assert metadata.schema.names[order.column_index] == "physical_offset"
    assert json.loads(metadata.metadata[b"rmqtool.export"])["complete"] is True


@pytest.mark.share
@pytest.mark.parametrize("form", ["parquet", "ndjson", "csv"])
@pytest.mark.parametrize("what", ["body", "keys", "hosts", "properties", "body,keys,hosts,properties"])
def test_what_is_redacted_is_in_no_file(
    golden: Callable[[str], fixtures.Golden], tmp_path: Path, form: str, what: str
) -> None:
    opened = golden("v498-basic")
    to = tmp_path / f"x.{form}"
    export(
        opened.path, to, "--redact", what, "--body-sha256", *(("--compression", "none") * (form == "parquet"))
    )
    raw = to.read_bytes()
    for record in records(opened)[:50]:
        if "keys" in what:
            assert all(key.encode() not in raw for key in keys_of(record) if len(key) > 4)
        if "body" in what:
            body = plain_body(opened.path, record)
            assert len(body) < 12 or body not in raw
    if "hosts" in what:
        assert b"127.0.0.1" not in raw
    if form == "parquet":
        listed = rmq("dump", opened.path, "--redact", what, "--format", "ndjson", "--body", "--body-sha256")
        hidden = [row["redacted"] for row in listed.of_type("message")]
        assert [row["redacted"] for row in table(to)] == hidden


def test_bodies_as_text(store: Path, tmp_path: Path) -> None:
    export(store, tmp_path / "x.parquet", "--body", "utf8")
    assert {row["body_utf8"] for row in table(tmp_path / "x.parquet")} == {"x" * 100}
    export(store, tmp_path / "y.parquet", "--body", "none", "--body-sha256")
    names = pq.read_schema(tmp_path / "y.parquet").names
    assert "plain_body" not in names
    assert "plain_body_sha256" in names


def test_a_body_that_cannot_be_decompressed_stays_as_it_is(tmp_path: Path) -> None:
    log = HandmadeLog()
    log.put("T", b"no zlib", sys_flag=1)
    log.put("T", b"plain")
    log.write(tmp_path / "store/commitlog")
    for number, options in enumerate(((), ("--redact", "hosts"))):
        to = tmp_path / f"{number}.parquet"
        export(tmp_path / "store", to, *options)
        found = [(row["plain_body"], row["body"]) for row in table(to)]
        assert found[1] == (b"plain", None)
        assert found[0] == ((None, b"no zlib") if not options else (None, None))


def test_the_summary_is_talk_unless_asked_for(store: Path, tmp_path: Path) -> None:
    result: Result = rmq("export", store, "--to", tmp_path / "x.raw")
    assert result.stdout == ""
    assert "60 messages" in result.stderr
    assert "Complete" in result.stderr
