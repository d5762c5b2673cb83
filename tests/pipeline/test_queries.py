"""`pipeline sql` answers what the local command answers."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from pyspark.errors import ParseException

from rmqtool.errors import UsageError
from rmqtool.pipeline.sql_allowed import refuse_all_but_queries
from tests.helpers import rmq
from tests.tiers import sampled

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from rmqtool.cli.context import Context
    from rmqtool.pipeline.options import SourceOptions
    from rmqtool.store.layout import Store

JSON = "--format=ndjson"
SMALL = ("--part-size", "20000")
ORDINARY = [
    "with m as (select * from messages where topic is not null) select count(*) as n from m",
    "select queue_id from (select topic, queue_id, queue_offset, body from messages) order by all",
    "select count(*) as n from (select * from messages) a",
    "select count(distinct body) as n from messages",
    "select topic, tags from messages union all select topic, path from messages order by all nulls last",
    "select count(*) as n from (select * from messages union all select * from messages)",
    "select count(*) as n from (select topic, tags from messages intersect select topic, path from messages)",
    (
        "select a.topic, count(*) as n from messages a join (select * from messages where queue_id = 1) b"
        " on a.physical_offset = b.physical_offset group by a.topic order by a.topic"
    ),
    "select topic, max(queue_offset) over (partition by topic, queue_id) as m from messages order by all",
    (
        "select topic from messages where exists (select 1 from consumequeue c where c.physical_offset ="
        " messages.physical_offset) order by topic"
    ),
    "select topic, (select count(*) from index_items) as n from messages order by all nulls last limit 3",
    (
        "with m as (select * from messages), n as (select * from m) select x.tags, y.body_length from m x"
        " join n y using (physical_offset) order by all nulls last"
    ),
    (
        "select t.perm, count(m.body) as n from topics t left join messages m using (topic) group by all"
        " order by all nulls last"
    ),
]
"""statements that name more, or less, than they use"""


OVER_ALL_TABLES = [
    (
        "select topic, count(*) as n, min(store_time) as first, sum(body_length) as b from messages"
        " where queue_id = 1 group by topic order by topic"
    ),
    (
        "select topic, queue_id, slot, m.tags from consumequeue c join messages m using (topic, queue_id)"
        " where c.physical_offset = m.physical_offset and m.queue_offset < 3 order by 1, 2, 3"
    ),
    "select path, number, key_hash, prev from index_items where number < 5 order by path, number",
    "select * except (store) from topics order by topic",
    (
        "select (select count(*) from messages where queue_id = 1) as a, (select max(body_length) from"
        " messages) as b, count(*) as n from messages where queue_offset < 3"
    ),
    (
        "with one as (select count(*) as n from messages where physical_offset < 9000), two as"
        " (select count(*) as m from messages where physical_offset >= 9000) select n, m from one, two"
    ),
]


@pytest.mark.share
@pytest.mark.parametrize("statement", sampled([*OVER_ALL_TABLES, *ORDINARY], kind=lambda _: 0, each=3))
def test_sql(spark: SparkSession, goldens: dict[str, Path], statement: str) -> None:
    store = goldens["v533-compressed"]
    done = rmq("pipeline", "sql", store, statement, "--format", "ndjson", *SMALL)
    local = rmq("sql", store, statement.replace("* except (store)", "*"), "--format", "ndjson")
    assert done.exit_code == local.exit_code == 0, done.stderr
    assert done.rows[:-1] == local.rows[:-1]
    assert len(done.rows) > 1


AT_ONCE = (
    "select 'having', topic, count(*) from messages group by topic having count(*) > 2",
    "select 'window', topic, row_number() over (partition by topic order by physical_offset) from messages",
    "select 'case', case when tags is null then 'none' else tags end as t, count(*) from messages group by 2",
    "select 'except', topic, 0 from (select topic from messages except select tags from messages) e",
    "select 'join', m.topic, count(*) from messages m join consumequeue c using (physical_offset) group by 2",
    (
        "select 'left join', m.tags, max(i.number) from messages m left join index_items i using"
        " (physical_offset) group by 2"
    ),
    (
        "select 'in', topic, queue_offset from messages where physical_offset in (select physical_offset from"
        " index_items where number % 2 = 0)"
    ),
    (
        "select 'limit', topic, physical_offset from (select * from messages order by body_length desc,"
        " physical_offset limit 3) l"
    ),
    (
        "select 'unselected', topic, null from (select topic from messages order by store_timestamp,"
        " physical_offset limit 4) u"
    ),
    (
        "select 'names more', name, n from (select topic as name, count(*) as n, max(body) as b, min(tags) as"
        " t from messages group by topic) s"
    ),
    (
        "select 'not exists', topic, queue_offset from messages m where not exists (select 1 from"
        " consumequeue c where c.physical_offset = m.physical_offset)"
    ),
    (
        "select 'distinct', coalesce(tags, topic), count(distinct queue_id) from messages where topic like"
        " 'T%' and queue_offset between 0 and 9 group by 2"
    ),
)


def test_many_kinds_of_statements_at_once(spark: SparkSession, goldens: dict[str, Path]) -> None:
    """One job: each is a part of one answer."""
    parts = " union all ".join(
        f"select * from ({one}) as part{k}(what, name, n)" for k, one in enumerate(AT_ONCE)
    )
    store = goldens["v533-compressed"]
    order = "order by what, name nulls last, n nulls last"
    statement = f"with every as ({parts}) select what, name, n from every {order}"
    done = rmq("pipeline", "sql", store, statement, JSON)
    local = rmq("sql", store, statement, JSON)
    assert done.exit_code == local.exit_code == 0, done.stderr + local.stderr
    assert done.rows[:-1] == local.rows[:-1]
    assert len({row["what"] for row in done.rows[:-1] if row["type"] == "row"}) >= len(AT_ONCE) - 2


def test_all_columns_but_one(spark: SparkSession, goldens: dict[str, Path]) -> None:
    """Spark's form of it; the columns are those of the local table, in its order, and `store`."""
    store = goldens["v498-basic"]
    done = rmq(
        "pipeline", "sql", store, "select * except (body) from messages order by physical_offset", JSON
    )
    local = rmq("sql", store, "select * exclude (body) from messages order by physical_offset", JSON)
    assert done.exit_code == local.exit_code == 0, done.stderr
    spark_rows = [row for row in done.rows if row["type"] == "row"]
    assert [row.pop("store") for row in spark_rows] == [str(store)] * len(spark_rows)
    assert [row | {"type": "row"} for row in local.rows if row["type"] == "row"] == spark_rows


