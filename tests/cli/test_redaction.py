"""What is redacted shows nowhere: a marker in every place where it can be, looked for in all forms."""

from __future__ import annotations

import base64
import hashlib
import random
import zlib
from typing import TYPE_CHECKING, Any

import pytest

from fixtures.builder import FIRST_TIME, HandmadeLog, body_crc
from formats.batch import encode_batch
from formats.java import java_hash
from formats.message_id import OffsetMessageId, UniqueClientId
from rmqtool.output.redaction_rules import NAMES, NUMBERS
from tests.helpers import rmq

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    import fixtures

FORMS = ("table", "csv", "ndjson", "json")
DUMPS = [
    ("--body", "auto", "--body-sha256"),
    ("--body", "auto", "--unwrap", "--body-sha256"),
    ("--body", "hex", "--unwrap"),
    ("--body", "base64", "--unwrap"),
    ("--body", "gbk", "--unwrap"),
    ("--body", "none", "--unwrap"),
    (),
]
BATCH = 0xC0
TRACE = "RMQ_SYS_TRACE_TOPIC"
CLASSES = ("body", "keys", "hosts", "properties")


class Marked:
    """A log with a marker in every place where a class of secrets can stand.

    text: the marker as it is written; secrets: further byte strings and numbers that give it away.
    """

    def __init__(self, what: str, seed: int) -> None:
        rng = random.Random(seed)
        self.what = what
        self.host = bytes(rng.randrange(11, 250) for _ in range(4))
        word = "".join(rng.choices("abcdefghjkmnpqrstuvwxyz", k=14))
        self.text = ".".join(map(str, self.host)) if what == "hosts" else word
        self.unique = UniqueClientId(self.host, 4242, 1, 123456, 7).build()
        self.offset_id = OffsetMessageId(self.host, 10911, 4660).build()
        self.log = HandmadeLog(segment_size=1 << 18)
        self.secrets = {self.text.encode()}
        self.numbers: set[int] = set()
        {"body": self._bodies, "keys": self._keys, "hosts": self._hosts, "properties": self._properties}[
            what
        ]()

    def put(self, topic: str, body: bytes, properties: dict[str, str] | bytes, **fields: Any) -> None:
        if self.what == "hosts":
            fields = {"born_host": (self.host, 4242), "store_host": (self.host, 10911)} | fields
        self.log.put(topic, body, properties, **fields)

    def _bodies(self) -> None:
        plain = self.text.encode()
        inner = encode_batch([(plain, b"TAGS\x01A\x02", 0), (b"\xff" + plain, b"", 0)])
        bodies = [
            (plain, 0),
            (zlib.compress(plain * 3), 0x301),
            (plain * 2, 0x301),  # cannot be decompressed
            (b"\xff" + plain, 0),
            (inner, BATCH),
            (zlib.compress(inner), BATCH | 0x301),
            (plain, BATCH),  # no sequence of messages
        ]
        for topic in ("T", "RMQ_SYS_TRANS_HALF_TOPIC", TRACE):
            for body, flag in bodies:
                crc = f"__CRC32#\x01{zlib.crc32(body):010d}\x02".encode()
                self.put(topic, body, b"TAGS\x01A\x02" + crc, sys_flag=flag)
                self.secrets |= {hashlib.sha256(body).digest(), crc[9:-1]}
                self.numbers.add(body_crc(body))
        self.secrets |= {hashlib.sha256(plain * 3).digest(), hashlib.sha256(inner).digest(), inner[4:40]}

    def _keys(self) -> None:
        key = self.text
        named = dict.fromkeys(
            [
                "KEYS",
                "UNIQ_KEY",
                "ORIGIN_MESSAGE_ID",
                "DLQ_ORIGIN_MESSAGE_ID",
                "__transactionId__",
                "own",
                "TIMER_DEL_UNIQKEY",
                "__SHARDINGKEY",
                "EXTEND_UNIQ_INFO",
                "DUP_INFO",
                "orderId",
            ],
            key,
        )
        copies = {"remark": f"for {key.upper()}!", f"x-{key}": "1", "INNER_MULTI_DISPATCH": f"%LMQ%{key}"}
        self.put("T", f'{{"order":"{key}"}}'.encode(), {**named, **copies, "INNER_MULTI_QUEUE_OFFSET": "0"})
        self.put("T", zlib.compress(f"order {key}".encode()), {"KEYS": f"a {key}"}, sys_flag=0x301)
        self.put("T", b"x", f"KEYS\x01{key}1\x02junk {key}\x02KEYS\x01{key}2\x02".encode())
        self._composed(key)
        for index in ("", "1", "2"):
            self.numbers |= {abs(java_hash(f"T#{key}{index}")), java_hash(f"T#{key}{index}")}

    def _hosts(self) -> None:
        host = self.text
        values = [host, f"{host}@77", f"/{host}:10911", self.unique, self.offset_id, self.offset_id.lower()]
        for value in [*values, self.host.hex(), self.host.hex().upper()]:
            own = {"remark": f"from {value}.", f"n-{value}": "1", "KEYS": f"a {value}", "TAGS": value}
            self.put("T", f"at {value}".encode(), dict.fromkeys(NAMES - NUMBERS - {"INNER_NUM"}, value) | own)
        self.put("T", b"raw " + self.host, {"INNER_MULTI_DISPATCH": f"%LMQ%{host}"})
        self.put("T", b"x", f"UNIQ_KEY\x01{self.unique}\x02junk {host}\x02".encode())
        self._composed(self.unique)
        self._composed(host)
        self.secrets |= {self.host, self.unique.encode(), self.offset_id.encode(), self.host.hex().encode()}

    def _properties(self) -> None:
        value = self.text
        for name in sorted(NAMES | {"own", value}):
            self.put("T", b"x", {name: value, "WAIT": "true", "INNER_MULTI_QUEUE_OFFSET": "0"})
        self.put("T", b"x", f"own\x01{value}\x02junk {value}\x02own\x01\xff{value}\x02".encode("latin-1"))
        self._composed(value)
        self.numbers.add(java_hash(value))

    def _composed(self, secret: str) -> None:
        """Bodies that RocketMQ makes of the secret: traces, batches, internal messages."""
        trace = f"Pub\x011700000000000\x01cn\x01g\x01T\x01{secret}\x01t\x01{secret}\x01h\x0112\x02".encode()
        for topic in (TRACE, "rmq_sys_TRACE_DATA_cn", "OwnTrace"):
            self.put(topic, trace, {"KEYS": "other"})
        self.put("rmq_sys_REVIVE_LOG_c", f'{{"bn":"{secret}"}}'.encode(), {"TAGS": "ck"})
        raw = f"KEYS\x01{secret}\x02UNIQ_KEY\x01{secret}\x02TAGS\x01{secret}\x02own\x01{secret}\x02".encode()
        inner = encode_batch(
            [(b"inner", raw, 0), (secret.encode() if self.what != "properties" else b"y", raw, 0)]
        )
        self.put("B", inner, {"TAGS": "A"}, sys_flag=BATCH)
        self.put("B", zlib.compress(inner), {"TAGS": "A"}, sys_flag=BATCH | 0x301)
        self.put("B", zlib.compress(inner)[:-3], {"TAGS": "A"}, sys_flag=BATCH | 0x301)
        self.put("B", inner[:-1], {"TAGS": "A"}, sys_flag=BATCH)

    def write(self, root: Path) -> Path:
        """With damage: a record whose size is the marker, and one whose magic is."""
        raw = next(iter(self.secrets)) if self.what != "hosts" else self.host
        copy = self.log.records[0].data
        self.log.put_raw(raw[:4] + copy[4:])
        self.log.put("T", b"between", b"", store_timestamp=FIRST_TIME)
        self.log.put_raw(copy[:4] + raw[:4] + copy[8:])
        self.log.put("T", b"behind", b"", store_timestamp=FIRST_TIME)
        self.log.write(root / "commitlog")
        return root

    def leaks(self, output: str) -> list[str]:
        """What of the secret stands in the output."""
        lowered = output.lower()
        squeezed = lowered.replace(" ", "").replace("\n", "")
        found = [form for one in self.secrets for form in written(one) if form in squeezed]
        found += [str(one) for one in self.numbers if abs(one) > 9999 and str(one) in output]
        for one in self.secrets:
            found += [form for form in based(one) if form in output]
        return found


