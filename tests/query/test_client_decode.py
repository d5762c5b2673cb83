"""What a client decodes of damaged records, as Java's own decoder did (client jars 4.9.8 and 5.3.3).

Both stores answered FOUND with the bytes that the units name, for every damage.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from fixtures.stores import HandmadeStore, healthy_store
from formats.commitlog import encode_message
from rmqtool.broker.traits import traits_of
from rmqtool.query.client_decode import decodes
from tests.cli.conforming import problems
from tests.helpers import rmq

JAVA = {
    "zero-all": ((2, 0, ""), (0, None, None)),
    "zero-head": ((32, 0, "T"), (0, None, None)),
    "zero-tail": ((2, 100, ""), (1, 100, "")),
    "body": ((32, 100, "T"), (32, 100, "T")),
    "magic": ((32, 100, "T"), (0, None, None)),
    "size+1": ((32, 100, "T"), (32, 100, "T")),
    "size-negative": ((32, 100, "T"), (32, 100, "T")),
    "size-huge": ((32, 100, "T"), (32, 100, "T")),
    "garbage": ((0, None, None), (0, None, None)),
    "body-length": ((0, None, None), (0, None, None)),
    "body-length-negative": ((0, None, None), (0, None, None)),
    "topic-length": ((0, None, None), (0, None, None)),
    "properties-length": ((1, 100, "T"), (1, 100, "T")),
    "properties": ((32, 100, "T"), (32, 100, "T")),
    "queue-offset": ((32, 77, "T"), (32, 77, "T")),
    "topic": ((32, 100, "U"), (32, 100, "U")),
}
"""damage of the first of 32 records → messages decoded, queue offset and topic of the first: 4.9.8, 5.3.3"""


def record(number: int, size: int) -> bytes:
    body = b"body-%05d" % number * 10
    properties = b"KEYS\x01k%d\x02TAGS\x01A" % number
    properties += b"x" * (size - 91 - len(body) - 1 - len(properties))
    host = bytes([10, 0, 0, 1]), 51000
    return encode_message(
        "T", body, properties, queue_offset=number, physical_offset=number * size,
        born_host=host, store_host=host, born_timestamp=1, store_timestamp=2,
    )  # fmt: skip


def damaged(name: str, whole: bytes) -> bytes:
    behind = 88 + 100
    position, data = {
        "zero-all": (0, bytes(len(whole))),
        "zero-head": (0, bytes(64)),
        "zero-tail": (64, bytes(len(whole) - 64)),
        "body": (95, b"XX"),
        "magic": (4, b"\1\2\3\4"),
        "size+1": (0, struct.pack(">i", len(whole) + 1)),
        "size-negative": (0, struct.pack(">i", -5)),
        "size-huge": (0, struct.pack(">i", 1 << 30)),
        "garbage": (0, bytes((i * 37 + 11) % 256 for i in range(len(whole)))),
        "body-length": (84, struct.pack(">i", 1 << 20)),
        "body-length-negative": (84, struct.pack(">i", -7)),
        "topic-length": (behind, b"\x7f"),
        "properties-length": (behind + 2, struct.pack(">h", 3000)),
        "properties": (behind + 4, bytes(len(whole) - behind - 4)),
        "queue-offset": (20, struct.pack(">q", 77)),
        "topic": (behind + 1, b"U"),
    }[name]
    return whole[:position] + data + whole[position + len(data) :]


@pytest.mark.parametrize("five", [False, True])
@pytest.mark.parametrize("name", JAVA)
def test_as_java_decodes(name: str, five: bool) -> None:
    size = 209 if five else 208
    answer = damaged(name, record(100, size)) + b"".join(record(number, size) for number in range(101, 132))
    found, end = decodes(answer, traits_of("5.3.3" if five else "4.9.8"))
    first = (found[0].queue_offset, found[0].topic) if found else (None, None)
    assert (len(found), *first) == JAVA[name][five]
    assert (end == len(answer)) == (len(found) == 32)


@pytest.mark.parametrize(
    ("release", "decoded", "causes"),
    [("5.3.3", 0, ["undecodable"]), ("4.9.8", 32, ["altered"])],
)
def test_query_offset_tells_what_a_pull_gives(
    tmp_path: Path, release: str, decoded: int, causes: list[str]
) -> None:
    store = healthy_store().write(tmp_path)
    lost = store.of("Orders")[0]
    store.patch(*store.segment(lost.offset), bytes(64))
    asked = ("query-offset", tmp_path, "Orders", 0, 0, "--as-version", release, "--format", "ndjson")
    many = rmq(*asked, "-n", 32)
    summary = many.rows[-1]
    messages = summary["pull"]["messages"]
    assert (many.exit_code, summary["status"], messages > 10) == (3, "FOUND", True)
    assert summary["pull"]["decoded"] == min(decoded, messages)
    assert [one["cause"] for one in summary["verdicts"]] == causes
    one = rmq(*asked).rows[-1]
    assert one["pull"] == {"bytes": lost.size, "messages": 1, "decoded": min(decoded, 1)}
    behind = rmq(*asked[:4], 1, *asked[5:]).rows[-1]
    assert [verdict["cause"] for verdict in behind["verdicts"]] == ["delivered"]


@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
def test_query_offset_tells_of_an_entry_at_which_every_pull_throws(tmp_path: Path, release: str) -> None:
    """Both real stores: `IllegalArgumentException`, newLimit < 0; recovery looks at three files only."""
    store = HandmadeStore()
    for _ in range(100):
        store.put("Orders", b"x")
    store.write(tmp_path)
    queue = min((tmp_path / "consumequeue/Orders/0").iterdir())
    raw = bytearray(queue.read_bytes())
    raw[2 * 20 + 8 : 2 * 20 + 12] = struct.pack(">i", -4096)
    queue.write_bytes(raw)
    for offset in (0, 2):
        asked = ("query-offset", tmp_path, "Orders", 0, offset, "-n", 9, "--as-version", release)
        answer = rmq(*asked, "--format", "ndjson")
        assert answer.exit_code == 3
        (verdict,) = answer.rows[-1]["verdicts"]
        assert verdict["cause"] == "pull_throws"
        assert "the entry of queue offset 2 has a size below zero" in verdict["message"]
        assert ("only a pull for at most 2 messages gets" in verdict["message"]) is (offset == 0)
        assert "pull" not in answer.rows[-1]
        assert (answer.rows[-1]["status"], answer.rows[-1]["next_begin_offset"]) == (None, None)
        assert problems(json.loads(rmq(*asked, "--json").stdout)) == []
        assert "status" not in rmq(*asked).stderr  # as there is none
    summary = rmq(*asked[:4], 0, "-n", 2, *asked[7:], "--format", "ndjson").rows[-1]
    assert [one["cause"] for one in summary["verdicts"]] == ["delivered"]
    assert (summary["status"], summary["next_begin_offset"]) == ("FOUND", 2)


def test_a_queue_file_that_is_longer_than_its_name_allows_hides_no_other(tmp_path: Path) -> None:
    """No broker loads such a queue; what the names of its files say tells where each entry lies."""
    store = healthy_store().write(tmp_path)
    with sorted((tmp_path / "consumequeue/Orders/0").iterdir())[1].open("ab") as file:
        file.write(bytes(400))
    for offset in (3, 23, 43):
        answer = rmq("query-offset", tmp_path, "Orders", 0, offset, "--format", "ndjson")
        assert answer.rows[0]["physical_offset"] == store.of("Orders")[offset].offset
        assert answer.exit_code == 3
        reasons = [one.get("error") for one in answer.rows[-1]["not_covered"]]
        assert "the file has 800 bytes, others 400" in reasons


def test_query_offset_tells_of_a_body_that_no_client_checks(tmp_path: Path) -> None:
    store = healthy_store().write(tmp_path)
    one = store.of("Orders")[1]
    path, position = store.segment(one.offset)
    store.patch(path, position + 88, b"\xff")
    for release in ("4.9.8", "5.3.3"):
        answer = rmq("query-offset", tmp_path, "Orders", 0, 1, "--as-version", release, "--format", "ndjson")
        (verdict,) = answer.rows[-1]["verdicts"]
        assert (answer.exit_code, verdict["cause"]) == (3, "altered")
        assert "at offset 1 a consumer decodes a body that fails its CRC" in verdict["message"]
