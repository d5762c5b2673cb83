"""Bodies: every form, compressed and broken ones, inner messages, and what redaction hides."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.builder import HandmadeLog
from formats.batch import encode_batch
from rmqtool.errors import ExitCode
from tests.cli.dumping import NDJSON, messages, plain_body, records, stored
from tests.helpers import rmq

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import fixtures

BODIES = {
    "ascii": b"hello",
    "utf8": "中文 ü 🚀".encode(),
    "gbk": "中文报文".encode("gbk"),
    "binary": bytes(range(256)),
    "empty": b"",
    "nul": b"a\0b",
}
PLAIN = b"plain text " * 300


@pytest.fixture
def store(tmp_path: Path, store_unchanged: Callable[[Path], Path]) -> Path:
    log = HandmadeLog(segment_size=1 << 16)
    for name, body in BODIES.items():
        log.put(
            "TopicTest",
            body,
            {"TAGS": name, "KEYS": f"key-{name} two", "UNIQ_KEY": f"0A00{name}", "own": "1"},
        )
    log.put("TopicTest", zlib.compress(PLAIN), {"TAGS": "zlib"}, sys_flag=0x301)
    log.put("TopicTest", b"not compressed at all", {"TAGS": "broken"}, sys_flag=0x301)
    log.put("TopicTest", b"odd type", {"TAGS": "undefined"}, sys_flag=0x701)
    log.write(tmp_path / "store" / "commitlog")
    return store_unchanged(tmp_path / "store")


def bodies(store: Path, *options: str) -> dict[str, dict[str, Any]]:
    """Tag → the keys of the row that speak of bodies."""
    return {
        row["tags"]: {
            key: value
            for key, value in row.items()
            if key.startswith(("body_", "plain_")) and key != "body_crc"
        }
        for row in messages(store, *options)
    }  # fmt: skip


def shown(found: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in found.items() if key not in {"body_length", "plain_length"}}


def b64(body: bytes) -> str:
    return base64.b64encode(body).decode()


def lossless(body: bytes, encoding: str) -> str | None:
    try:
        text = body.decode(encoding)
    except UnicodeDecodeError:
        return None
    return text if text.encode(encoding) == body else None


@pytest.mark.parametrize("options", [(), ("--body", "auto"), ("--body",), ("--body", "utf8")])
def test_utf8(store: Path, options: tuple[str, ...]) -> None:
    found = bodies(store, *options)
    for name, body in BODIES.items():
        text = lossless(body, "utf-8")
        assert shown(found[name]) == ({"body_utf8": text} if text is not None else {"body_base64": b64(body)})
    assert shown(found["zlib"]) == {"body_utf8": PLAIN.decode()}


def test_gbk(store: Path) -> None:
    found = bodies(store, "--body", "gbk")
    for name, body in BODIES.items():
        text = lossless(body, "gbk")
        assert shown(found[name]) == ({"body_gbk": text} if text is not None else {"body_base64": b64(body)})
    assert shown(found["gbk"]) == {"body_gbk": "中文报文"}


def test_hex_and_base64(store: Path) -> None:
    hexed, based = bodies(store, "--body", "hex"), bodies(store, "--body", "base64")
    for name, body in [*BODIES.items(), ("zlib", PLAIN)]:
        assert shown(hexed[name]) == {"body_hex": body.hex()}
        assert shown(based[name]) == {"body_base64": b64(body)}


@pytest.mark.parametrize("form", ["auto", "utf8", "gbk", "hex", "base64"])
@pytest.mark.parametrize(("tag", "body"), [("broken", b"not compressed at all"), ("undefined", b"odd type")])
def test_bodies_that_cannot_be_decompressed(store: Path, form: str, tag: str, body: bytes) -> None:
    """Shown as stored, and said so; that alone is no damage to the log."""
    found = bodies(store, "--body", form)[tag]
    assert found["body_base64"] == b64(body)
    assert "decompress" in found["body_error"]
    assert (found["body_length"], found["plain_length"]) == (len(body), None)
    assert not {"body_utf8", "body_hex", "body_gbk"} & found.keys()


def test_none(store: Path) -> None:
    assert all(shown(found) == {} for found in bodies(store, "--body", "none").values())


def test_digests(store: Path) -> None:
    found = bodies(store, "--body", "none", "--body-sha256")
    for name, body in BODIES.items():
        digest = hashlib.sha256(body).hexdigest()
        assert shown(found[name]) == {"body_sha256": digest, "plain_body_sha256": digest}
    assert found["zlib"]["body_sha256"] == hashlib.sha256(zlib.compress(PLAIN)).hexdigest()
    assert found["zlib"]["plain_body_sha256"] == hashlib.sha256(PLAIN).hexdigest()
    assert found["broken"]["plain_body_sha256"] is None


def test_lengths(store: Path) -> None:
    found = bodies(store, "--body", "none")
    assert found["zlib"] == {"body_length": len(zlib.compress(PLAIN)), "plain_length": len(PLAIN)}
    assert found["binary"] == {"body_length": 256, "plain_length": 256}


@pytest.mark.parametrize("name", ["v498-compressed", "v533-edge", "v533-basic"])
def test_bodies_of_real_logs(golden: Callable[[str], fixtures.Golden], name: str) -> None:
    opened = golden(name)
    rows = {row["physical_offset"]: row for row in messages(opened.path, "--body", "hex")}
    compared = 0
    for record in records(opened):
        if not record["sysFlag"] & 1 or record["sysFlag"] & 0x700 in {0, 0x300}:
            assert rows[record["physicalOffset"]]["body_hex"] == plain_body(opened.path, record).hex()
            compared += 1
    assert compared > 10


# ---- messages in batches -------------------------------------------------------------------------


def test_messages_in_batches(
    golden: Callable[[str], fixtures.Golden], store_unchanged: Callable[[Path], Path]
) -> None:
    """As many as INNER_NUM says, with the queue offsets from INNER_BASE on, right behind their carrier."""
    opened = golden("v533-batchcq")
    result = rmq("dump", store_unchanged(opened.path), *NDJSON, "--unwrap", "--body", "hex")
    assert result.exit_code == 0
    rows = result.rows
    places = [at for at, row in enumerate(rows) if row["type"] == "message"]
    assert len(places) == len(opened.expected["records"])
    carriers = 0
    for at, record in zip(places, records(opened), strict=True):
        number = int(record["properties"].get("INNER_NUM", 0))
        inner = rows[at + 1 : at + 1 + number]
        assert [row["type"] for row in inner] == ["inner_message"] * number
        assert rows[at + 1 + number]["type"] != "inner_message"
        if not number:
            continue
        carriers += 1
        base = int(record["properties"]["INNER_BASE"])
        assert [row["queue_offset"] for row in inner] == list(range(base, base + number))
        assert [row["number"] for row in inner] == list(range(number))
        assert {row["physical_offset"] for row in inner} == {record["physicalOffset"]}
        assert {(row["topic"], row["queue_id"]) for row in inner} == {(record["topic"], record["queueId"])}
        body = bytes(stored(opened.path, record["physicalOffset"]).body)
        for row in inner:
            message = body[row["body_position"] :]
            length = int.from_bytes(message[16:20], "big")
            assert row["body_hex"] == message[20 : 20 + length].hex()
            assert row["body_length"] == length
            assert row["properties"]["KEYS"] == row["keys"][0]
    assert carriers > 5
    assert rows[-1]["messages"] == len(records(opened))


def test_without_unwrap_batches_are_one_row(golden: Callable[[str], fixtures.Golden]) -> None:
    result = rmq("dump", golden("v533-batchcq").path, *NDJSON)
    assert result.of_type("inner_message") == []


def batch_store(directory: Path, *batches: tuple[bytes, int]) -> Path:
    log = HandmadeLog(segment_size=1 << 16)
    for body, flags in batches:
        log.put("TopicBatch", body, {"INNER_NUM": "2"}, sys_flag=flags)
    log.write(directory / "commitlog")
    return directory


def test_batches_that_cannot_be_taken_apart(tmp_path: Path) -> None:
    whole = encode_batch([(b"one", b"TAGS\x01A\x02", 7), (b"two", b"", 0)])
    store = batch_store(
        tmp_path,
        (whole, 0xC0),
        (whole[:-5], 0xC0),
        (b"junk", 0x3C1),
        (zlib.compress(whole), 0x3C1),
        (whole, 0),
    )
    result = rmq("dump", store, *NDJSON, "--unwrap")
    assert result.exit_code == 1
    kinds = [row["type"] for row in result.rows]
    first = ["message", "inner_message", "inner_message"]
    assert kinds[:-2] == [
        *first,
        "message",
        "inner_message",
        "inner_error",
        "message",
        "inner_error",
        *first,
        "message",
    ]
    assert result.rows[-1]["bad_inner"] == 2
    inner = result.of_type("inner_message")
    assert [row["flag"] for row in inner[:2]] == [7, 0]
    assert [row["body_utf8"] for row in inner] == ["one", "two", "one", "one", "two"]
    assert rmq("dump", store, *NDJSON).exit_code == 0


def test_unwrap_in_a_table(golden: Callable[[str], fixtures.Golden]) -> None:
    result = rmq("dump", golden("v533-batchcq").path, "--unwrap", "--limit", "2")
    assert result.exit_code == 0
    assert len(result.stdout.splitlines()) == 1 + 3


@pytest.mark.parametrize("form", ["raw", "hex"])
def test_unwrap_means_nothing_for_whole_records(store: Path, form: str) -> None:
    result = rmq("dump", store, "--unwrap", "--format", form)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--unwrap" in result.stderr


# ---- redaction -----------------------------------------------------------------------------------

SECRETS = {
    "body": ["hello", b64(BODIES["binary"]), "plain text"],
    "keys": ["key-ascii", "0A00ascii"],
    "hosts": ["10.0.0.1", "10.0.0.2", "0A000002", "0A00ascii"],
    "properties": ["key-ascii", "0A00ascii", '"own"', "ascii"],
}


@pytest.mark.parametrize("form", ["ndjson", "json", "csv", "table"])
@pytest.mark.parametrize("what", SECRETS)
def test_redaction_hides(store: Path, what: str, form: str) -> None:
    options = ("--format", form, "--body", "auto", "--body-sha256")
    open_text = rmq("dump", store, *options).stdout
    hidden = rmq("dump", store, *options, "--redact", what)
    assert hidden.exit_code == 0
    for secret in SECRETS[what]:
        if form in {"ndjson", "json"}:
            assert secret in open_text
        assert secret not in hidden.stdout


def test_redaction_leaves_the_rest(store: Path) -> None:
    (before, *_), (after, *_) = messages(store), messages(store, "--redact", "keys")
    changed = {key for key in before | after if before.get(key) != after.get(key)}
    assert changed == {"keys", "uniq_key", "properties", "redacted"}
    assert after["properties"] == before["properties"] | dict.fromkeys(("KEYS", "UNIQ_KEY"), "(redacted)")
    assert (after["keys"], after["uniq_key"]) == (["(redacted)"], "(redacted)")
    assert after["redacted"] == ["keys", "uniq_key", "properties"]
    (after, *_) = messages(store, "--redact", "hosts")
    assert {after[name] for name in ("born_host", "store_host", "offset_msg_id")} == {"(redacted)"}
    assert after["keys"] == ["key-ascii", "two"]


def test_redaction_of_everything(store: Path) -> None:
    result = rmq("dump", store, *NDJSON, "--redact", "body,keys,hosts,properties", "--body-sha256")
    text = result.stdout
    assert result.rows[-1]["redaction"] == ["body", "hosts", "keys", "properties"]
    for secrets in SECRETS.values():
        assert not [secret for secret in secrets if secret in text]
    assert hashlib.sha256(b"hello").hexdigest() not in text


def test_redaction_reaches_stored_bytes_and_inner_messages(tmp_path: Path) -> None:
    """The hex of what decoding lost would give the secret away, and so would a message in a batch."""
    log = HandmadeLog(segment_size=1 << 16)
    log.put("T", b"x", b"KEYS\x01secret\x02junk\x02KEYS\x01secret2\x02")
    log.put(
        "T", encode_batch([(b"inner secret", b"KEYS\x01secret\x02UNIQ_KEY\x01secret\x02", 0)]), sys_flag=0xC0
    )
    log.write(tmp_path / "commitlog")
    options = (*NDJSON, "--unwrap", "--body", "none")
    assert b"secret".hex() in rmq("dump", tmp_path, *options).stdout
    for what in ("keys", "properties"):
        text = rmq("dump", tmp_path, *options, "--redact", what).stdout
        assert "secret" not in text
        assert b"secret".hex() not in text
    text = rmq("dump", tmp_path, *NDJSON, "--unwrap", "--body", "auto", "--redact", "body").stdout
    assert "inner secret" not in text


@pytest.mark.parametrize("form", ["raw", "hex"])
def test_redaction_means_nothing_for_whole_records(store: Path, form: str) -> None:
    result = rmq("dump", store, "--redact", "keys", "--format", form)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--redact" in result.stderr


def test_properties_that_lost_something(tmp_path: Path) -> None:
    strings = [b"TAGS\x01a\x02", b"TAGS\x01a\x02junk\x02", b"TAGS\x01\xff\x02", b"a\x011\x02a\x012\x02", b""]
    log = HandmadeLog(segment_size=1 << 16)
    for raw in strings:
        log.put("T", b"x", raw)
    log.write(tmp_path / "commitlog")
    rows = messages(tmp_path, "--body", "none")
    lost = [None, strings[1].hex(), strings[2].hex(), strings[3].hex(), None]
    assert [row.get("properties_raw_hex") for row in rows] == lost
    assert [row["properties"] for row in rows][2:4] == [{"TAGS": "\ufffd"}, {"a": "2"}]


def test_topics_that_cannot_be_decoded(tmp_path: Path) -> None:
    from tests.scan.tools import encode_raw_topic

    log = HandmadeLog(segment_size=1 << 16)
    log.put_raw(encode_raw_topic(b"\xff\xfe", body=b"x"))
    log.put("T", b"y")
    log.write(tmp_path / "commitlog")
    damaged = rmq("dump", tmp_path, *NDJSON)
    assert damaged.exit_code == ExitCode.DAMAGE
    first, second = damaged.of_type("message")
    assert (first["topic"], first["topic_hex"]) == (None, "fffe")
    assert "topic_hex" not in second
    assert [row["topic"] for row in messages(tmp_path, "--topic", "*")] == ["T"]


def test_json_is_the_same_in_one_document(store: Path) -> None:
    rows = rmq("dump", store, *NDJSON).rows
    document = json.loads(rmq("dump", store, "--json").stdout)
    assert document["rows"] == rows[:-1]
    summary = {key: value for key, value in rows[-1].items() if key not in {"type", "schema"}}
    assert {key: document["summary"][key] for key in summary} == summary
    assert document["schema"] == "rmqtool.dump/1" or document["summary"]["schema"] == "rmqtool.dump/1"