@pytest.mark.parametrize("table", ["topics", "consumer_offsets"])
def test_small_tables_of_stores_that_have_none(spark: SparkSession, tmp_path: Path, table: str) -> None:
    """A store without rows between others takes nothing from those behind it."""
    stores = [tmp_path / name for name in "abcd"]
    for number, store in enumerate(stores):
        (store / "commitlog").mkdir(parents=True)
        if number % 2 == 0:
            (store / "config").mkdir()
            (store / "config/topics.json").write_text('{"topicConfigTable":{"T":{"topicName":"T"}}}')
            (store / "config/consumerOffset.json").write_text('{"offsetTable":{"T@G":{0:7,1:8}}}')
    done = rmq("pipeline", "sql", *stores, f"select store, count(*) as n from {table} group by all", JSON)
    assert done.exit_code == 0, done.stderr
    found = {row["store"]: row["n"] for row in done.rows[:-1]}
    for store in stores:
        (local,) = rmq("sql", store, f"select count(*) as n from {table}", JSON).of_type("row")
        assert found.get(str(store), 0) == local["n"]
    assert found[str(stores[2])]


def test_a_store_that_vanishes(
    spark: SparkSession, goldens: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Gone between the listing and the query: it is named, the rest is answered, exit 3."""
    from rmqtool.cli.pipeline import spark as command_line

    gone = tmp_path / "gone"
    shutil.copytree(goldens["v498-basic"], gone)
    opened = command_line.opened

    def opened_then_gone(context: Context, options: SourceOptions) -> dict[str, Store]:
        found = opened(context, options)
        shutil.rmtree(gone)
        return found

    monkeypatch.setattr(command_line, "opened", opened_then_gone)
    stores = [goldens["v498-edge"], gone, goldens["v533-batchcq"]]
    done = rmq("pipeline", "sql", *stores, "select store, count(*) as n from messages group by store", JSON)
    assert done.exit_code == 3, done.stderr
    assert {row["store"] for row in done.rows[:-1]} == {str(stores[0]), str(stores[2])}
    assert [(row["store"], row["reason"]) for row in done.rows[-1]["not_covered"]] == [
        (str(gone), "unreadable")
    ]


@pytest.mark.parametrize(
    ("table", "lost", "code"),
    [
        ("messages", "commitlog/*", 3), ("messages", f"commitlog/{98304:020d}", 3),
        ("messages", f"commitlog/{0:020d}", 0), ("consumequeue", "consumequeue/TopicA/0/*", 3),
    ],
)  # fmt: skip
def test_files_that_vanish(
    spark: SparkSession, goldens: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    table: str, lost: str, code: int,
) -> None:  # fmt: skip
    """Gone between the listing and the query, which lists again: named, but for those that expire."""
    from rmqtool.cli.pipeline import spark as command_line

    root = shutil.copytree(goldens["v498-basic"], tmp_path / "store")
    opened = command_line.opened

    def opened_then_gone(context: Context, options: SourceOptions) -> dict[str, Store]:
        found = opened(context, options)
        for path in root.glob(lost):
            path.unlink()
        return found

    monkeypatch.setattr(command_line, "opened", opened_then_gone)
    done = rmq("pipeline", "sql", root, goldens["v498-edge"], f"select count(*) from {table}", JSON)
    assert done.exit_code == code, done.stdout
    assert ("is gone since it was listed" in done.stderr) is (code == 3)


def test_sql_over_damage_says_so(spark: SparkSession, damaged_stores: dict[str, Path]) -> None:
    stores = list(damaged_stores.values())
    done = rmq("pipeline", "sql", *stores, "select count(*) from messages", "--format", "ndjson", *SMALL)
    lacking = []
    for store in stores:
        local = rmq("sql", store, "select count(body) from messages", "--format", "ndjson").rows[-1]
        lacking += [row | {"store": str(store)} for row in local.get("not_covered", ())]
    reported = done.rows[-1].get("not_covered", [])
    key = str
    assert sorted(reported, key=key) == sorted(lacking, key=key)
    assert done.exit_code == (3 if lacking else 0)


TABLES = ("messages", "consumequeue", "index_items", "consumer_offsets", "topics")
METHOD = "java_method('java.lang.System', 'getenv', 'HOME')"
COMMANDS = (
    "drop table topics", "create table a as select 1", "insert into topics select * from topics",
    "set a = 1", "set", "insert overwrite directory '/nowhere' using csv select 1",
    "insert overwrite local directory '/nowhere' select 1",
    "from topics insert into topics select * insert into topics select *", "add jar '/nowhere.jar'",
    "list files", "create temporary view a using text options (path '/etc/hostname')", "cache table topics",
    "show tables", "explain select 1", "describe topics", "refresh '/etc'", "begin select 1; end",
    "declare a = 1", "reset", "execute immediate 'select * from text.`/etc/hostname`'", "use default",
    "load data inpath '/a' into table topics",
    "select transform(topic) using 'cat' as (a string) from topics", "map topic using 'cat' from topics",
    "from topics reduce topic using 'cat' as (a string)", "create function a as 'b'",
    "truncate table topics", "merge into topics using topics b on true when matched then delete",
)  # fmt: skip
FOREIGN = (
    "select * from csv.`/etc`", "with a as (select * from text.`/etc/hostname`) select * from a",
    "select (select count(*) from text.`/etc/hostname`)", "select * from parquet.`http://127.0.0.1/a`",
    "select * from identifier('text.`/etc/hostname`')",
    "select * from identifier('te' || 'xt.`/etc/hostname`')", "from text.`/etc/hostname` |> limit 1",
    "from topics |> union all table text.`/etc/hostname`",
    "select * from topics where topic in (select value from text.`/etc/hostname`)", "select * from a",
    "select * from default.topics", "select * from global_temp.a",
    "select * from (with a as (select 1) select 1), a",
    "with b as (select * from a), a as (select 1) select * from b", "select * from stream topics",
    "select * from topics version as of 1",
    "select * from topics, lateral (select * from text.`/etc/hostname`)",
)  # fmt: skip
CALLS = (
    f"select {METHOD}", f"select {METHOD.replace('java_method', 'reflect')}",
    f"select {METHOD.replace('java_method', 'try_reflect')}",
    f"select {METHOD.replace('java_method', '`JAVA_METHOD`')}",
    f"select {METHOD.replace('java_method', 'system.builtin.java_method')}",
    f"select {METHOD.replace('java_method', chr(73) + 'dentifier(' + repr('java_method') + ')')}",
    f"select * from values ({METHOD}) as a(b)", f"select (select {METHOD})",
    f"select topic from topics limit {METHOD}",
    f"select row_number() over a from topics window a as (order by {METHOD})",
    f"select topic from topics lateral view explode(array({METHOD})) a as b",
    f"with a as (select {METHOD}) select 1", f"select transform(array(1), a -> {METHOD})",
    f"select topic from topics group by cube(topic, {METHOD})", f"from topics |> extend {METHOD} as a",
    f"from topics |> set topic = {METHOD}",
    f"select count(*) filter (where {METHOD} = 'a') from topics",
    f"select /*+ repartition({METHOD}) */ * from topics",
    f"select * from topics a join topics b on {METHOD} = a.topic",
    "select from_xml('<a/>', 'a int', map('rowValidationXSDPath', '/etc/hostname'))",
    "select input_file_name()", "select * from python_worker_logs()",
    "select from_protobuf(body, 'a', '/etc/hostname') from messages", "select current_user()",
    "select xpath_string(cast(body as string), 'a') from messages", "select xpath('<a/>', 'a')",
    "select schema_of_xml('<a/>')", "select nobody_knows(1)", "select :a",
)  # fmt: skip
FURTHER = (
    "select topic, row_number() over a from topics window a as (partition by topic order by topic)",
    ("select topic from topics lateral view outer explode(array(1)) a as b having count(*) > 1 limit"
    " 3 offset 2"),
    ("from topics |> where topic like 'a%' |> extend 1 as b |> aggregate count(*) group by topic |>"
    " limit 1"),
    "select * from topics pivot (count(*) for topic in ('a'))",
    "select * from topics unpivot (a for b in (topic))",
    "select * from (values (1, 'a')) a(b, c), range(3)",
    "with recursive r(n) as (select 1 union all select n + 1 from r where n < 3) select * from r",
    "with a as (select 1), b as (select * from a) select * from A, B, TOPICS",
    ("select transform(array(1), a -> a + 1), cast('1' as int), x'00', interval '1' month, a:b.c,"
    " `regex.*`, t.*, count(*) filter (where a), percentile_cont(0.5) within group (order by a),"
    " extract(year from b), try_cast(a as int), case a when 1 then 2 end, first(a) ignore nulls,"
    " uuid(), typeof(a), from_json('{}', 'a int') from topics t"),
    ("select /*+ broadcast(t) */ distinct topic from topics tablesample (10 percent) t distribute by"
    " topic sort by topic"),
    "select topic, grouping(topic) from topics group by grouping sets ((topic), ())",
    "select posexplode(m) as (a, b)",
    "select topic from topics qualify row_number() over (order by topic) = 1", "table topics",
    "values (1), (2)", "(select 1) union all (select 2) except select 3 intersect all select 4",
    "select * from topics, lateral (select 1)",
    ("select * from topics a left semi join topics b using (topic) natural join topics c cross join"
    " topics d"),
)  # fmt: skip


@pytest.mark.parametrize("each", [6, pytest.param(1, marks=pytest.mark.full)])
def test_only_queries_of_the_stores(spark: SparkSession, each: int) -> None:
    """Refused by what is parsed: nothing of it is looked up, or opened as a DOCTYPE in a message says."""
    for statement in (*COMMANDS[::each], *FOREIGN[::each], *CALLS[::each]):
        with pytest.raises((UsageError, ParseException)):
            refuse_all_but_queries(spark, statement, TABLES)
    for statement in (*ORDINARY, *FURTHER)[::each]:
        refuse_all_but_queries(spark, statement, TABLES)


def test_what_is_refused_is_one_line(spark: SparkSession, goldens: dict[str, Path], tmp_path: Path) -> None:
    """Also what the session had before is not seen."""
    spark.createDataFrame([("seen",)], "a string").createOrReplaceTempView("theirs")
    spark.udf.register("their_function", lambda: "seen", "string")
    written = f"insert overwrite directory '{tmp_path / 'made'}' using csv select 1"
    for statement in (
        "nonsense",
        written,
        f"select {METHOD}",
        "select * from theirs",
        "select their_function()",
    ):
        done = rmq("pipeline", "sql", goldens["v498-basic"], statement)
        assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1), done.stderr
    assert not (tmp_path / "made").exists()
    done = rmq("pipeline", "sql", goldens["v498-basic"], "select '${env:HOME}' as a", JSON)
    assert done.rows[0]["a"] == "${env:HOME}"
    assert not {"topics", "messages"} & {one.name for one in spark.catalog.listTables()}