def written(secret: bytes) -> Iterator[str]:
    """As text, also beside the hex of a page, and as hex; in lower case."""
    if secret.isascii():
        yield secret.decode().lower()
        yield secret.decode().encode("utf-16-le").hex()
    yield secret.hex()


def based(secret: bytes) -> Iterator[str]:
    """The characters that base64 gives it wherever it begins, less those that depend on its neighbours."""
    for shift in range(3):
        text = base64.b64encode(bytes(shift) + secret).decode().rstrip("=")
        middle = text[(shift * 8 + 5) // 6 : (shift + len(secret)) * 8 // 6]
        if len(middle) >= 5:
            yield middle


@pytest.fixture(params=[1, *(pytest.param(seed, marks=pytest.mark.full) for seed in range(2, 12))])
def seed(request: pytest.FixtureRequest) -> int:
    return int(request.param)


@pytest.mark.share
@pytest.mark.parametrize("what", CLASSES)
def test_nothing_of_a_class_is_dumped(tmp_path: Path, what: str, seed: int) -> None:
    marked = Marked(what, seed)
    store = marked.write(tmp_path)
    for form in FORMS:
        seen = False
        for options in DUMPS:
            plain = rmq("dump", store, "--format", form, *options)
            hidden = rmq("dump", store, "--format", form, *options, "--redact", what)
            seen |= bool(marked.leaks(plain.stdout))
            assert marked.leaks(hidden.stdout + hidden.stderr) == [], (form, options)
            assert hidden.exit_code == plain.exit_code
            assert len(hidden.stdout.splitlines()) == len(plain.stdout.splitlines())
        assert seen, "the marker must be there to be hidden"


@pytest.mark.share
@pytest.mark.parametrize("what", CLASSES)
def test_nothing_of_a_class_is_shown(tmp_path: Path, what: str, seed: int) -> None:
    marked = Marked(what, seed)
    store = marked.write(tmp_path)
    targets: list[object] = [one.physical_offset for one in marked.log.records]
    targets += [marked.log.records[0].physical_offset + 60, marked.log.records[-2].physical_offset + 60]
    if what == "hosts":
        targets += [marked.unique, marked.offset_id, OffsetMessageId(marked.host, 10911, 0).build()]
    for number, target in enumerate(targets):
        form = FORMS[number % len(FORMS)]
        body = ("auto", "hex", "none")[number % 3]
        hidden = rmq(
            "show", store, target, "--format", form, "--body", body, "--redact", what, "--body-sha256"
        )
        assert marked.leaks(hidden.stdout + hidden.stderr) == [], (target, form)


@pytest.mark.parametrize(
    "name",
    ["b533-full", *(pytest.param(name, marks=pytest.mark.full) for name in ("v533-batchcq", "v498-ipv6"))],
)
def test_a_real_store(golden: Callable[[str], fixtures.Golden], name: str) -> None:
    """What the dump of a store says in the open is in no redacted dump or page of its records."""
    store = golden(name).path
    rows = rmq("dump", store, "--format", "ndjson", "--body", "auto").of_type("message")
    secrets: dict[str, set[str]] = {what: set() for what in CLASSES}
    for row in rows:
        secrets["hosts"] |= {row["born_host"].rpartition(":")[0], row["store_host"].rpartition(":")[0]}
        secrets["hosts"] |= {row["offset_msg_id"], row["uniq_key"] or row["offset_msg_id"]}
        secrets["keys"] |= {*(row["keys"] or ()), *([row["uniq_key"]] if row["uniq_key"] else ())}
        secrets["properties"] |= {text for text in row["properties"].values() if len(text) > 8}
        secrets["body"] |= {text for text in [row.get("body_utf8", "")] if len(text) > 8}
    of_properties = ("properties", "tags", "keys", "uniq_key")
    elsewhere = str([[value for name, value in row.items() if name not in of_properties] for row in rows])
    secrets["properties"] = {one for one in secrets["properties"] if one not in elsewhere}
    topics = " ".join(row["topic"] for row in rows)
    for what, hidden in secrets.items():
        wanted = {one for one in hidden if len(one) > 5 and one not in topics and not one.isdigit()}
        reported = [
            rmq("dump", store, "--format", "ndjson", "--body", "auto", "--unwrap", "--redact", what).stdout
        ]
        for row in rows[:: max(len(rows) // 5, 1)]:
            target = row["physical_offset"]
            reported += [
                rmq("show", store, target, "--format", form, "--redact", what).stdout
                for form in ("table", "ndjson")
            ]
        for text in reported:
            assert [one for one in wanted if one in text] == []


def test_numbers_and_switches_stay(tmp_path: Path) -> None:
    log = HandmadeLog()
    log.put("T", b"x", {"WAIT": "true", "DELAY": "3", "REAL_QID": "not a number", "own": "1"})
    log.write(tmp_path / "commitlog")
    row = rmq("dump", tmp_path, "--format", "ndjson", "--redact", "properties").rows[0]
    hidden = {"REAL_QID": "(redacted)", "(redacted)": "(redacted)"}
    assert row["properties"] == {"WAIT": "true", "DELAY": "3", **hidden}


def test_hidden_bytes_are_no_zeros(tmp_path: Path) -> None:
    log = HandmadeLog()
    log.put("T", b"x" * 40, {"TAGS": "A"})
    log.write(tmp_path / "commitlog")
    page = rmq("show", tmp_path, 0, "--redact", "body,hosts").stdout
    assert "-- -- -- -- -- -- -- --  born_host           (redacted)" in page
    assert page.count("-- -- -- --              body_crc") == 1
    assert "40 bytes" in page
    assert "00 00 00 00 00 00 00 00 00 00" not in page
    assert "0x00000058  " in page


@pytest.mark.share
@pytest.mark.parametrize("what", CLASSES)
def test_nothing_of_a_class_is_seen_by_sql(tmp_path: Path, what: str, seed: int) -> None:
    marked = Marked(what, seed)
    marked.write(tmp_path)
    queries = ["select * from messages", "select body, body_crc, plain_body_sha256 from messages",
               "select properties_raw, redacted from messages", "select unnest(keys), tags from messages",
               "select * from messages a join messages b using (physical_offset)"]  # fmt: skip
    seen = 0
    for sql in queries:
        for form in ("table", "ndjson"):
            plain = rmq("sql", tmp_path, sql.replace(", redacted", ""), "--format", form)
            seen += bool(marked.leaks(plain.stdout))
            hidden = rmq("sql", tmp_path, sql, "--format", form, "--redact", what)
            assert hidden.exit_code in {0, plain.exit_code}, hidden.stderr
            assert marked.leaks(hidden.stdout + hidden.stderr) == [], (sql, form)
    assert seen


def test_conditions_of_sql_see_what_is_shown(tmp_path: Path) -> None:
    log = HandmadeLog(segment_size=4096)
    for number in range(60):
        log.put("T", b"secret %d" % number, {"KEYS": f"k{number}", "TAGS": "A"})
    log.write(tmp_path / "commitlog")

    def found(condition: str, *options: str) -> int:
        sql = f"select count(*) n from messages where {condition}"
        count: int = rmq("sql", tmp_path, sql, "--format", "ndjson", *options).rows[0]["n"]
        return count

    for condition in ("keys[1] = 'k7'", "list_contains(keys, 'k7')", "body = 'secret 7'::blob",
                      "properties['KEYS'] = 'k7'", "body_crc > 0 and physical_offset = 0"):  # fmt: skip
        assert found(condition) > 0, condition
        assert found(condition, "--redact", "body,keys") == 0, condition
    for condition in (
        "keys[1] = '(redacted)'",
        "body is null",
        "store_time is not null",
        "topic = 'T'",
        "true",
    ):
        assert found(condition, "--redact", "body,keys") == 60, condition
    whole = rmq("sql", tmp_path, "select * from messages where physical_offset < 4096", "--format", "ndjson",
                "--redact", "keys")  # fmt: skip
    assert whole.rows[-1]["redaction"] == ["keys"]
    assert whole.rows[-1]["segments_read"] < len(log.segments)
    dumped = rmq("dump", tmp_path, "--format", "ndjson", "--redact", "keys").of_type("message")
    for row, other in zip(whole.rows, dumped, strict=False):
        same = {
            "properties",
            "keys",
            "tags",
            "uniq_key",
            "offset_msg_id",
            "born_host",
            "body_crc",
        } & row.keys()
        assert {name: row[name] for name in same} == {name: other[name] for name in same}


def test_hashes_that_give_keys_and_tags_away(golden: Callable[[str], fixtures.Golden]) -> None:
    store = golden("b533-full").path
    for table, column in (
        ("index_items", "key_hash"),
        ("index_items", "slot"),
        ("consumequeue", "tags_code"),
    ):
        sql = f"select count({column}) n, count(*) m from {table}"
        shown, hidden = (
            rmq("sql", store, sql, "--format", "ndjson", *options).rows[0]
            for options in ((), ("--redact", "keys"))
        )
        assert shown["n"] == hidden["m"] > 0
        assert hidden["n"] == 0
