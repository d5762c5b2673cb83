"""Answers that would read as "there is none" although the command never looked where it could be."""

from __future__ import annotations

import json
import shutil

import pytest

from fixtures.stores import healthy_store
from tests.cli.dumping import assert_one_line
from tests.helpers import rmq

NDJSON = ("--format", "ndjson")
OF_THE_LOG = {
    "query-key": ("query-key", "{}", "burst"),
    "query-id": ("query-id", "{}", "0A00000200002A9F0000000000000000"),
    "query-offset": ("query-offset", "{}", "TopicA", "0", "0"),
    "query-time": ("query-time", "{}", "TopicA", "0", "0"),
    "tail": ("tail", "{}"),
    "stats": ("stats", "{}"),
}
MESSAGES_BY_SQL = ("sql", "{}", "select count(*) from messages")


def call(words, path, *more):
    return rmq(*(word.replace("{}", str(path)) for word in words), *more)


@pytest.mark.parametrize("part", ["consumequeue", "consumequeue/TopicA/0", "index", "config", "checkpoint"])
@pytest.mark.parametrize("name", OF_THE_LOG)
def test_a_part_of_a_store_does_not_answer_for_the_log(golden, name, part):
    result = call(OF_THE_LOG[name], golden("v498-basic").path / part)
    assert_one_line(result, 2)
    assert "without its commit log" in result.stderr


@pytest.mark.parametrize("name", [*OF_THE_LOG, "sql"])
def test_a_store_whose_log_lies_elsewhere_is_not_empty(fresh_golden, name):
    found = fresh_golden("v498-basic")
    shutil.rmtree(found.path / "commitlog")
    result = call(OF_THE_LOG.get(name, MESSAGES_BY_SQL), found.path, *NDJSON)
    assert result.exit_code == 3
    assert result.rows[-1]["incomplete_reason"] == "unreadable"
    assert "--commitlog" in result.rows[-1]["not_covered"][0]["error"]


READ_THE_LOG = OF_THE_LOG | {
    "sql": MESSAGES_BY_SQL,
    "dump": ("dump", "{}"),
    "show": ("show", "{}", "0"),
    "export": ("export", "{}", "--to", "{}.ndjson"),
}


@pytest.mark.parametrize("name", READ_THE_LOG)
def test_a_checkpoint_or_an_index_alone_tells_that_there_was_a_log(fresh_golden, name):
    found = fresh_golden("v498-basic")
    for gone in ("commitlog", "consumequeue"):
        shutil.rmtree(found.path / gone)
    result = call(READ_THE_LOG[name], found.path)
    assert result.exit_code == 3
    assert "the store had messages (seen in checkpoint, index/" in result.stderr


@pytest.mark.parametrize("verb", ["recover", "rebuild"])
def test_no_commit_log_is_a_verdict_and_no_wrong_usage(fresh_golden, verb):
    found = fresh_golden("v498-basic")
    shutil.rmtree(found.path / "commitlog")
    assert_one_line(rmq(verb, found.path), 1)


@pytest.mark.parametrize("path", ["consumequeue", "consumequeue/TopicA/0", "index"])
def test_recover_leaves_what_lies_in_the_place_of_a_directory(fresh_golden, tmp_path, path):
    place = fresh_golden("v533-basic").path / path
    shutil.rmtree(place)
    place.symlink_to(tmp_path / "not-mounted")
    result = rmq("recover", place.parents[path.count("/")], "--output", tmp_path / "new", "--apply")
    assert_one_line(result, 1)
    assert f"{path} is not a directory" in result.stderr
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("name", ["stats", "sql", "tail", "dump", "export"])
def test_a_store_that_never_had_a_message_is_empty(tmp_path, name):
    (tmp_path / "store" / "consumequeue").mkdir(parents=True)
    (tmp_path / "store" / "checkpoint").write_bytes(bytes(4096))
    assert call(READ_THE_LOG[name], tmp_path / "store").exit_code == 0


