"""Logs as a whole: counts, times, stack traces, what is not known, bounded memory."""

from __future__ import annotations

import gzip
import random
from datetime import UTC, datetime, timedelta, timezone
from typing import TYPE_CHECKING

import pytest

from rmqtool.errors import UsageError
from rmqtool.explain.collect import Collector
from rmqtool.explain.derived import crc, flags, magic, slots
from rmqtool.explain.match import Table
from rmqtool.explain.reading import READ_ERRORS, sources_of
from rmqtool.explain.tally import Tally, template_of

if TYPE_CHECKING:
    from pathlib import Path

TABLE = Table()
CHINA = timezone(timedelta(hours=8))


def tally_of(text: str, *, parts: int = 1, zone: timezone = CHINA, **options: int) -> Tally:
    tally = Tally(**options)
    collector = Collector(tally, TABLE, "log", zone)
    lines = text.splitlines(keepends=True)
    step = -(-len(lines) // parts)
    for start in range(0, len(lines), step):
        collector.feed("".join(lines[start : start + step]).encode())
    return tally


def millis(text: str, zone: timezone = CHINA) -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=zone).timestamp() * 1000)


LOG = """\
2026-11-21 09:00:00 INFO main - load over, and the max phy offset = 100
2026-11-21 09:00:01 WARN Reput - Maybe try to build consume queue repeatedly maxPhysicOffset=5 phyOffset=4
2026-11-21 09:00:02 WARN Reput - Maybe try to build consume queue repeatedly maxPhysicOffset=56 phyOffset=47
2026-11-21 09:00:03 ERROR main - registerBrokerAll Exception
org.example.FirstException: no way to 10.0.0.1
\tat org.example.A.b(A.java:12)
Caused by: java.io.IOException: No space left on device
\t... 3 more
2026-11-21 09:00:04 ERROR main - something new 77 happened
org.example.OtherException
\tat org.example.A.b(A.java:13)
2026-11-21 09:00:05 ERROR main - something new 78 happened
2026-11-21 09:00:06 INFO main - nothing of note
"""


@pytest.mark.parametrize("parts", [1, 2, 5])
def test_a_log_by_cause(parts: int) -> None:
    tally = tally_of(LOG, parts=parts)
    counts = {name: cause.count for name, cause in tally.causes.items()}
    assert counts == {
        "start.load-over": 1,
        "queue.offered-again": 2,
        "broker.namesrv-failed": 1,
        "os.no-space": 1,
    }
    again = tally.causes["queue.offered-again"]
    assert (again.first, again.last) == (millis("2026-11-21T09:00:01"), millis("2026-11-21T09:00:02"))
    assert again.samples == [
        {"max_offset": "5", "physical_offset": "4"},
        {"max_offset": "56", "physical_offset": "47"},
    ]
    assert [(one.level, one.template, one.count) for one in tally.unknown.values()] == [
        ("ERROR", "something new # happened", 2)
    ]
    assert (tally.lines, tally.records, tally.unknown_lines) == (13, 7, 2)


def test_stack_traces_belong_to_their_line() -> None:
    tally = tally_of(LOG)
    assert dict(tally.causes["broker.namesrv-failed"].exceptions) == {"org.example.FirstException": 1}
    (unknown,) = tally.unknown.values()
    assert dict(unknown.exceptions) == {"org.example.OtherException": 1}
    assert tally.causes["os.no-space"].first == millis("2026-11-21T09:00:03")


def test_places_are_line_numbers() -> None:
    tally = tally_of(LOG, parts=3)
    assert tally.causes["broker.namesrv-failed"].line == 4
    assert next(iter(tally.unknown.values())).line == 9


def test_lines_without_time_stand_for_themselves_before_the_first_entry() -> None:
    tally = tally_of("last shutdown abnormally\nwhat is this\n\n\tat org.example.A.b(A.java:1)\n")
    assert list(tally.causes) == ["start.abnormal"]
    assert [(one.level, one.template) for one in tally.unknown.values()] == [(None, "what is this")]
    assert tally.causes["start.abnormal"].first is None


def test_times_of_other_forms() -> None:
    lines = [
        "2026-11-21 09:00:00,250 WARN RocketmqClient - last shutdown normally",
        "pod-0 stdout 2026-11-21T01:00:00.500Z WARN main - last shutdown normally",
        "\x1b[33m2026-11-21 09:00:00.750\x1b[0m \x1b[31mERROR\x1b[0m - last shutdown normally",
    ]
    tally = tally_of("\n".join(lines) + "\n")
    seen = tally.causes["start.normal"]
    base = millis("2026-11-21T01:00:00", UTC)
    assert (seen.count, seen.first, seen.last) == (3, base + 250, base + 750)


