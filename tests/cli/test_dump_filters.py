"""`dump` with filters, against the same filter written in Python over what Java read."""

from __future__ import annotations

from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.dumping import NDJSON, keys_of, messages, offsets, plain_body, records
from tests.helpers import rmq

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import fixtures

Record = dict[str, Any]
GOLDEN = "v533-basic"


@pytest.fixture
def opened(
    golden: Callable[[str], fixtures.Golden], store_unchanged: Callable[[Path], Path]
) -> fixtures.Golden:
    found = golden(GOLDEN)
    store_unchanged(found.path)
    return found


def expected(opened: fixtures.Golden, test: Callable[[Record], bool]) -> list[int]:
    chosen = [record["physicalOffset"] for record in records(opened) if test(record)]
    assert chosen, "the reference chose nothing: the test would prove nothing"
    assert len(chosen) < len(opened.expected["records"])
    return chosen


def middle(opened: fixtures.Golden, field: str) -> tuple[int, int]:
    """Two values of a field that really occur, with others on both sides."""
    values = sorted({record[field] for record in opened.expected["records"]})
    return values[len(values) // 3], values[2 * len(values) // 3]


TEXT_FILTERS: dict[str, tuple[list[str], Callable[[Record], bool]]] = {
    "topic": (["--topic", "TopicA"], lambda r: r["topic"] == "TopicA"),
    "two topics": (["--topic", "TopicA", "--topic", "T"], lambda r: r["topic"] in {"TopicA", "T"}),
    "glob": (["--topic", "Topic*"], lambda r: r["topic"].startswith("Topic")),
    "glob of one letter": (["--topic", "Topic[AB]"], lambda r: r["topic"] in {"TopicA", "TopicB"}),
    "glob with a question": (["--topic", "?"], lambda r: len(r["topic"]) == 1),
    "queue": (["--queue", "1"], lambda r: r["queueId"] == 1),
    "queues": (["--queue", "0", "--queue", "3"], lambda r: r["queueId"] in {0, 3}),
    "every queue": (["--topic", "TopicA", "--queue", "*"], lambda r: r["topic"] == "TopicA"),
    "every queue beside one": (
        ["--topic", "TopicA", "--queue", "1", "--queue", "*"],
        lambda r: r["topic"] == "TopicA",
    ),
    "tag": (["--tag", "TagA"], lambda r: r["tags"] == "TagA"),
    "tags": (["--tag", "TagA", "--tag", "标签"], lambda r: r["tags"] in {"TagA", "标签"}),
    "key": (["--key", "order-1"], lambda r: "order-1" in keys_of(r)),
    "keys": (["--key", "a", "--key", "order-1"], lambda r: {"a", "order-1"} & set(keys_of(r))),
    "uniq key": (
        ["--uniq-key", "ID00000000000000000000000000000003"],
        lambda r: r["uniqKey"] == "ID00000000000000000000000000000003",
    ),
    "property": (["--property", "WAIT=true"], lambda r: r["properties"].get("WAIT") == "true"),
    "properties": (
        ["--property", "WAIT=true", "--property", "TAGS=TagA"],
        lambda r: r["properties"].get("WAIT") == "true" and r["tags"] == "TagA",
    ),
    "property with 0x01": (["--property", "用户=张三 🚀 \x01x"], lambda r: "用户" in r["properties"]),
    "combined": (
        ["--topic", "TopicB", "--queue", "1", "--tag", "TagA"],
        lambda r: (r["topic"], r["queueId"], r["tags"]) == ("TopicB", 1, "TagA"),
    ),
}


@pytest.mark.share
@pytest.mark.parametrize(("options", "test"), TEXT_FILTERS.values(), ids=TEXT_FILTERS)
def test_text(opened: fixtures.Golden, options: list[str], test: Callable[[Record], bool]) -> None:
    assert offsets(messages(opened.path, *options)) == expected(opened, test)


RANGES = {
    "store time": ("storeTimestamp", ["--from", "{}", "--to", "{}"]),
    "born time": ("bornTimestamp", ["--born-from", "{}", "--born-to", "{}"]),
    "physical offset": ("physicalOffset", ["--offset-range", "{}:{}"]),
    "queue offset": ("queueOffset", ["--queue-offset-range", "{}:{}"]),
}


@pytest.mark.share
@pytest.mark.parametrize(("field", "options"), RANGES.values(), ids=RANGES)
def test_ranges_are_half_open(opened: fixtures.Golden, field: str, options: list[str]) -> None:
    low, high = middle(opened, field)
    both = " ".join(options).format(low, high).split()
    assert offsets(messages(opened.path, *both)) == expected(opened, lambda r: low <= r[field] < high)
    one_low = " ".join(options).format(low, "").split()
    one_high = " ".join(options).format("", high).split()
    if len(options) == 4:
        one_low, one_high = [options[0], str(low)], [options[2], str(high)]
    assert offsets(messages(opened.path, *one_low)) == expected(opened, lambda r: low <= r[field])
    assert offsets(messages(opened.path, *one_high)) == expected(opened, lambda r: r[field] < high)
    empty = " ".join(options).format(low, low).split()
    assert messages(opened.path, *empty) == []


def test_times_in_words(opened: fixtures.Golden) -> None:
    low, high = middle(opened, "storeTimestamp")
    moments = [datetime.fromtimestamp(ms / 1000, UTC) for ms in (low, high)]
    iso = [moment.isoformat(timespec="milliseconds") for moment in moments]
    java = [f"{moment:%Y-%m-%d#%H:%M:%S}:{moment.microsecond // 1000:03d}" for moment in moments]
    chosen = expected(opened, lambda r: low <= r["storeTimestamp"] < high)
    for words in (iso, java):
        found = messages(opened.path, "--from", words[0], "--to", words[1], "--tz", "UTC")
        assert offsets(found) == chosen


def test_offsets_in_words(opened: fixtures.Golden) -> None:
    bases = sorted(int(path.name) for path in (opened.path / "commitlog").iterdir())
    low, high = middle(opened, "physicalOffset")

    def form(offset: int) -> str:
        base = max(base for base in bases if base <= offset)
        return f"{base}:{offset - base}"

    def named(offset: int) -> str:
        base, position = form(offset).split(":")
        return f"{int(base):020d}:{position}"

    chosen = expected(opened, lambda r: low <= r["physicalOffset"] < high)
    assert len({form(offset).split(":")[0] for offset in chosen}) > 1
    for text in (f"{low:#x}:{high:#x}", f"{form(low)}:{form(high)}", f"{low}:{named(high)}"):
        assert offsets(messages(opened.path, "--offset-range", text)) == chosen


@pytest.mark.parametrize("text", ["xx", "99999999:0:", "0:999999999:", "5", "-1:2", "9:3", "0:1:2:3:4"])
def test_offsets_that_mean_nothing(opened: fixtures.Golden, text: str) -> None:
    result = rmq("dump", opened.path, *NDJSON, "--offset-range", text)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--offset-range" in result.stderr or "segment" in result.stderr


def test_text_in_bodies(golden: Callable[[str], fixtures.Golden]) -> None:
    found = golden("v498-compressed")
    bodies = {
        record["physicalOffset"]: plain_body(found.path, record)
        for record in records(found)
        if not record["sysFlag"] & 1 or record["sysFlag"] & 0x700 in {0, 0x300}
    }
    sample = next(body for offset, body in bodies.items() if len(body) > 2000)[1000:1012]
    text = sample.decode(errors="ignore")
    sample = text.encode()
    result = messages(found.path, "--body-contains", text)
    chosen = [offset for offset, body in bodies.items() if sample in body]
    assert chosen
    assert [offset for offset in offsets(result) if offset in bodies] == chosen
    assert messages(found.path, "--body-contains", "no such text at all") == []


def test_nothing_is_chosen(opened: fixtures.Golden) -> None:
    result = rmq("dump", opened.path, *NDJSON, "--topic", "NoSuchTopic")
    assert result.exit_code == 0
    assert [row["type"] for row in result.rows] == ["summary"]
    summary = result.rows[0]
    assert (summary["messages"], summary["first_offset"], summary["complete"]) == (0, None, True)


# ---- limit and sample ----------------------------------------------------------------------------


@pytest.mark.parametrize("limit", [0, 1, 7, 412, 413, 414])
def test_limit(opened: fixtures.Golden, limit: int) -> None:
    everything = [record["physicalOffset"] for record in records(opened)]
    assert len(everything) == 413
    result = rmq("dump", opened.path, *NDJSON, "--limit", limit)
    assert result.exit_code == 0
    assert offsets(result) == everything[:limit]
    summary = result.rows[-1]
    assert summary["messages"] == min(limit, 413)
    assert summary["complete"] == (limit >= 413)
    assert summary.get("incomplete_reason") == ("limit" if limit < 413 else None)


def test_limit_behind_a_filter(opened: fixtures.Golden) -> None:
    chosen = expected(opened, lambda r: r["topic"] == "TopicB" and r["queueId"] == 1)
    options = ("--topic", "TopicB", "--queue", "1", "--limit")
    assert offsets(messages(opened.path, *options, "3")) == chosen[:3]
    result = rmq("dump", opened.path, *NDJSON, *options, len(chosen))
    assert offsets(result) == chosen
    assert result.rows[-1]["complete"] is True


@pytest.mark.share
@pytest.mark.parametrize("size", [0, 1, 10, 100, 413, 1000])
def test_sample(opened: fixtures.Golden, size: int) -> None:
    everything = [record["physicalOffset"] for record in records(opened)]
    result = rmq("dump", opened.path, *NDJSON, "--sample", size)
    found = offsets(result)
    assert result.exit_code == 0
    assert len(found) == len(set(found)) == min(size, 413)
    assert found == sorted(found)
    assert set(found) <= set(everything)
    assert offsets(rmq("dump", opened.path, *NDJSON, "--sample", size, "--jobs", "4")) == found
    assert result.rows[-1]["complete"] == (size >= 413)
    assert result.rows[-1].get("incomplete_reason") == (None if size >= 413 else "limit")
    assert result.rows[-1]["messages"] == len(found)


def test_a_sample_is_spread_over_everything(opened: fixtures.Golden) -> None:
    """Of a hundred, no tenth of the log has none and none has more than a third."""
    everything = [record["physicalOffset"] for record in records(opened)]
    places = [
        everything.index(offset) * 10 // 413 for offset in offsets(messages(opened.path, "--sample", "100"))
    ]
    counts = [places.count(tenth) for tenth in range(10)]
    assert min(counts) > 0
    assert max(counts) < 34


def test_a_sample_of_a_sample_s_filter(opened: fixtures.Golden) -> None:
    chosen = expected(opened, lambda r: r["topic"] == "TopicB")
    found = offsets(messages(opened.path, "--topic", "TopicB", "--sample", "20"))
    assert len(found) == 20
    assert set(found) <= set(chosen)
    both = offsets(messages(opened.path, "--topic", "TopicB", "--sample", "20", "--limit", "5"))
    assert both == found[:5]


def test_a_larger_sample_holds_the_smaller(opened: fixtures.Golden) -> None:
    small = offsets(messages(opened.path, "--sample", "10"))
    assert set(small) < set(offsets(messages(opened.path, "--sample", "40")))


# ---- usage ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        ["--limit", "-1"], ["--limit", "x"], ["--sample", "1.5"], ["--queue", "-1"], ["--queue", "a"],
        ["--from", "yesterday-ish"], ["--from", "200", "--to", "100"], ["--property", "novalue"],
        ["--queue-offset-range", "5"], ["--jobs", "0"], ["--jobs", "x"], ["--max-read-rate", "0"],
        ["--max-read-rate", "fast"], ["--body", "latin1"], ["--redact", "everything"], ["--format", "xml"],
        ["--tz", "Mars/Base"], ["--as", "novel"], ["--json", "--format", "csv"], ["--no-such-option"],
    ],
)  # fmt: skip
def test_usage(opened: fixtures.Golden, options: list[str]) -> None:
    result = rmq("dump", opened.path, *options)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith("rmqtool: ")
    assert result.stderr.count("\n") == 1


def test_globs_are_compared_with_case(opened: fixtures.Golden) -> None:
    topics = {record["topic"] for record in records(opened)}
    assert not any(fnmatchcase(topic, "topic*") for topic in topics)
    assert messages(opened.path, "--topic", "topic*") == []