def test_queues_without_the_log_are_counted_all_the_same(fresh_golden):
    found = fresh_golden("v498-basic")
    shutil.rmtree(found.path / "commitlog")
    result = rmq("sql", found.path, "select count(*) as units from consumequeue", *NDJSON)
    assert (result.exit_code, result.rows[0]["units"]) == (0, 413)


@pytest.mark.parametrize("topic", ["T*", "*", "Topic?"])
def test_a_topic_of_query_key_may_be_a_glob(golden, topic):
    result = rmq("query-key", golden("v498-basic").path, topic, "burst", *NDJSON)
    assert (result.exit_code, len(result.of_type("message"))) == (0, 10)


def test_a_topic_that_nothing_names_is_reported(golden):
    store = golden("v498-basic").path
    assert "names topic Nope" in rmq("query-key", store, "Nope", "burst").stderr
    assert "names topic" not in rmq("query-key", store, "TopicA", "burst").stderr


@pytest.mark.parametrize("statement", ["select 1; select 2", ";", "-- nothing"])
def test_sql_is_one_statement(golden, statement):
    result = rmq("sql", golden("v498-basic").path, "--", statement)
    assert_one_line(result, 2)
    assert "statements; give one" in result.stderr


def test_sql_may_end_like_a_statement(golden):
    result = rmq("sql", golden("v498-basic").path, "select 1 as one; -- done", *NDJSON)
    assert (result.exit_code, result.rows[0]["one"]) == (0, 1)


def test_tables_tell_what_is_in_an_id(golden):
    basic = golden("v498-basic").path
    other = rmq("query-id", basic, "0A00000900002A9F0000000000000000")
    assert "names host 10.0.0.9:10911, the record was stored by 10.0.0.2:10911" in other.stderr
    made = rmq("query-id", basic, "AC1400031234567890AB0F2C3D4E0001")
    assert "process 4660 on 172.20.0.3" in made.stderr
    hidden = rmq("query-id", basic, "AC1400031234567890AB0F2C3D4E0001", "--redact", "hosts")
    assert "172.20" not in hidden.stderr


def test_a_condition_too_long_to_take_apart_is_a_usage_error(golden):
    long = "a = 1 or " * 3000 + "1 = 1"
    result = rmq("tail", golden("v498-basic").path, "--filter", long, "--filter-type", "sql92")
    assert_one_line(result, 2)
    assert "too long" in result.stderr


@pytest.mark.share
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("topics.json", ("sql", "{}", "select count(*) from topics")),
        ("consumerOffset.json", ("sql", "{}", "select count(*) from consumer_offsets")),
        ("consumerOffset.json", ("stats", "{}", "--by", "group")),
        ("consumerOffset.json", ("stats", "{}", "--retention")),
        ("consumerOffset.json", ("query-offset", "{}", "TopicBasic", "0", "--group", "CG_basic")),
        ("subscriptionGroup.json", ("query-offset", "{}", "TopicBasic", "0", "0", "--group", "CG_basic")),
    ],
)
@pytest.mark.parametrize("content", [b"", b'{"offsetTable":{"TopicBasic@CG_', b"\0" * 64])
def test_a_damaged_table_of_settings_is_no_complete_answer(fresh_golden, name, words, content):
    """Neither what the `.bak` has instead, which may be older, nor an empty table."""
    root = fresh_golden("b533-full").path
    (root / "config" / name).write_bytes(content)
    done = rmq(*(word.format(root) for word in words), "--format", "ndjson")
    assert done.exit_code == 3, done.stdout
    lacking = [row["path"] for row in done.rows[-1]["not_covered"]]
    assert f"config/{name}" in lacking


def test_a_damaged_bak_beside_a_good_table_matters_to_nobody(fresh_golden):
    root = fresh_golden("b533-full").path
    (root / "config/topics.json.bak").write_bytes(b"{")
    assert rmq("sql", root, "select count(*) from topics").exit_code == 0