def test_digits_that_matter_are_told_apart_in_one_block() -> None:
    zeros, texts = "found a illegal magic code 0x0", "found a illegal magic code 0x7"
    head = "2026-11-21 09:00:00 WARN main - "
    tally = tally_of("".join(f"{head}{line}\n" for line in (zeros, texts, zeros, texts, zeros)))
    assert {name: cause.count for name, cause in tally.causes.items()} == {
        "recovery.magic-zero": 3,
        "recovery.magic-foreign": 2,
    }


def test_templates_are_bounded() -> None:
    names = [f"{chr(97 + i // 26)}{chr(97 + i % 26)}" for i in range(100)]
    tally = tally_of("".join(f"2026-11-21 09:00:00 WARN t - {name}\n" for name in names), most_unknown=10)
    assert (len(tally.unknown), tally.unlisted, tally.unknown_lines) == (10, 90, 100)


def test_template_of() -> None:
    line = "2026-11-21 09:00:00 ERROR x - lost 7F00000100002A9F0000000140000833 at 10.0.0.1:10911, took 12ms"
    assert template_of(line) == "lost # at #, took #ms"


def test_bytes_that_are_no_text_do_not_stop_it() -> None:
    tally = Tally()
    Collector(tally, TABLE, "log", CHINA).feed(
        b"2026-11-21 09:00:00 WARN x - a \xff\x00 b\nlast shutdown normally \xfe\n"
    )
    assert tally.lines == 2
    assert len(tally.unknown) == 1


def test_random_cuts_do_not_change_the_counts(tmp_path: Path) -> None:
    path = tmp_path / "store.log"
    path.write_text(LOG * 50)
    expected = tally_of(LOG * 50)
    for size in random.Random(5).sample(range(50, 5000), 6):
        tally = Tally()
        (source,) = sources_of([str(path)], None)
        collector = Collector(tally, TABLE, source.name, CHINA)
        for block in source.blocks(lambda _: None, size):
            collector.feed(block)
        counts = {name: cause.count for name, cause in tally.causes.items()}
        assert counts == {name: cause.count for name, cause in expected.causes.items()}
        assert (tally.lines, tally.unknown_lines) == (expected.lines, expected.unknown_lines)


def test_sources(tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    (logs / "otherdays").mkdir(parents=True)
    (logs / "store.log").write_text(LOG)
    (logs / "otherdays/store.1.log.gz").write_bytes(gzip.compress(LOG.encode()))
    (logs / "note.txt").write_text("no log")
    found = sources_of([str(logs), "a line of words"], None)
    assert [one.path and one.path.name for one in found] == ["store.1.log.gz", "store.log", None]
    texts = [b"".join(one.blocks(lambda _: None)).decode() for one in found]
    assert texts == [LOG, LOG, "a line of words\n"]


@pytest.mark.parametrize("word", ["/no/such/store.log", "store.log", "logs/x", "./x", "broker.1.log.gz"])
def test_a_path_that_does_not_exist(word: str) -> None:
    with pytest.raises(UsageError, match="no such file"):
        sources_of([word], None)


def test_binary_data_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000"
    path.write_bytes(bytes(4096))
    (source,) = sources_of([str(path)], None)
    with pytest.raises(UsageError, match="binary"):
        list(source.blocks(lambda _: None))


def test_a_cut_gzip_gives_what_it_holds(tmp_path: Path) -> None:
    path = tmp_path / "store.log.gz"
    text = "".join(f"2026-11-21 09:00:00 INFO x - {random.Random(i).random()}\n" for i in range(100_000))
    path.write_bytes(gzip.compress(text.encode())[:-1000])
    (source,) = sources_of([str(path)], None)
    blocks: list[bytes] = []
    with pytest.raises(READ_ERRORS):
        blocks.extend(source.blocks(lambda _: None))
    held = b"".join(blocks)
    assert text.encode().startswith(held)
    assert len(held) > 0.9 * len(text)


def test_an_endless_line_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text("last shutdown normally\n" + "x" * 20_000 + "\nlast shutdown abnormally\n")
    (source,) = sources_of([str(path)], None)
    blocks = list(source.blocks(lambda _: None, 1000))
    assert max(map(len, blocks)) < 4000
    assert b"last shutdown abnormally\n" in b"".join(blocks)


@pytest.mark.parametrize(
    ("code", "reported"),
    [
        ("696e4d73", "'inMs'"),
        ("e588a9e5", "'利'"),
        ("daa330a7", "V1 record"),
        ("daa320ab", "V2 record"),
        ("ffffffff", "all bits set"),
        ("1", "no text"),
    ],
)
def test_magic(code: str, reported: str) -> None:
    (line,) = magic({"magic": code})
    assert reported in line


def test_values_are_read_right() -> None:
    assert "46 slots" in slots({"diff": "920"})[0]
    assert "75 slots" in slots({"diff": "-1500"})[0]
    assert "stored in the record 2, computed from its body 1" in crc({"first_crc": "1", "second_crc": "2"})[0]
    assert flags({"flags": "20"}) == ["flags 20: a consume queue could not be written, disk full"]
