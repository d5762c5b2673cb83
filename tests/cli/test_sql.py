"""`sql`: right answers, no more read than needed, every form of output, errors in one line."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
import pytest

from fixtures.builder import FIRST_TIME, HandmadeLog
from fixtures.stores import HandmadeStore
from rmqtool.query.sql.session import SqlSession
from rmqtool.scan.options import ReadOptions
from rmqtool.store.layout import Store
from tests.cli.dumping import assert_one_line, keys_of, records
from tests.helpers import ROOT, rmq

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import fixtures

HOUR = 3_600_000
SEGMENT = 4096
COUNT = 90


def moment(hours: int) -> str:
    return f"to_timestamp({FIRST_TIME // 1000 + hours * 3600})"


@pytest.fixture
def log() -> HandmadeLog:
    """Records an hour apart, about 18 in a segment."""
    log = HandmadeLog(segment_size=SEGMENT)
    for number in range(COUNT):
        log.put(
            f"T{number % 3}", b"x" * 100, {"KEYS": f"k{number}"}, store_timestamp=FIRST_TIME + number * HOUR
        )
    return log


@pytest.fixture
def store(tmp_path: Path, log: HandmadeLog) -> Path:
    log.write(tmp_path / "commitlog")
    return tmp_path


def answers(store: Path, sql: str) -> list[tuple[Any, ...]]:
    """The rows of an answer that is complete."""
    result = rmq("sql", store, sql, "--format", "ndjson")
    assert result.exit_code == 0, result.stderr
    *rows, summary = result.rows
    assert summary["complete"] is True
    assert summary["schema"] == "rmqtool.sql/1"
    assert all(row.pop("type") == "row" for row in rows)
    return [tuple(row.values()) for row in rows]


def session(store: Path) -> SqlSession:
    return SqlSession(Store.open(store), ReadOptions())


def ask(open_session: SqlSession, sql: str) -> list[dict[str, Any]]:
    reader = open_session.run(sql)
    rows: list[dict[str, Any]] = reader.read_all().to_pylist()
    return rows


@pytest.mark.share
@pytest.mark.parametrize("name", ["v498-basic", "v533-compressed", "v533-v2", "v498-expired-head"])
def test_messages_are_what_java_answers(golden: Callable[[str], fixtures.Golden], name: str) -> None:
    opened = golden(name)
    found = answers(
        opened.path,
        "select physical_offset, topic, queue_offset, keys, store_timestamp, "
        "epoch_ms(store_time) from messages order by 1",
    )
    assert found == [
        (
            one["physicalOffset"],
            one["topic"],
            one["queueOffset"],
            keys_of(one) if one["keys"] is not None else None,
            one["storeTimestamp"],
            one["storeTimestamp"],
        )
        for one in records(opened)
    ]


def test_units_items_offsets_and_topics_are_those_of_dump(golden: Callable[[str], fixtures.Golden]) -> None:
    store = golden("b533-full").path
    units = rmq("dump", store / "consumequeue", "--format", "ndjson").of_type("unit")
    found = answers(
        store, "select path, slot, physical_offset, size, tags_code, state from consumequeue order by all"
    )
    names = ("path", "slot", "physical_offset", "size", "tags_code", "state")
    assert found == sorted(tuple(unit[name] for name in names) for unit in units)
    items = rmq("dump", store / "index", "--format", "ndjson").of_type("index_item")
    names = ("path", "number", "key_hash", "physical_offset")
    found = answers(store, f"select {', '.join(names)} from index_items order by all")
    assert found == sorted(tuple(item[name] for name in names) for item in items)
    offsets = json.loads((store / "config/consumerOffset.json").read_text().replace("{0:", '{"0":').replace(
        ",1:", ',"1":').replace(",2:", ',"2":').replace(",3:", ',"3":'))["offsetTable"]  # fmt: skip
    found = answers(
        store, "select topic || '@' || consumer_group, queue_id, committed_offset from consumer_offsets"
    )
    assert sorted(found) == sorted(
        (name, int(queue), offset) for name, queues in offsets.items() for queue, offset in queues.items()
    )
    found = answers(
        store, "select topic, perm, read_queue_nums from topics where configured and topic = 'TopicReadOnly'"
    )
    assert found == [("TopicReadOnly", 4, found[0][2])]


def test_batch_units(golden: Callable[[str], fixtures.Golden]) -> None:
    store = golden("v533-batchcq").path
    units = rmq("dump", store / "batchconsumequeue", "--format", "ndjson").of_type("unit")
    found = answers(
        store, "select base_offset, batch_size from consumequeue where batch_size is not null order by all"
    )
    assert found == sorted((unit["base_offset"], unit["batch_size"]) for unit in units)


def test_a_table_joins_itself(store: Path) -> None:
    (row,) = answers(store, "select count(*) from messages a join messages b using (physical_offset)")
    assert row == (COUNT,)


def test_two_queries_on_one_connection(store: Path) -> None:
    with session(store) as one:
        for _ in range(2):
            assert ask(one, "select count(*) as n from messages") == [{"n": COUNT}]
            assert len(ask(one, "select * from messages where topic = 'T1'")) == COUNT // 3


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        (f"store_timestamp >= {FIRST_TIME + 80 * HOUR}", range(80, COUNT)),
        (f"store_timestamp < {FIRST_TIME + 5 * HOUR}", range(5)),
        (f"store_time between {moment(40)} and {moment(42)}", range(40, 43)),
        (f"physical_offset < {SEGMENT} and topic = 'T0'", None),
        (f"segment = {2 * SEGMENT}", None),
    ],
)  # fmt: skip
def test_only_segments_that_may_hold_rows_are_read(
    store: Path, log: HandmadeLog, condition: str, wanted: range | None
) -> None:
    with session(store) as one:
        rows = ask(one, f"select physical_offset from messages where {condition} order by 1")
        opened = set(one.messages.opened)
    found = [row["physical_offset"] for row in rows]
    if wanted is not None:
        assert found == [log.records[number].physical_offset for number in wanted]
    holding = {offset // SEGMENT * SEGMENT for offset in found}
    last = max(log.segments)
    assert holding <= opened
    assert opened <= holding | {last}
    assert len(opened) < len(log.segments)


def test_every_condition_means_the_same_as_without_pushing_it_down(store: Path) -> None:
    for condition in (
        "topic in ('T0', 'T2')", "topic is null", "topic like 'T%' and queue_offset <> 3", "keys is not null",
        "queue_offset < 4 or store_size = 0", "not (topic = 'T1')", "topic > 'T0' and body_length = 100",
        "born_time is null", "store_time >= timestamptz '2023-11-15 00:00:00+00'", "tags = 'store_time'",
    ):  # fmt: skip
        pushed = answers(store, f"select count(*) from messages where {condition}")
        plain = answers(
            store, f"select count(*) filter (where {condition}) from (select * from messages offset 0)"
        )
        assert pushed == plain, condition


def test_columns_that_are_not_asked_for_are_not_made(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from rmqtool.query.sql import messages

    asked: list[tuple[str, ...]] = []
    usual = messages.scan_log

    def scan(segments: Any, how: Any) -> Any:
        asked.append(tuple(how.columns))
        return usual(segments, how)

    monkeypatch.setattr(messages, "scan_log", scan)
    with session(store) as one:
        ask(one, "select topic, store_time from messages where queue_offset > 3")
    assert [set(columns) for columns in asked] == [{"topic", "store_timestamp"}]


@pytest.mark.parametrize("form", ["table", "ndjson", "json", "csv"])
def test_forms(store: Path, form: str) -> None:
    result = rmq("sql", store, "select 'a' x, 1 y, 'b'::blob z, 1.5 d, sum(2) s, null n", "--format", form)
    assert result.exit_code == 0, result.stderr
    if form == "json":
        (row,) = json.loads(result.stdout)["rows"]
        assert row == {"type": "row", "x": "a", "y": 1, "z_hex": "62", "d": 1.5, "s": 2, "n": None}
    elif form == "ndjson":
        assert result.rows[0]["z_hex"] == "62"
    elif form == "csv":
        assert result.stdout.splitlines() == ["x,y,z_hex,d,s,n", "a,1,62,1.5,2,"]
    else:
        assert "z_hex" in result.stdout


def test_what_parquet_cannot_hold_is_a_usage_error(store: Path) -> None:
    done = rmq("sql", store, "select interval 1 day as wait", "--format", "parquet")
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "Parquet cannot hold this result" in done.stderr


def test_parquet_goes_into_a_pipe(store: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "rmqtool", "sql", str(store), "select topic, body from messages", "--format",
         "parquet"],
        capture_output=True, check=True, cwd=ROOT,
    )  # fmt: skip
    table = pq.read_table(io.BytesIO(done.stdout))
    assert (table.num_rows, table.schema.names) == (COUNT, ["topic", "body"])


def test_values_of_all_types_have_a_form(store: Path) -> None:
    (row,) = answers(
        store,
        "select [1, 2], {'a': date '2020-01-01', 'b': 'x'::blob}, map {'k': 1}, timestamp '2020-01-01', "
        "time '01:02:03', interval 1 day, 2::hugeint, uuid '00000000-0000-0000-0000-000000000001', true, "
        "'nan'::double, date '9999-12-31' + 1",
    )
    assert row[:5] == ([1, 2], {"a": "2020-01-01", "b": "78"}, {"k": 1}, "2020-01-01T00:00:00", "01:02:03")
    assert row[6:10] == (2, "00000000-0000-0000-0000-000000000001", True, None)
    low, high = rmq("sql", store, "from test_all_types()", "--format", "ndjson").rows[:2]
    assert low["bigint"] == -high["bigint"] - 1
    assert high["date_array"][::4] == ["1970-01-01", "2022-05-12"]  # between them dates of millions of years
    assert high["map"] == {"key1": "🦆🦆🦆🦆🦆🦆", "key2": "goose"}


def test_equal_names_stay_apart(store: Path) -> None:
    (row,) = rmq("sql", store, "select 1 a, 2 a, 3 as type", "--format", "ndjson").rows[:-1]
    assert list(row.values()) == ["row", 1, 2, 3]


@pytest.mark.share
@pytest.mark.parametrize(
    "sql",
    [
        "selct 1", "select nothing from messages", "select * from elsewhere", "", "  ",
        "select 1/'x'::int", "select * from read_csv('/etc/passwd')", "copy topics to '/tmp/rmqtool.csv'",
        "attach '/tmp/rmqtool-never.db'", "set enable_external_access = true", "install httpfs",
    ],
)  # fmt: skip
def test_errors_are_one_clear_line(store: Path, sql: str) -> None:
    assert_one_line(rmq("sql", store, sql), 2)


def test_without_the_database_the_extra_is_named(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    result = rmq("sql", store, "select 1")
    assert_one_line(result, 2)
    assert "rmqtool[sql]" in result.stderr


def test_nothing_found(store: Path) -> None:
    assert rmq("sql", store, "select * from messages where topic = 'Nope'").exit_code == 1


_COMMANDS = (
    "copy topics to ':memory:'", "copy topics to ':memory:.wal'", "copy topics to 'made'",
    "copy topics from ':memory:'", "explain analyze copy topics to ':memory:'",
    "explain analyze copy topics to 'made'", "attach ':memory:' as more", "attach 'made.db'",
    "export database 'made'", "import database '.'", "install json", "load json",
    "load './lib.duckdb_extension'", "set threads = 1", "reset threads", "pragma version",
    "pragma database_list", "call pragma_version()", "checkpoint", "vacuum", "begin",
    "create table made (a int)", "create table ':memory:' as select 1", "create macro m() as 1",
    "create persistent secret s (type http)", "prepare p as select 1",
    "insert into topics select * from topics", "/* a */ explain analyze create table made (a int)",
    "explain (analyze, format json) create table made as select 1", "explain create table made (a int)",
    "explain analyze call enable_logging()", "explain analyze set threads = 1", "execute p",
    "update topics set topic = 1", "set variable a = 1", "use memory", "detach memory",
    "copy from database memory to made", "select 1; select 2", "update extensions",
)  # fmt: skip
_DEEP = "+".join(["1"] * 900)
_FOREIGN = (
    "select * from read_csv(':memory:')", "select * from read_csv(':memory:.wal')",
    "select * from ':memory:'", "select * from read_blob(':memory:')",
    "select * from read_text('there.csv')", "select * from 'there.csv'",
    "select * from read_csv('there.csv')", "select * from glob('*')", "select * from glob(':memory:')",
    "select * from query('from read_csv('':memory:'')')", "select * from read_csv('/dev/stdin')",
    "from read_text /* a */ ('there.csv')", "from main.\"read_text\"('there.csv')",
    "describe from read_csv('there.csv')", "select (from read_text('there.csv'))",
    "pivot (from read_csv('there.csv')) on a", "select 'é', 1 from glob('*')",
    "explain analyze from read_text('there.csv')", "from query('select 1')", "from query_table('topics')",
    "from json_execute_serialized_sql(json_serialize_sql('from read_text(''there.csv'')'))",
    "from duckdb_settings()", "from duckdb_memory()", "from checkpoint()",
    "from enable_profiling(save_location = 'made')",
    "from enable_logging(storage = 'file', storage_path = 'made')", "from sniff_csv('there.csv')",
    "select * from 'http://127.0.0.1:9/a.csv'", "from read_parquet('s3://b/a.parquet')",
    "from information_schema.tables", "from pg_catalog.pg_settings", "from duckdb_tables",
    "with t as (from sqlite_master) from t", "select (select count(*) from memory.main.duckdb_views)",
    "with a as (delete from topics returning *) select 1",
    "select getenv('HOME')", "with a as (insert into topics values (1) returning *) from a", "select $1",
    "from sqlite_master, (with sqlite_master as (select 1) select 1)", "from pg_catalog.main.a.b",
    "with sqlite_master as (from sqlite_master) from sqlite_master",
    "with a as (from sqlite_master), sqlite_master as (select 1) from a",
    "with recursive a as (select 1 union (with sqlite_master as (select 1) from a)) from sqlite_master",
    "select current_setting('secret_directory')", "select main.\"CURRENT_SETTING\"('temp_directory')",
    "select 'temp_directory'.current_setting()", "select getvariable('a')", "select write_log('a')",
    "select json_serialize_plan('select current_setting(''temp_directory'')', optimize := true)",
    "select get_block_size('memory')", "select pg_get_viewdef(1)", "select sleep_ms(1)", "select pg_sleep(1)",
    "select nextval('a')", "from repeat(current_setting('temp_directory'), 1)",
    "pivot (from sqlite_master) on name", "pivot sqlite_master on name", "pivot 'sqlite_master' on name",
    "pivot (from information_schema . tables) on table_name", 'pivot "Duckdb_Views" on sql',
    "pivot (select current_setting ('temp_directory') a) on a", "pivot (select getvariable('a') b) on b",
    *(pytest.param(f"select {_DEEP}, {more}", id=f"deep {more}") for more in (
        "* from duckdb_views", "(from information_schema.tables)", "current_setting('temp_directory')")),
    "select '\udcff'",
)  # fmt: skip


@pytest.mark.share
@pytest.mark.parametrize("sql", [*_COMMANDS, *_FOREIGN])
def test_nothing_but_the_tables_is_reachable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sql: str
) -> None:
    there = tmp_path / "here"
    there.mkdir()
    for name in (":memory:", ":memory:.wal", "there.csv"):
        (there / name).write_text("a\nsecret\n", encoding="utf-8")
    monkeypatch.chdir(there)
    HandmadeLog(segment_size=SEGMENT).write(tmp_path / "store" / "commitlog")
    result = rmq("sql", tmp_path / "store", sql, "--format", "ndjson")
    assert_one_line(result, 2)
    assert "secret" not in result.stdout + result.stderr
    assert {path.name: path.read_text() for path in there.iterdir()} == dict.fromkeys(
        (":memory:", ":memory:.wal", "there.csv"), "a\nsecret\n"
    )


@pytest.mark.share
@pytest.mark.parametrize(
    "sql", ["explain select 1", "describe topics", "show tables", "summarize topics", "values (1)",
            "from range(3)", "with a as (select 1) from a", "pivot (select 1 a, 2 b) on a using sum(b)",
            "explain analyze select 1", "explain (format json) (select 1)", "explain (select 1)",
            "select version()",
            "with sniff_csv(a) as (select 1) select a from sniff_csv", "select a from (select 1) as query(a)",
            "select checkpoint, (1) from (select 1 as checkpoint) order by checkpoint",
            "with recursive query(a) as (select 1 union select 2 from query) from query",
            pytest.param(f"select {_DEEP}", id="deep"),
            "with a as (select 1), b as (from a) from b where 1 in (with c as (from b) select 1 from a, c)",
            "select now(), age(today()), random(), uuid(), current_date, current_localtimestamp()",
            "pivot (select now() a, 'main' b) on b using max(a)",
            "/* a */ explain /* b */ analyze /* c */ select 1", "from unnest([1])", "select 'read_csv (1)'"],
)  # fmt: skip
def test_queries_of_every_shape_are_run(store: Path, sql: str) -> None:
    assert answers(store, sql)


def damage(store: Path, log: HandmadeLog, number: int) -> None:
    at = log.records[number].physical_offset
    with (store / f"commitlog/{at // SEGMENT * SEGMENT:020d}").open("r+b") as file:
        file.seek(at % SEGMENT)
        file.write(b"\xee" * 8)


def test_damage_in_what_was_read_is_told_once(store: Path, log: HandmadeLog) -> None:
    damage(store, log, 5)
    sql = "select count(*) from messages a join messages b using (physical_offset)"
    result = rmq("sql", store, sql, "--format", "ndjson")
    reported = result.rows[-1]
    assert (result.exit_code, reported["complete"], reported["incomplete_reason"]) == (3, False, "damage")
    (row,) = reported["not_covered"]
    assert row["physical_offset"] == log.records[5].physical_offset


def test_a_segment_that_is_not_there_is_reported(store: Path) -> None:
    (store / "commitlog" / f"{SEGMENT:020d}").unlink()
    for where, code in (
        ("", 3),
        ("where segment = 4096", 3),
        ("where physical_offset = 5000", 3),
        ("where segment = 0", 0),
        ("where physical_offset >= 8192", 0),
    ):
        result = rmq("sql", store, f"select count(*) from messages {where}", "--format", "ndjson")
        assert result.exit_code == code, where
        lacking = [(row["physical_offset"], row["length"]) for row in result.rows[-1].get("not_covered", ())]
        assert lacking == ([(4096, 4096)] if code else [])
    os.truncate(store / "commitlog" / f"{2 * SEGMENT:020d}", 100)
    cut = rmq("sql", store, "select count(*) from messages where segment = 8192", "--format", "ndjson")
    assert 8292 in [row["physical_offset"] for row in cut.rows[-1]["not_covered"]]


def test_damage_elsewhere_is_none_of_the_question(store: Path, log: HandmadeLog) -> None:
    damage(store, log, 5)
    assert answers(store, f"select count(*) from messages where physical_offset >= {SEGMENT}")


def test_nothing_is_written(store: Path, store_unchanged: Callable[[Path], Path]) -> None:
    store_unchanged(store)
    answers(store, "select count(*), max(plain_body_sha256) from messages")


def test_names_that_are_no_utf8_end_no_query(store: Path) -> None:
    for place in (b"consumequeue/T\xff/0", b"consumequeue/T/\xff", b"consumequeue/T/0"):
        directory = os.path.join(os.fsencode(store), place)
        os.makedirs(directory)
        with open(os.path.join(directory, b"0" * 20), "wb") as file:
            file.write((1).to_bytes(8, "big") + (100).to_bytes(4, "big") + bytes(8))
    with open(os.path.join(os.fsencode(store), b"consumequeue/T/0", b"0" * 19 + b"\xff"), "wb") as file:
        file.write(bytes(20))
    for sql in (
        "select topic from consumequeue order by all",
        "select topic from consumequeue where path > 'a'",
    ):
        assert set(answers(store, sql)) == {("T",), (None,)}
    assert answers(store, "select topic from consumequeue where topic = 'T'") == [("T",)]
    assert (r"T\udcff",) in answers(store, "select topic from topics")


def test_a_log_that_is_not_decoded_is_not_covered(golden):
    result = rmq("sql", golden("b533-dledger").path, "SELECT count(*) FROM messages", "--format", "ndjson")
    assert (result.exit_code, result.rows[-1]["incomplete_reason"]) == (3, "unreadable")


def test_only_tables_that_are_read_make_an_answer_incomplete(tmp_path: Path) -> None:
    """Not words in the statement: a literal, a comment, a name in WITH."""
    store = HandmadeStore()
    for number in range(30):
        store.put("Orders", b"body %d" % number)
    store.write(tmp_path)
    store.add("config/topics.json", b'{"topicConfigTable')
    store.patch(*store.segment(store.stored[-1].offset), bytes(store.stored[-1].size))
    whole = (
        "select 'topics', count(*) from consumequeue -- messages",
        "with messages as (select 1) select * from messages",
        "describe topics",
        "select count(*) from messages where false",
    )
    for statement in whole:
        reported = rmq("sql", tmp_path, statement, "--format", "ndjson")
        assert (reported.exit_code, reported.rows[-1]["complete"]) == (0, True), statement
    lacking = {"select topic from topics": "config/topics.json", "from messages limit 1": "commitlog/"}
    for statement, path in lacking.items():
        reported = rmq("sql", tmp_path, statement, "--format", "ndjson")
        assert reported.exit_code == 3, statement
        assert reported.rows[-1]["not_covered"][0]["path"].startswith(path)