IN_ROCKSDB = [
    ("b533-rocksdb", ("sql", "{}", "select * from consumequeue"), "consumequeue"),
    ("v533-rocksdb", ("sql", "{}", "select count(*) from topics"), "consumequeue"),
    ("b533-rocksdb", ("sql", "{}", "select count(*) from consumer_offsets"), "config/consumerOffsets"),
    ("b533-rocksdb-v2", ("sql", "{}", "select count(*) from consumer_offsets"), "config/rdb"),
    ("b533-rocksdb-v2", ("sql", "{}", "select count(*) from topics"), "config/rdb"),
    ("b533-rocksdb-v2", ("offsets", "audit", "{}"), "config/rdb"),
    ("b533-rocksdb-v2", ("half", "{}"), "config/rdb"),
    ("b533-rocksdb-v2", ("retry", "{}"), "config/rdb"),
    ("b533-rocksdb-v2", ("config", "check", "{}"), "config/rdb"),
    ("b533-rocksdb", ("config", "check", "{}"), "config/consumerOffsets"),
]


@pytest.mark.share
@pytest.mark.parametrize(("name", "words", "path"), IN_ROCKSDB, ids=lambda one: str(one)[:40])
def test_what_lies_in_rocksdb_is_not_taken_for_nothing(golden, name, words, path):
    result = call(words, golden(name).path, *NDJSON)
    assert result.exit_code == 3
    assert path in [row["path"] for row in result.rows[-1]["not_covered"]]


@pytest.mark.parametrize("table", ["messages", "index_items"])
def test_tables_that_are_whole_do_not_suffer_from_rocksdb(golden, table):
    assert call(("sql", "{}", f"select * from {table}"), golden("b533-rocksdb").path).exit_code == 0


def test_a_time_behind_what_was_dispatched(fresh_golden):
    """Nothing was said of the records that have no consume queue entry yet."""
    found = fresh_golden("v533-basic")
    shutil.rmtree(found.path / "consumequeue")
    result = rmq("query-time", found.path, "TopicA", "0", "0")
    assert result.exit_code == 1
    assert "146 records of this queue lie in the log behind offset 0" in result.stderr


@pytest.mark.share
@pytest.mark.parametrize(
    ("place", "words"),
    [
        ("consumequeue", ["query-offset", "TopicA", 0, 0]),
        ("consumequeue/TopicA", ["query-offset", "TopicA", 0, 0]),
        ("consumequeue", ["query-time", "TopicA", 0, 0]),
        ("consumequeue/TopicA/0", ["sql", "select count(*) from consumequeue"]),
        ("consumequeue/TopicA/0/00000000000000000000", ["sql", "select count(*) from consumequeue"]),
        ("index", ["sql", "select count(*) from index_items"]),
        ("config", ["sql", "select count(*) from consumer_offsets"]),
        ("config", ["offsets audit"]),
        ("config", ["config check"]),
        ("config", ["delayed"]),
    ],
)
def test_what_lies_behind_a_link_that_leads_nowhere_is_missing_in_the_answer(
    fresh_golden, tmp_path, place, words
):
    """Of a disk that is not mounted. What was on it was an empty table, or a queue without messages."""
    root = fresh_golden("v498-basic").path
    if (root / place).is_dir():
        shutil.rmtree(root / place)
    else:
        (root / place).unlink()
    (root / place).symlink_to(tmp_path / "not-mounted")
    verb, *rest = words
    result = rmq(*verb.split(), root, *rest, "--json")
    summary = json.loads(result.stdout)["summary"]
    assert (result.exit_code, summary["incomplete_reason"]) == (3, "unreadable"), result.stderr
    assert place in {row["path"] for row in summary["not_covered"]}
    assert f"{place}: " in result.stderr


