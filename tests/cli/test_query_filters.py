"""The shared filters on the queries by key, id, offset and time; what is empty is refused."""

from __future__ import annotations

import pytest

from fixtures.builder import FIRST_TIME, HandmadeLog
from tests.cli.dumping import assert_one_line
from tests.helpers import rmq

NDJSON = ("--format", "ndjson")


def places(result):
    return [row["physical_offset"] for row in result.of_type("message")]


@pytest.fixture
def log(tmp_path):
    """Ten messages of one key, by turns in two topics, queues and with two tags; an id for each three."""
    made = HandmadeLog()
    for number in range(10):
        properties = {"KEYS": f"k n{number}", "TAGS": "AB"[number % 2], "a": str(number)}
        properties["UNIQ_KEY"] = f"ID{number // 3}"
        made.put("TU"[number // 5], b"body %d" % number, properties, queue_id=number % 3)
    made.write(tmp_path / "commitlog")
    return made


CASES = [
    (("--topic", "U*"), range(5, 10)),
    (("--queue", 1), [1, 4, 7]),
    (("--tag", "A"), [0, 2, 4, 6, 8]),
    (("--from", FIRST_TIME + 8), [7, 8, 9]),
    (("--to", FIRST_TIME + 3), [0, 1]),
    (("--born-from", FIRST_TIME + 8), [8, 9]),
    (("--born-to", FIRST_TIME + 2), [0, 1]),
    (("--property", "a=4"), [4]),
    (("--body-contains", "y 7"), [7]),
    (("--filter", "A || C", "--queue", 0), [0, 6]),
    (("--filter", "a BETWEEN 3 AND 5", "--filter-type", "SQL92"), [3, 4, 5]),
    (("--queue-offset-range", "1:2"), [3, 4, 8, 9]),
    (("--tag", "A", "--max", 2), [6, 8]),
]


@pytest.mark.parametrize(("options", "wanted"), CASES)
def test_query_key(log, tmp_path, options, wanted):
    result = rmq("query-key", tmp_path, "k", *options, *NDJSON)
    assert places(result) == [log.records[number].physical_offset for number in wanted]
    assert result.exit_code == 0
    assert result.rows[-1]["messages"] == len(list(wanted))
    assert result.rows[-1]["complete"] is ("--max" not in options)


def test_query_key_within_an_offset_range(log, tmp_path):
    low, high = (log.records[number].physical_offset for number in (2, 4))
    result = rmq("query-key", tmp_path, "k", "--offset-range", f"{low}:{high}", *NDJSON)
    assert places(result) == [log.records[number].physical_offset for number in (2, 3)]
    assert result.rows[-1]["kept_back"] == 8


def test_nothing_that_passes_is_exit_1(log, tmp_path):
    for command in (("query-key", tmp_path, "k"), ("query-id", tmp_path, "ID0")):
        result = rmq(*command, "--tag", "none", *NDJSON)
        assert (result.exit_code, places(result), result.rows[-1]["complete"]) == (1, [], True)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [((), [0, 1, 2]), (("--tag", "A"), [0, 2]), (("--queue", 1), [1]), (("--key", "n2"), [2]),
     (("--topic", "U"), []), (("--filter", "B"), [1])],
)  # fmt: skip
def test_query_id(log, tmp_path, options, wanted):
    result = rmq("query-id", tmp_path, "ID0", *options, *NDJSON)
    assert places(result) == [log.records[number].physical_offset for number in wanted]
    if options:
        assert result.rows[-1]["kept_back"] == 3 - len(wanted)


def test_duplicates_are_shown_with_the_key_that_they_share(log, tmp_path):
    result = rmq("query-key", tmp_path, "U", "k", "--duplicates", *NDJSON)
    assert result.exit_code == 0
    assert [row["shared_keys"] for row in result.of_type("message")] == [["ID2"]] * 3
    assert result.rows[-1]["duplicate_keys"] == 1
    by_key = rmq("query-key", tmp_path, "T", "k", "--duplicates", "--by-key", *NDJSON)
    assert len(places(by_key)) == 5
    assert {tuple(row["shared_keys"]) for row in by_key.of_type("message")} == {("k",)}
    hidden = rmq("query-key", tmp_path, "U", "k", "--duplicates", "--redact", "keys", *NDJSON)
    assert "ID2" not in hidden.stdout
    assert rmq("query-key", tmp_path, "k", "--duplicates").exit_code == 0
    single = rmq("query-key", tmp_path, "n9", "--duplicates", *NDJSON)
    assert (single.exit_code, places(single)) == (1, [])


@pytest.fixture
def queue(golden, store_unchanged):
    """A queue of a real store: its messages in order, and where it is."""
    found = golden("v533-basic")
    store_unchanged(found.path)
    records = found.expected["records"]
    counts = {}
    for one in records:
        counts.setdefault((one["topic"], one["queueId"]), []).append(one)
    place, own = max(counts.items(), key=lambda item: len({one["tags"] for one in item[1]}))
    return found.path, place, sorted(own, key=lambda one: one["queueOffset"])


def test_query_offset_lists_n_of_those_that_pass(queue):
    root, place, own = queue
    tag = own[-1]["tags"]
    wanted = [one["physicalOffset"] for one in own if one["tags"] == tag]
    for count in (1, len(wanted), 1000):
        result = rmq("query-offset", root, *place, "min", "-n", count, "--tag", tag, *NDJSON)
        assert places(result) == wanted[:count]
        plain = rmq("query-offset", root, *place, "min", "-n", count, *NDJSON).rows[-1]
        keys = "status", "min_offset", "max_offset", "next_begin_offset", "verdicts"
        assert {key: result.rows[-1][key] for key in keys} == {key: plain[key] for key in keys}
        last = wanted[:count][-1]
        assert result.rows[-1]["complete"] is (count == 1000 or last == own[-1]["physicalOffset"])
    one = own[len(own) // 2]
    born = one["bornTimestamp"]
    result = rmq(
        "query-offset", root, *place, "min", "-n", 99,
        "--born-from", born, "--born-to", born + 1, "--from", one["storeTimestamp"], *NDJSON,
    )  # fmt: skip
    assert one["physicalOffset"] in places(result)
    assert {row["born_timestamp"] for row in result.of_type("message")} == {born}
    none = rmq("query-offset", root, *place, "min", "-n", 99, "--key", "nobody has it", *NDJSON)
    assert (none.exit_code, places(none), none.rows[-1]["complete"]) == (1, [], True)
    assert {one["cause"] for one in none.rows[-1]["verdicts"]} == {"delivered"}


@pytest.mark.parametrize("boundary", ["lower", "upper"])
def test_query_time_goes_on_to_the_next_that_passes(queue, boundary):
    root, place, own = queue
    middle = own[len(own) // 2]
    for one in {one["tags"]: one for one in own}.values():
        command = "query-time", root, *place, middle["storeTimestamp"], "--boundary", boundary
        plain = rmq(*command, *NDJSON).rows[-1]
        result = rmq(*command, "--filter", one["tags"] or "none", *NDJSON)
        times = {
            other["queueOffset"]: other["storeTimestamp"] for other in own if other["tags"] == one["tags"]
        }
        if boundary == "lower":
            right = min((at for at, time in times.items() if time >= middle["storeTimestamp"]), default=None)
        else:
            right = max((at for at, time in times.items() if time <= middle["storeTimestamp"]), default=None)
        right = right if one["tags"] else None
        assert result.rows[-1]["passing_queue_offset"] == right
        assert [row["slot"] for row in result.of_type("message")] == ([] if right is None else [right])
        assert result.rows[-1]["queue_offset"] == plain["queue_offset"]


EMPTY = [
    *((command, "--" + name, "") for command in ("dump", "stats", "tail") for name in
      ("topic", "tag", "key", "uniq-key", "body-contains", "filter", "queue", "from", "limit", "property")),
    ("query-key", ""),
    ("query-key", "", "k"),
    ("query-key", "T", ""),
    ("query-key", "k", "--topic", ""),
    ("query-key", "k", "--filter", ""),
    ("query-key", "T", "k", "--topic", "T"),
    ("query-key", "T", "k", "--by-key"),
    ("query-id", ""),
    ("query-id", "ID0", "--tag", ""),
    ("query-offset", "", "0", "0"),
    ("query-offset", "T", "0", "0", "--group", ""),
    ("query-offset", "T", "0", "0", "--key", ""),
    ("query-time", "", "0", "0"),
    ("query-time", "T", "0", "0", "--tag", ""),
]  # fmt: skip


@pytest.mark.parametrize("arguments", EMPTY)
def test_what_is_empty_is_refused(log, tmp_path, arguments):
    command, *rest = arguments
    assert_one_line(rmq(command, tmp_path, *rest), 2)


@pytest.mark.parametrize("command", ["tail", "stats"])
def test_an_option_that_means_nothing_does_not_exist(log, tmp_path, command):
    assert "--sample" not in rmq(command, "--help").stdout
    assert_one_line(rmq(command, tmp_path, "--sample", 3), 2)
