"""`rmqtool report`: one file, whose numbers are the document's, in which a store can put no markup."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import pytest

from fixtures.builder import HandmadeLog, damage_file, overwrite
from rmqtool.output.sizes import human_bytes
from rmqtool.output.times import zone_of
from rmqtool.report.bounds import MOST, bounded
from rmqtool.report.html import digest, embedded, number, tag, text
from rmqtool.report.page import page
from rmqtool.report.redacted import redacted
from tests.helpers import held, rmq, rmq_process
from tests.report.test_map import NAMES, NDJSON, damaged, write

VOID = {"meta", "br"}


class Page(HTMLParser):
    """A page as a strict reader takes it: elements that close, attributes, what stands in `data-key`."""

    def __init__(self, content: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: dict[str, int] = {}
        self.attributes: list[tuple[str, str, str | None]] = []
        self.values: dict[str, tuple[str, str]] = {}
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self.text = ""
        self._key: tuple[str, str] | None = None
        self.feed(content)
        self.close()
        assert self.open == []

    def handle_starttag(self, name, attributes):
        self.tags[name] = self.tags.get(name, 0) + 1
        self.attributes += [(name, key, value) for key, value in attributes]
        given = dict(attributes)
        self._key = (given["data-key"], given["value"]) if "data-key" in given else None
        if name not in VOID:
            self.open.append(name)

    def handle_startendtag(self, name, attributes):
        self.tags[name] = self.tags.get(name, 0) + 1

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, content):
        if self.open and self.open[-1] in self.raw:
            self.raw[self.open[-1]].append(content)
            return
        self.text += content
        if self._key is not None:
            key, value = self._key
            self.values[key] = value, content
            self._key = None


def made(store: Path, target: Path, *options: object, code: int | None = None):
    """The report of a store: the page, its text, and the document that was printed."""
    result = rmq("report", store, "--output", target, "--json", "--tz", "UTC", *options)
    assert code is None or result.exit_code == code, result.stderr
    content = target.read_text(encoding="utf-8")
    return Page(content), content, json.loads(result.stdout)


def at(document, place: str):
    for key in place.split("."):
        document = document[int(key)] if isinstance(document, list) else document[key]
    return document


def assert_numbers_agree(found: Page, document) -> None:
    """What stands in the page is what the document has, in one of the forms of a number."""
    assert found.values
    zone = zone_of("UTC")
    for place, (value, shown) in found.values.items():
        expected = at(document, place)
        assert value == str(expected), place
        assert shown in {number(expected), human_bytes(expected), zone.moment(expected)}, place


@pytest.mark.share
@pytest.mark.parametrize("name", ["b533-full", "v498-unclean", "v533-lmq", "v533-batchcq"])
def test_says_what_the_others_say(golden, store_unchanged, tmp_path, name):
    store = store_unchanged(golden(name).path)
    found, _, document = made(store, tmp_path / "r.html")
    embedded_document = json.loads(found.raw["script"][0])
    page_only = embedded_document.pop("page")
    assert embedded_document == document
    assert_numbers_agree(found, document)
    doctor = json.loads(rmq("doctor", store, "--json").stdout)
    for key in ("verdict", "safe_to_start", "deletes", "stop_offset", "loss", "queues", "advice"):
        assert document["doctor"][key] == doctor[key]
    verify = rmq("verify", store, *NDJSON)
    for key in ("findings", "by_severity", "by_code", "records", "bytes", "end_offset", "complete"):
        assert document["verify"][key] == verify.rows[-1][key]
    assert sum(one["findings"] for one in document["verify"]["groups"]) == len(verify.of_type("finding"))
    stats = rmq("stats", store, *NDJSON)
    assert [{"type": "group", **row} for row in document["topics"]] == stats.of_type("group")
    assert {key: stats.rows[-1][key] for key in document["stats"]} == document["stats"]
    assert document["map"]["summary"] == drop(rmq("map", store, *NDJSON).rows[-1], "type", "schema")
    assert document["groups"] == rmq("store", "groups", store, *NDJSON).of_type("group")
    assert sum(document["volume"]["messages"]) + document["volume"]["outside"] == stats.rows[-1]["messages"]
    assert page_only["topics"] == page_only["topics"][:8]
    codes = {rmq("doctor", store).exit_code, verify.exit_code}
    again = rmq("report", store, "--output", tmp_path / "again.html").exit_code
    assert again == max(codes)  # of 0, 1 and 3


def drop(row, *names):
    return {key: one for key, one in row.items() if key not in names}


def test_of_a_damaged_store(tmp_path, store_unchanged):
    store = store_unchanged(damaged(tmp_path / "store"))
    found, content, document = made(store, tmp_path / "r.html", code=1)
    assert_numbers_agree(found, document)
    assert document["doctor"]["verdict"] in content
    plan = json.loads(rmq("recover", store, "--json").stdout)
    assert document["plan"]["plan_id"] == plan["summary"]["plan_id"]
    assert document["plan"]["rows"] == plan["rows"][: len(document["plan"]["rows"])]
    assert document["plan"]["changes"] == len(plan["rows"])
    first = document["map"]["rows"][0]
    assert first["findings"] > 0
    assert sum(first["states"].get(name, 0) for name in ("gap", "bad_crc")) == first["damaged_bytes"] > 0
    caused = {row["cause"] for row in document["verify"]["groups"]}
    rows = rmq("verify", store, *NDJSON).of_type("finding")
    assert caused == {row.get("caused_by") or row["code"] for row in rows}


def test_no_plan_where_none_is_wanted(tmp_path, golden):
    for value, why in (("never", "not asked for"), ("auto", "nothing was found")):
        _, _, document = made(golden("v533-basic").path, tmp_path / f"{value}.html", "--plan", value)
        assert document["plan"]["made"] is False
        assert why in document["plan"]["why"]
    _, _, document = made(golden("v533-basic").path, tmp_path / "always.html", "--plan", "always")
    assert document["plan"]["made"] is True


def test_what_was_done(tmp_path):
    store = damaged(tmp_path / "store")
    backup = tmp_path / "backup"
    assert rmq("recover", store, "--in-place", "--backup", backup, "--apply").exit_code in {0, 1}
    _, content, document = made(store, tmp_path / "r.html", "--journal", backup)
    (journal,) = document["journals"]
    assert (journal["command"], journal["phase"]) == ("recover", "done")
    assert journal["changes"] == len(journal["rows"]) + journal["changes_left_out"] > 0
    assert "What was done" in content
    other = tmp_path / "other" / "store"
    write(other)
    refused = rmq(
        "report", tmp_path / "other" / "store", "--output", tmp_path / "x.html", "--journal", backup
    )
    assert refused.exit_code == 2
    assert not (tmp_path / "x.html").exists()


HOSTILE = (
    *NAMES,
    "<!--",
    "]]><svg/onload=x>",
    "`${x}`",
    "\u2028;alert(1)//",
    '"onmouseover="x',
    "javascript:x",
)


@pytest.mark.parametrize("redaction", [(), ("--redact", "hosts,keys")])
def test_nothing_of_the_store_becomes_markup(tmp_path, redaction):
    plain, hostile = tmp_path / "plain", tmp_path / "hostile"
    write(plain, 90, tuple(f"Topic{at}" for at in range(len(HOSTILE))))
    write(hostile, 90, HOSTILE)
    for root, names in ((plain, [f"Topic{at}" for at in range(len(HOSTILE))]), (hostile, HOSTILE)):
        (root / "config").mkdir()
        offsets = {"offsetTable": {f"{name}@{name}": {"0": 1} for name in names}}
        (root / "config" / "consumerOffset.json").write_text(json.dumps(offsets))
    expected, _, _ = made(plain, tmp_path / "p.html", *redaction)
    found, content, document = made(hostile, tmp_path / "h.html", *redaction)
    assert found.tags.keys() == expected.tags.keys()
    names = {(name, key) for name, key, _ in expected.attributes} | {("details", "open")}
    assert {(name, key) for name, key, _ in found.attributes} <= names
    assert not any(key.startswith("on") or key in {"href", "src", "style"} for _, key in names)
    assert len(found.raw["script"]) == 2
    assert not set("\x1b\u202e\u2028") & set(content)
    assert {row["topic"] for row in document["topics"]} == set(HOSTILE)
    assert "</script><b>" in found.text
    assert "\\u202etxt" in found.text
    assert "مرحبا" in found.text


def test_the_policy_allows_its_own_script_and_style_alone(tmp_path, golden):
    found, content, _ = made(golden("v533-basic").path, tmp_path / "r.html")
    policy = next(
        value for name, key, value in found.attributes if key == "content" and "default-src" in value
    )
    assert policy.startswith("default-src 'none'; ")
    assert digest(found.raw["script"][1]) in policy
    assert digest(found.raw["style"][0]) in policy
    assert "unsafe" not in policy
    assert "http" not in "".join(found.raw["style"]) + found.raw["script"][1].replace("http://www.w3.org", "")
    assert "innerHTML" not in content


def test_text_and_json_are_escaped_by_construction():
    assert tag("p", "</script>", title='"><x') == '<p title="&quot;&gt;&lt;x">&lt;/script&gt;</p>'
    assert text("\x1b[2J\u202e") == "\\x1b[2J\\u202e"
    inside = embedded(json.dumps({"a": "</script><!--"}))
    assert "</script>" not in inside.removesuffix("</script>")
    assert "<!--" not in inside


def test_where_it_writes(tmp_path, golden, store_unchanged):
    store = store_unchanged(golden("v533-basic").path)
    target = tmp_path / "r.html"
    target.write_text("mine")
    assert rmq("report", store, "--output", target).exit_code == 2
    assert target.read_text() == "mine"
    assert rmq("report", store).exit_code == 2
    for inside in (store / "r.html", store / "config" / "r.html"):
        refused = rmq("report", store, "--output", inside)
        assert (refused.exit_code, inside.exists()) == (2, False)
        assert "lies in the store" in refused.stderr
    (tmp_path / "link").symlink_to(store)
    assert rmq("report", store, "--output", tmp_path / "link" / "r.html").exit_code == 2
    assert rmq("report", store, "--output", tmp_path / "none" / "r.html").exit_code == 2
    assert rmq("report", store, "--output", target, "--force").exit_code == 0
    assert target.read_text().startswith("<!DOCTYPE html>")
    assert [one.name for one in tmp_path.glob("r.html*")] == ["r.html"]


def test_a_secret_file_is_not_given_to_others(tmp_path):
    write(tmp_path / "store")
    for path in (tmp_path / "store").rglob("*"):
        path.chmod(0o700 if path.is_dir() else 0o600)
    made(tmp_path / "store", tmp_path / "r.html")
    assert (tmp_path / "r.html").stat().st_mode & 0o077 == 0


def test_a_live_store(tmp_path, fresh_golden):
    store = fresh_golden("v533-basic").path
    (store / "lock").touch()
    with held(store):
        result = rmq_process("report", store, "--output", tmp_path / "r.html", "--json", "--plan", "always")
    document = json.loads(result.stdout)
    assert result.exit_code == 1  # a second broker must not be started here
    assert document["doctor"]["lock"]["held"] is True
    assert document["plan"]["made"] is False
    assert document["stats"]["messages"] > 0


def test_redaction_hides_what_was_read_and_addresses():
    finding = {
        "type": "finding", "code": "CL-MAGIC", "message": "magic 10.1.2.3", "path": "a",
        "expected": None, "found": "order-77", "position": 3,
    }  # fmt: skip
    change = {"type": "change", "path": "a", "why": "tombstone", "keys": "order-77", "messages": 3}
    document = {
        "verify": {"groups": [{"first": [finding]}]},
        "plan": {"rows": [change]},
        "journals": [{"rows": [change]}],
        "groups": [{"group": "10.1.2.3@77", "lag": 1}],
    }
    assert redacted(document, frozenset()) is document
    shown = redacted(document, frozenset({"hosts"}))
    assert "order-77" not in json.dumps(shown)
    assert "10.1.2.3" not in json.dumps(shown)
    assert shown["verify"]["groups"][0]["first"][0]["redacted"] == ["found"]
    assert shown["plan"]["rows"][0]["messages"] == 3
    assert "10.1.2.3@77" in json.dumps(redacted(document, frozenset({"keys"})))


def test_every_sentence_can_be_redacted():
    from rmqtool.check.catalogue import CATALOGUE

    for code in CATALOGUE:
        row = {"type": "finding", "code": code, "message": "secret", "expected": "secret", "found": "secret"}
        document = {"verify": {"groups": [{"first": [row]}]}, "plan": {"rows": []}, "journals": []}
        assert "secret" not in json.dumps(redacted(document, frozenset({"keys"})))


def test_long_lists_are_cut_and_it_is_said():
    left: dict[str, int] = {}
    content = {
        "queues": [{"x": [1]}] * (MOST + 7),
        "few": [1, 2],
        "table": {str(n): n for n in range(MOST + 1)},
    }
    cut = bounded(content, left)
    assert (len(cut["queues"]), cut["few"], len(cut["table"])) == (MOST, [1, 2], MOST)
    assert left == {"queues": 7, "table": 1}


def test_a_long_log_is_folded(tmp_path):
    log = HandmadeLog(segment_size=1024)
    for _ in range(60 * 6):
        log.put("T", b"x" * 60)
    paths = log.write(tmp_path / "store" / "commitlog")
    assert len(paths) > 50
    damage_file(paths[30], overwrite, 200, b"\xff" * 60)
    found, content, document = made(tmp_path / "store", tmp_path / "r.html")
    drawn = [int(value) for name, key, value in found.attributes if (name, key) == ("button", "data-row")]
    assert 30 in drawn
    assert {0, len(paths) - 1} <= set(drawn)
    assert len(drawn) < len(paths)
    assert "segments without damage" in content
    assert len(document["map"]["rows"]) == len(paths)


def test_a_store_without_messages(tmp_path):
    (tmp_path / "store" / "commitlog").mkdir(parents=True)
    (tmp_path / "store" / "config").mkdir()
    found, _, document = made(tmp_path / "store", tmp_path / "r.html")
    assert document["stats"]["messages"] == 0
    assert "There are no segments." in found.text


def test_the_page_is_a_function_of_the_document(tmp_path, golden):
    _, content, document = made(golden("v533-basic").path, tmp_path / "r.html")
    assert page(drop(document, "schema"), zone_of("UTC")).decode() == content