@pytest.mark.parametrize(
    "named", ["storePathCommitLog={own},{more}", "{root}\nstorePathCommitLog={own},{more}"]
)
def test_a_root_of_the_log_that_is_not_there_is_not_expired(fresh_golden, tmp_path, named):
    """The disk with the first segments is not mounted: all that lies there looked expired, and was safe."""
    found = fresh_golden("v498-basic")
    own, more = found.path / "commitlog", tmp_path / "disk2"
    more.mkdir()
    for segment in sorted(own.iterdir())[:2]:
        shutil.move(segment, more)
    conf = tmp_path / "broker.conf"
    text = named.format(root=f"storePathRootDir={found.path}", own=own, more=more)
    conf.write_text(f"{found.config_path.read_text()}\n{text}\n")
    words = (found.path, "--store-config", conf)
    assert rmq("verify", *words).exit_code == rmq("doctor", *words).exit_code == 0
    more.rename(tmp_path / "unmounted")
    for verb in ("verify", "doctor", "stats", "dump", "checkpoint show"):
        result = rmq(*verb.split(), *words)
        assert result.exit_code == 3, verb
        assert "disk2: cannot be listed: No such file or directory" in result.stderr
    for verb in ("recover", "recover --policy broker", "rebuild", "checkpoint set", "offsets clamp"):
        result = rmq(*verb.split(), *words)
        assert (result.exit_code, result.stdout) == (1, ""), verb
        assert "disk2: No such file or directory, where segments belong: mount its disk" in result.stderr


@pytest.mark.share
@pytest.mark.parametrize(
    ("kept", "lacks"),
    [
        (slice(0, 2), "leads in front of 65536, where the log begins"),
        (slice(1, 2), "none has offsets 32768 to 65536"),
        (slice(3, 4), "leads behind 98304, where the log ends"),
    ],
    ids=["first", "middle", "last"],
)
def test_an_empty_root_of_a_log_that_lacks_segments_is_not_mounted(fresh_golden, tmp_path, kept, lacks):
    """A mount point without its disk is an empty directory: the first segments looked expired."""
    found = fresh_golden("v533-basic")
    own, more = found.path / "commitlog", tmp_path / "disk2"
    more.mkdir()
    words = (found.path, "--commitlog", more)
    assert rmq("verify", *words).exit_code == rmq("doctor", *words).exit_code == 0
    for segment in sorted(own.iterdir())[kept]:
        segment.unlink()
    for verb in ("verify", "doctor", "stats", "dump"):
        result = rmq(verb, *words, "--json")
        assert (result.exit_code, json.loads(result.stdout).get("safe_to_start")) != (0, True), verb
        assert verb == "doctor" or result.exit_code == 3
    result = rmq("recover", *words)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "disk2: no segment in it, and " in result.stderr
    assert lacks in result.stderr


def test_an_empty_root_beside_an_expired_head_is_no_loss(fresh_golden, tmp_path):
    """Queue files that lead in front of the log are gone with its first segments, and one in two is left."""
    found = fresh_golden("v533-basic")
    more = tmp_path / "disk2"
    more.mkdir()
    (found.path / "commitlog" / f"{0:020d}").unlink()
    words = (found.path, "--commitlog", more)
    assert rmq("verify", *words).exit_code == rmq("doctor", *words).exit_code == 0


@pytest.mark.share
@pytest.mark.parametrize("verb", ["half", "delayed", "retry", "dlq"])
@pytest.mark.parametrize("gone", ["middle", "end"])
def test_what_waits_may_lie_in_the_part_of_the_log_that_is_gone(fresh_golden, verb, gone):
    log = fresh_golden("v498-basic").path / "commitlog"
    if gone == "middle":
        (log / f"{32768:020d}").unlink()
    else:
        (log / f"{98304:020d}").write_bytes(bytes(32768))
    result = rmq(verb, log.parent, *NDJSON)
    assert (result.exit_code, result.rows[-1]["incomplete_reason"]) == (3, "damage")


@pytest.mark.parametrize("count", [1, 1000])
def test_the_last_messages_are_not_the_last_where_the_end_is_lost(fresh_golden, count):
    log = fresh_golden("v498-basic").path / "commitlog"
    (log / f"{98304:020d}").write_bytes(bytes(32768))
    result = rmq("tail", log.parent, "-n", count, *NDJSON)
    assert result.exit_code == 3
    assert "the end of the log is lost" in str(result.rows[-1]["not_covered"])


