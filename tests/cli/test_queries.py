"""`query-key`, `query-id`, `query-offset`, `query-time`: rows, summaries, exit codes, what is refused."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import fixtures
from fixtures.builder import HandmadeLog, damage_file, overwrite
from formats.message_id import OffsetMessageId
from tests.cli.dumping import assert_one_line, raw_record
from tests.helpers import ROOT, rmq

NDJSON = ("--format", "ndjson")


def places(result):
    return [row["physical_offset"] for row in result.of_type("message")]


@pytest.fixture
def store(golden, store_unchanged):
    """A store whose answers are known, watched while the test runs."""
    found = golden("v533-basic")
    store_unchanged(found.path)
    return found


def some_key(found):
    """Topic, key, and the records that have it."""
    counts = {}
    for one in found.expected["records"]:
        for key in set(filter(None, (one["keys"] or "").split(" "))):
            counts.setdefault((one["topic"], key), []).append(one["physicalOffset"])
    (topic, key), offsets = max(counts.items(), key=lambda item: len(item[1]))
    return topic, key, sorted(offsets)


@pytest.mark.share
@pytest.mark.parametrize("topic", ["given", "-", None])
@pytest.mark.parametrize("source", ["auto", "index", "scan"])
def test_query_key(store, topic, source):
    own, key, wanted = some_key(store)
    middle = {"given": [own], "-": ["-"], None: []}[topic]
    result = rmq("query-key", store.path, *middle, key, "--source", source, *NDJSON, "--body", "none")
    assert result.exit_code == (0 if source != "index" or not result.rows[-1].get("not_covered") else 3) or (
        result.rows[-1]["incomplete_reason"] == "limit"
    )
    mine = [row["physical_offset"] for row in result.of_type("message") if row["topic"] == own]
    assert mine == wanted
    summary = result.rows[-1]
    assert summary["schema"] == "rmqtool.query-key/1"
    assert summary["messages"] == len(result.rows) - 1
    assert summary["window"] == [None, None]
    assert summary["candidates"] - summary["rejected_collisions"] == summary["messages"]
    assert ("scan" in summary["source"]) == bool(summary["scanned"])
    assert summary["source"] != "scan" or source == "scan"


def test_query_key_that_nobody_has(store):
    result = rmq("query-key", store.path, "-", "nobody has this", *NDJSON)
    assert (result.exit_code, places(result)) == (1, [])
    assert result.rows[-1]["complete"] is True
    assert result.rows[-1]["keys_not_found"] == 1


def test_max_lists_the_latest(store):
    topic, key, wanted = some_key(store)
    result = rmq("query-key", store.path, topic, key, "--max", 2, *NDJSON)
    assert (result.exit_code, places(result)) == (0, wanted[-2:])
    assert (result.rows[-1]["complete"], result.rows[-1]["incomplete_reason"]) == (False, "limit")


def test_keys_from_a_file_and_from_standard_input(store, tmp_path):
    topic, key, wanted = some_key(store)
    path = tmp_path / "keys.txt"
    path.write_text(f"absent\n\n{key}\r\n{key}\n")
    for given, stdin in ((path, ""), ("-", path.read_text())):
        result = rmq("query-key", store.path, topic, "--keys-file", given, *NDJSON, stdin=stdin)
        assert (result.exit_code, places(result)) == (0, wanted)
        assert {tuple(row["matched_keys"]) for row in result.of_type("message")} == {(key,)}
        summary = result.rows[-1]
        assert (summary["keys"], summary["keys_not_found"], summary["not_found"]) == (2, 1, ["absent"])


def test_a_window_in_which_nothing_was_stored(store):
    topic, key, _ = some_key(store)
    result = rmq("query-key", store.path, topic, key, "--to", 1_000_000_000_000, *NDJSON)
    assert (result.exit_code, result.rows[-1]["window"]) == (1, [None, 1_000_000_000_000])


@pytest.mark.parametrize(
    "arguments",
    [
        ("query-key", "{}"),
        ("query-key", "{}", "T", "k", "--keys-file", "x"),
        ("query-key", "{}", "k", "--max", "0"),
        ("query-key", "{}", "k", "--from", "someday"),
        ("query-key", "{}", "--keys-file", "/nowhere/keys"),
        ("query-key", "{}", "--keys-file", "/dev/zero"),
        ("query-key", "{}", "k", "--format", "raw", "--redact", "keys"),
        ("query-key", "{}", "k", "--format", "hex", "--body"),
        ("query-offset", "{}", "TopicA", "0"),
        ("query-offset", "{}", "TopicA", "x", "min"),
        ("query-offset", "{}", "TopicA", "0", "first"),
        ("query-offset", "{}", "TopicA", "0", "0", "-n", "0"),
        ("query-offset", "{}", "TopicA", "0", "--group", "nobody"),
        ("query-offset", "{}", "TopicA", "0", "0", "--filter-report"),
        ("query-offset", "{}", "TopicA", "0", "0", "--filter-type", "SQL92"),
        ("query-offset", "{}", "TopicA", "0", "0", "--filter", "a >", "--filter-type", "SQL92"),
        ("query-offset", "{}", "TopicA", "0", "0", "--filter", "||"),
        ("query-time", "{}", "TopicA", "0", "later"),
        ("query-time", "{}", "TopicA", "-1", "0"),
    ],
)
def test_what_cannot_be_meant_is_refused(store, arguments):
    assert_one_line(rmq(*(str(store.path) if one == "{}" else one for one in arguments)), 2)


def test_keys_that_begin_with_a_minus(tmp_path):
    log = HandmadeLog()
    log.put("T", b"", {"KEYS": "-k1"})
    log.write(tmp_path / "commitlog")
    assert places(rmq("query-key", tmp_path, "T", "-k1", *NDJSON)) == [0]


def test_damage_in_the_searched_scope_is_said(tmp_path):
    log = HandmadeLog(segment_size=2048)
    for number in range(40):
        log.put("T", b"x" * 50, {"KEYS": f"k{number}"})
    paths = log.write(tmp_path / "commitlog")
    damage_file(paths[0], overwrite, log.records[3].physical_offset, b"\xff" * 60)
    result = rmq("query-key", tmp_path, "T", "k1", *NDJSON)
    assert (result.exit_code, places(result)) == (3, [log.records[1].physical_offset])
    summary = result.rows[-1]
    assert summary["incomplete_reason"] == "damage"
    (row,) = summary["not_covered"]
    assert row["physical_offset"] == log.records[3].physical_offset
    assert rmq("query-key", tmp_path, "T", "k3", *NDJSON).exit_code == 3


@pytest.mark.parametrize("form", ["raw", "hex"])
def test_whole_records(store, form):
    topic, key, wanted = some_key(store)
    if form == "hex":
        result = rmq("query-key", store.path, topic, key, "--format", form)
        assert result.exit_code == 0
        assert f"{wanted[0]:x}" in result.stdout
        assert result.stdout.count("\n\n") == len(wanted)
        return

    from tests.helpers import (
        rmq_process,  # noqa: F401
    )

    done = subprocess.run(
        [sys.executable, "-m", "rmqtool", "query-key", str(store.path), topic, key, "--format", "raw"],
        capture_output=True,
        cwd=ROOT,
        check=True,
    )
    records = {one["physicalOffset"]: one for one in store.expected["records"]}
    assert done.stdout == b"".join(raw_record(store.path, records[at]) for at in wanted)


@pytest.mark.parametrize("form", ["table", "csv", "json"])
def test_the_other_forms(store, form):
    topic, key, wanted = some_key(store)
    result = rmq("query-key", store.path, topic, key, "--format", form)
    assert result.exit_code == 0
    if form == "json":
        document = json.loads(result.stdout)
        assert [row["physical_offset"] for row in document["rows"]] == wanted
        assert document["summary"]["messages"] == len(wanted)
    else:
        assert all(str(at) in result.stdout for at in wanted)


@pytest.mark.parametrize("hidden", ["keys", "properties"])
def test_redaction_hides_the_keys_that_were_asked_for(store, tmp_path, hidden):
    topic, key, wanted = some_key(store)
    path = tmp_path / "keys.txt"
    path.write_text(f"{key}\nabsent-key\n")
    result = rmq("query-key", store.path, topic, "--keys-file", path, "--redact", hidden, *NDJSON)
    assert places(result) == wanted
    assert f'"{key}"' not in result.stdout
    assert "absent-key" not in result.stdout


def test_redaction_hides_an_id(store):
    record = next(one for one in store.expected["records"] if one["uniqKey"])
    result = rmq("query-id", store.path, record["uniqKey"], "--redact", "keys", *NDJSON)
    assert result.exit_code == 0
    assert record["uniqKey"] not in result.stdout


@pytest.mark.parametrize("name", ["v498-basic", "v533-ipv6", "v470-basic"])
def test_query_id(golden, name):
    found = golden(name)
    record = next(one for one in found.expected["records"] if (one["uniqKey"] or "0").strip("0"))
    by_client = rmq("query-id", found.path, record["uniqKey"], *NDJSON)
    assert record["physicalOffset"] in places(by_client)
    assert by_client.rows[-1]["kind"] == "uniq_key"
    row = next(
        one for one in by_client.of_type("message") if one["physical_offset"] == record["physicalOffset"]
    )
    by_offset = rmq("query-id", found.path, row["offset_msg_id"], *NDJSON)
    assert places(by_offset) == [record["physicalOffset"]]
    assert by_offset.rows[-1]["id_parts"]["host_agrees"] is True
    digits = len(row["offset_msg_id"]) - 16
    elsewhere = "7F0000FF00002A9F" if digits == 16 else "FE" * 16 + "00002A9F"
    other = rmq("query-id", found.path, elsewhere + row["offset_msg_id"][digits:], *NDJSON)
    assert (other.exit_code, places(other)) == (0, [record["physicalOffset"]])
    assert other.rows[-1]["id_parts"]["host_agrees"] is False


V6 = bytes.fromhex("fe80") + bytes(13) + b"\x01"


@pytest.fixture(params=[4, 6])
def two_ways(request, tmp_path):
    """Records whose UNIQ_KEYs are the offset message ids of others: of the same host, and of another one."""
    log = HandmadeLog(segment_size=8192)
    ip, host = (b"\x0a\0\0\x02", {}) if request.param == 4 else (V6, {"store_host": (V6, 10911)})
    other = b"\x0a\0\0\x09" if request.param == 4 else V6[:-1] + b"\x09"
    host |= {"sys_flag": 0x20} if request.param == 6 else {}
    log.put("T", b"first", {"UNIQ_KEY": "FIRST"}, **host)
    second = log.put("T", b"second", {"KEYS": "k"}, **host).physical_offset
    same = OffsetMessageId(ip, 10911, second).build()
    elsewhere = OffsetMessageId(other, 10911, second).build()
    third = log.put("T", b"third", {"UNIQ_KEY": same}, **host).physical_offset
    fourth = log.put("T", b"fourth", {"UNIQ_KEY": elsewhere}, **host).physical_offset
    itself = log.end_offset
    own = OffsetMessageId(ip, 10911, itself).build()
    log.put("T", b"fifth", {"UNIQ_KEY": own}, **host)
    lost = OffsetMessageId(ip, 10911, 8000).build()
    sixth = log.put("T", b"sixth", {"UNIQ_KEY": lost}, **host).physical_offset
    log.write(tmp_path / "commitlog")
    return tmp_path, {
        same: [(second, "offset_msg_id"), (third, "uniq_key")],
        elsewhere: [(second, "offset_msg_id"), (fourth, "uniq_key")],
        own: [(itself, "offset_msg_id+uniq_key")],
        lost: [(sixth, "uniq_key")],
        OffsetMessageId(ip, 10911, fourth).build(): [(fourth, "offset_msg_id")],
    }  # fmt: skip


def test_an_id_that_can_be_read_both_ways(two_ways):
    root, answers = two_ways
    for given, wanted in answers.items():
        result = rmq("query-id", root, given, *NDJSON)
        rows = [(row["physical_offset"], row["found_by"]) for row in result.of_type("message")]
        assert (result.exit_code, rows) == (0, wanted), given
        summary = result.rows[-1]
        kinds = dict.fromkeys(kind for _, found_by in wanted for kind in found_by.split("+"))
        assert summary["kind"] == "+".join(kinds)
        assert [one["kind"] for one in summary["readings"]] == list(kinds)
        assert summary["complete"] is True
        lower = rmq("query-id", root, given.lower(), *NDJSON)
        assert places(lower) == [offset for offset, _ in wanted]


def test_show_takes_the_offset_of_an_own_host_and_the_uniq_key_otherwise(two_ways):
    root, answers = two_ways
    same, elsewhere, *_ = answers
    for given, place in ((same, answers[same][0][0]), (elsewhere, answers[elsewhere][1][0])):
        document = json.loads(rmq("show", root, given, "--json").stdout)
        assert document["physical_offset"] == place
    assert any(str(answers[elsewhere][0][0]) in note for note in document["notes"])


def test_an_id_that_nobody_has(store):
    for given in ("AC1400031234567890AB0F2C3D4E0001", "no id at all"):
        result = rmq("query-id", store.path, given, *NDJSON)
        assert (result.exit_code, places(result), result.rows[-1]["complete"]) == (1, [], True)
    assert "32 or 56 hexadecimal digits" in result.stderr


STATUSES = {
    "OFFSET_TOO_SMALL": "below_min",
    "OFFSET_OVERFLOW_ONE": "at_end",
    "OFFSET_OVERFLOW_BADLY": "above_max",
    "FOUND": "delivered",
}


@pytest.mark.share
@pytest.mark.parametrize("name", ["v470-basic", "v498-expired-head", "v533-batchcq", "v533-expired-head"])
def test_query_offset_answers_like_the_broker(golden, name):
    found = golden(name)
    seen = set()
    for asked in found.expected["get"]:
        if asked.get("tagExpr") not in {None, "*"} or (asked["status"], asked["max"]) in seen:
            continue
        seen.add((asked["status"], asked["max"]))
        place = asked["topic"], asked["queue"], asked["offset"]
        result = rmq(
            "query-offset", found.path, *place, "-n", asked["max"], "--as-version", found.release, *NDJSON
        )
        summary = result.rows[-1]
        java = asked["status"], asked["minOffset"], asked["maxOffset"], asked["nextBeginOffset"]
        keys = "status", "min_offset", "max_offset", "next_begin_offset"
        assert tuple(summary[key] for key in keys) == java, place
        assert result.exit_code == (0 if asked["status"] == "FOUND" else 1)
        if asked["status"] in STATUSES:
            assert STATUSES[asked["status"]] in {one["cause"] for one in summary["verdicts"]}, summary
    assert len(seen) > 2


def test_min_and_max(store):
    queue = next(one for one in store.expected["queues"] if one["max"] - one["min"] > 2)
    place = store.path, queue["topic"], queue["queue"]
    first = rmq("query-offset", *place, "min", *NDJSON)
    last = rmq("query-offset", *place, "max", *NDJSON)
    assert [row["slot"] for row in first.of_type("message")] == [queue["min"]]
    assert [row["slot"] for row in last.of_type("message")] == [queue["max"] - 1]
    assert first.rows[-1]["incomplete_reason"] == "limit"
    assert last.rows[-1]["complete"] is True


def test_a_filter_keeps_back_and_the_report_says_what(store):
    tagged = {}
    for one in store.expected["records"]:
        tagged.setdefault((one["topic"], one["queueId"]), set()).add(one["tags"])
    (topic, queue), tags = max(tagged.items(), key=lambda item: len(item[1]))
    tag = min(filter(None, tags))
    place = store.path, topic, queue, "min", "-n", 10_000
    plain = rmq("query-offset", *place, *NDJSON)
    kept = rmq("query-offset", *place, "--filter", f"{tag} || nothing", *NDJSON)
    report = rmq("query-offset", *place, "--filter", tag, "--filter-report", *NDJSON)
    wanted = [row["physical_offset"] for row in plain.of_type("message") if row["tags"] == tag]
    assert places(kept) == wanted
    assert places(report) == places(plain)
    passing = [row["physical_offset"] for row in report.of_type("message") if row["passes_consumer"]]
    assert passing == wanted
    assert all(row["passes_broker"] for row in report.of_type("message") if row["passes_consumer"])
    sql = rmq("query-offset", *place, "--filter", f"TAGS = '{tag}'", "--filter-type", "sql92", *NDJSON)
    assert places(sql) == wanted
    nothing = rmq("query-offset", *place, "--filter", "absent", *NDJSON)
    assert (nothing.exit_code, places(nothing)) == (1, [])
    assert {one["cause"] for one in nothing.rows[-1]["verdicts"]} == {"filtered"}


def test_dump_passes_the_same_filters(store):
    tag = next(one["tags"] for one in store.expected["records"] if one["tags"])
    wanted = sorted(one["physicalOffset"] for one in store.expected["records"] if one["tags"] == tag)
    assert places(rmq("dump", store.path, "--filter", tag, *NDJSON)) == wanted
    expression = f"TAGS = '{tag}'"
    found = rmq("dump", store.path, "--filter", expression, "--filter-type", "SQL92", *NDJSON)
    assert places(found) == wanted
    more = rmq("dump", store.path, "--filter", f"{expression} junk", "--filter-type", "SQL92", *NDJSON)
    assert places(more) == wanted
    assert "ignores the end of the expression: junk" in more.stderr


def test_a_group_goes_on_where_it_stands(golden):
    found = golden("b533-full")
    one = next(
        (group, entry)
        for group, entries in found.expected["consumerOffsets"].items()
        for entry in entries
        if entry["topic"] == "TopicBasic"
    )
    group, entry = one
    result = rmq("query-offset", found.path, "TopicBasic", entry["queueId"], "--group", group, *NDJSON)
    summary = result.rows[-1]
    assert (summary["group"], summary["offset"]) == (group, entry["consumerOffset"])
    assert "at_end" in {verdict["cause"] for verdict in summary["verdicts"]}


def test_a_queue_that_is_not_there(store):
    result = rmq("query-offset", store.path, "TopicA", 77, 0, *NDJSON)
    assert result.exit_code == 1
    assert result.rows[-1]["status"] == "NO_MESSAGE_IN_QUEUE"
    assert "TopicA has queues" in result.stderr


def test_a_topic_that_is_not_there(golden):
    result = rmq("query-offset", golden("b533-full").path, "no-such-topic", 0, 0, *NDJSON)
    assert result.exit_code == 1
    assert "no_topic" in {one["cause"] for one in result.rows[-1]["verdicts"]}


@pytest.mark.parametrize("name", ["v498-basic", "v533-basic"])
def test_query_time(golden, name):
    found = golden(name)
    times = {one["physicalOffset"]: one["storeTimestamp"] for one in found.expected["records"]}
    for asked in found.expected["offsetByTime"][::9]:
        for key in asked.keys() & {"lower", "upper", "offset"}:
            result = rmq(
                "query-time", found.path, asked["topic"], asked["queue"], asked["timestamp"],
                "--boundary", "upper" if key == "upper" else "lower",
                "--as-version", found.release, *NDJSON,
            )  # fmt: skip
            summary, rows = result.rows[-1], result.of_type("message")
            assert summary["broker_queue_offset"] == asked[key]
            assert summary["complete"] is True
            assert result.exit_code == (1 if summary["queue_offset"] is None else 0)
            for row in rows:
                assert row["slot"] == summary["queue_offset"]
                late = times[row["physical_offset"]] >= asked["timestamp"]
                assert late or key == "upper"


def test_queues_in_rocksdb_are_refused_and_keys_are_found(golden):
    found = golden("v533-rocksdb")
    assert_one_line(rmq("query-offset", found.path, "TopicA", 0, 0), 6)
    topic, key, wanted = some_key(found)
    assert places(rmq("query-key", found.path, topic, key, *NDJSON)) == wanted


def test_a_single_commitlog_directory_is_searched_by_scan(store):
    topic, key, wanted = some_key(store)
    result = rmq("query-key", store.path / "commitlog", key, *NDJSON)
    mine = [row["physical_offset"] for row in result.of_type("message") if row["topic"] == topic]
    assert mine == wanted
    assert result.rows[-1]["source"] == "scan"


@pytest.mark.parametrize("name", fixtures.golden_names("api")[::6])
def test_nothing_is_written(golden, store_unchanged, name):
    found = golden(name)
    store_unchanged(found.path)
    queue = found.expected["queues"][0]
    place = queue["topic"], queue["queue"]
    if "rocksdb" not in name:
        rmq("query-offset", found.path, *place, "min", "-n", 5)
        rmq("query-time", found.path, *place, "0")
    rmq("query-key", found.path, "-", "x")


ASKED = [
    ("query-key", "no key"),
    ("query-id", "AC1400031234567890AB0F2C3D4E0001"),
    ("query-offset", "T", "0", "0"),
    ("query-time", "T", "0", "0"),
    ("tail",),
    ("stats",),
]


@pytest.mark.parametrize("asked", ASKED)
def test_a_log_that_is_not_decoded_is_not_an_empty_one(golden, asked):
    command, *rest = asked
    assert_one_line(rmq(command, golden("b533-dledger").path, *rest), 6)


@pytest.mark.parametrize("asked", ASKED)
def test_what_cannot_be_opened_beside_the_log_may_hold_the_answer(tmp_path, asked):
    log = HandmadeLog()
    log.put("U", b"")
    log.write(tmp_path / "commitlog")
    (tmp_path / "commitlog" / "copy-of-00000000000000004096").write_bytes(b"x" * 100)
    command, *rest = asked
    result = rmq(command, tmp_path, *rest, *NDJSON)
    assert (result.exit_code, result.rows[-1]["incomplete_reason"]) == (3, "unreadable")
    assert "copy-of-" in result.rows[-1]["not_covered"][0]["path"]