def test_units_that_no_file_has_are_missed_in_tables_and_by_offsets(fresh_golden):
    root = fresh_golden("v498-basic").path
    (root / "config" / "consumerOffset.json").write_text('{"offsetTable":{"TopicA@G":{0:70}}}')
    asked = [("sql", root, "select count(*) from consumequeue"), ("offsets", "audit", root, "--group", "G")]
    assert [rmq(*one, *NDJSON).exit_code for one in asked] == [0, 0]
    (root / "consumequeue" / "TopicA" / "0" / f"{1000:020d}").unlink()
    for one in asked:
        result = rmq(*one, *NDJSON)
        assert result.exit_code == 3
        assert "no file has the entries from byte 1000 to 2000" in str(result.rows[-1]["not_covered"])
    assert "rebuild it first" in rmq("offsets", "clamp", root).stdout


@pytest.mark.parametrize("gone", ["last file", "all files"])
def test_messages_count_whose_queue_lost_its_last_file(tmp_path, gone):
    """`Orders`/1 has three files, and the group has committed what the first two and a half hold."""
    store = healthy_store()
    store.config["consumerOffset"]["offsetTable"]["Orders@audit"]["1"] = 44
    root = store.write(tmp_path / "store").root
    files = sorted((root / "consumequeue/Orders/1").iterdir())
    row = rmq("store", "groups", root, *NDJSON).of_type("group")[1]
    assert (row["queue_id"], row["max_offset"], row["lag"]) == (1, 48, 4)
    for file in files[-1:] if gone == "last file" else files:
        file.unlink()
    groups = rmq("store", "groups", root, *NDJSON)
    assert groups.of_type("group")[1] == row
    asked = [groups, rmq("offsets", "audit", root, *NDJSON)]
    if gone == "last file":
        asked.append(rmq("sql", root, "select count(*) from consumequeue", *NDJSON))
    for one in asked:
        assert one.exit_code == 3
        assert "messages of the queue lie in the log without" in str(one.rows[-1]["not_covered"])
    assert rmq("stats", root, "--by", "group", *NDJSON).of_type("consumer_group")[0]["waiting_messages"] == 24
    assert "rebuild it first" in rmq("offsets", "clamp", root).stdout


def test_a_topic_whose_queues_are_on_a_disk_that_is_not_mounted_has_keys(fresh_golden, tmp_path):
    root = fresh_golden("v498-basic").path
    asked = ("query-key", root, "order-2", *NDJSON)
    known = [row["physical_offset"] for row in rmq(*asked).rows[:-1]]
    assert known
    for place in (root / "consumequeue" / "TopicA", root / "consumequeue"):
        shutil.rmtree(place)
        place.symlink_to(tmp_path / "not-mounted")
        assert [row["physical_offset"] for row in rmq(*asked).rows[:-1]] == known


def test_a_topic_that_only_rocksdb_names_has_keys(fresh_golden):
    root = fresh_golden("b533-rocksdb").path
    for table in root.glob("config/topics.json*"):
        table.write_text('{"topicConfigTable":{"Other":{"topicName":"Other"}}}')
    found = rmq("query-key", root, "key-0", *NDJSON)
    assert {row["topic"] for row in found.rows[:-1]} >= {"TopicBasic"}


def test_queues_of_a_table_that_is_cut_are_not_known(fresh_golden):
    root = fresh_golden("b533-full").path
    assert rmq("assign", root, "TopicBasic", "--clients", "a").exit_code == 0
    for table in root.glob("config/topics.json*"):
        table.write_bytes(table.read_bytes()[:99])
    result = rmq("assign", root, "TopicBasic", "--clients", "a", *NDJSON)
    assert (result.exit_code, result.rows[-1]["incomplete_reason"]) == (3, "damage")
