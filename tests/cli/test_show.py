"""`rmqtool show`: one record in full, against what Java said about it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from formats.commitlog import encode_message
from tests.golden.comparison import record_differences
from tests.helpers import rmq

SNAPSHOTS = Path(__file__).with_name("snapshots")
STORES = [
    "v470-basic",
    "v498-basic",
    "v498-compressed",
    "v498-tx",
    "v533-batchcq",
    "v533-ipv6",
    "v533-props-crc",
    "v533-v2",
]


def show(store, target, *options):
    return rmq("show", store, target, *options)


def document(store, target, *options):
    result = show(store, target, "--json", *options)
    reported = json.loads(result.stdout)
    assert reported["schema"] == "rmqtool.show/1"
    return result.exit_code, reported


@pytest.mark.share
@pytest.mark.parametrize("name", STORES)
def test_columns_fields_and_bytes_are_those_of_java(golden, name, store_unchanged):
    found = golden(name)
    store_unchanged(found.path)
    for expected in found.expected["records"][::29]:
        code, reported = document(found.path, expected["physicalOffset"], "--body-sha256")
        assert code == 0, reported
        assert reported["what"] == "record"
        assert record_differences(reported, expected, found.release) == []
        fields = reported["fields"]
        assert sum(one["length"] for one in fields) == expected["storeSize"]
        assert fields[0]["position"] == reported["position"]
        values = {one["name"]: one["value"] for one in fields}
        assert values["queue_offset"] == expected["queueOffset"]
        assert values["topic"] == expected["topic"]
        assert values["body_crc"] == expected["bodyCRC"]
        raw = "".join(one["hex"] for one in fields)
        log = found.path / "commitlog" / f"{reported['segment']:020d}"
        held = log.read_bytes()[reported["position"] : reported["position"] + expected["storeSize"]]
        assert bytes.fromhex(raw) == held


def test_all_forms_of_an_offset_lead_to_the_same_record(golden):
    found = golden("v498-basic")
    one = next(item for item in found.expected["records"] if item["physicalOffset"] > 32768)
    offset = one["physicalOffset"]
    forms = [
        offset,
        hex(offset),
        f"32768:{offset - 32768}",
        f"{32768:020d}:{hex(offset - 32768)}",
        one["offsetMsgId"],
    ]
    reported = [document(found.path, form) for form in forms]
    assert {(code, item["what"], item["physical_offset"]) for code, item in reported} == {
        (0, "record", offset)
    }


def test_a_unique_id_is_decoded_and_found(golden):
    found = golden("b533-full")
    copies = [one for one in found.expected["messages"] if one["properties"].get("KEYS") == "retry-dead"]
    key = copies[0]["properties"]["UNIQ_KEY"]
    code, reported = document(found.path, key)
    assert code == 0
    assert reported["target"]["kind"] == "uniq_key"
    assert reported["matches"] == sorted(reported["matches"])
    assert {one["commitLogOffset"] for one in copies} <= set(reported["matches"])
    assert reported["id"]["host"] == "fd00::2"
    assert reported["id"]["time_of_month"] == "day 21, 09:24:16.672"
    assert "more with this id" in reported["notes"][0]


def test_the_host_of_an_id_is_reported_and_not_compared(golden):
    found = golden("v498-basic")
    one = found.expected["records"][5]
    foreign = "01020304" + one["offsetMsgId"][8:]
    code, reported = document(found.path, foreign.lower())
    assert (code, reported["physical_offset"]) == (0, one["physicalOffset"])
    assert "1.2.3.4" in reported["notes"][0]


def test_unit_and_index_items_stand_beside_the_record(golden):
    found = golden("v498-basic")
    units = {
        unit[1]: (queue["topic"], queue["queue"], *unit)
        for queue in found.expected["cqUnits"]
        for unit in queue["units"]
    }
    for expected in found.expected["records"][::31]:
        _, reported = document(found.path, expected["physicalOffset"])
        unit = reported["unit"]
        place = (
            unit["topic"],
            unit["queue_id"],
            unit["slot"],
            unit["physical_offset"],
            unit["size"],
            unit["tags_code"],
        )
        assert place == units[expected["physicalOffset"]]
        assert unit["agrees"] is True
        keys = dict.fromkeys([expected["uniqKey"]] if expected["uniqKey"] else [])
        keys |= dict.fromkeys(key for key in (expected["keys"] or "").split(" ") if key)
        assert dict.fromkeys(item["key"] for item in reported["index_items"]) == keys
        assert reported["index_absent"] == []


def test_batch_unit_and_the_messages_inside(golden):
    found = golden("v533-batchcq")
    batch = next(one for one in found.expected["records"] if one["properties"].get("INNER_NUM") == "30")
    code, reported = document(found.path, batch["physicalOffset"])
    assert code == 0
    assert reported["unit"]["kind"] == "batchconsumequeue"
    assert (reported["unit"]["base_offset"], reported["unit"]["batch_size"]) == (batch["queueOffset"], 30)
    assert [one["queue_offset"] for one in reported["inner_messages"]] == [
        batch["queueOffset"] + number for number in range(30)
    ]
    page = show(found.path, batch["physicalOffset"]).stdout
    assert "a batch of 30 messages" in page
    assert "Messages inside" in page


def test_a_position_inside_shows_the_record_around_it(golden):
    found = golden("v498-basic")
    one = found.expected["records"][7]
    code, reported = document(found.path, one["physicalOffset"] + 11)
    assert (code, reported["what"], reported["physical_offset"]) == (0, "inside", one["physicalOffset"])
    assert reported["asked_offset"] == one["physicalOffset"] + 11
    assert "11 bytes inside the record" in reported["headline"]


def test_where_no_record_is(golden):
    found = golden("v498-basic")
    offset, length = found.expected["blanks"][0]
    last = found.expected["records"][-1]
    for target, what in (
        (offset, "blank"),
        (offset + length - 1, "blank"),
        (last["physicalOffset"] + last["storeSize"], "zero"),
        (1 << 40, "no_file"),
    ):
        code, reported = document(found.path, target)
        assert (code, reported["what"]) == (1, what)
        assert reported["headline"].startswith(f"No record at offset {target}")
    code, reported = document(found.path, "0" * 31 + "7")
    assert (code, reported["what"]) == (1, "nothing")


def test_below_the_log_and_in_a_hole(golden, fresh_golden):
    expired = golden("v498-expired-head").path
    assert "older files were deleted" in show(expired, 5).stdout
    store = fresh_golden("v498-basic").path
    (store / "commitlog" / "00000000000000032768").unlink()
    result = show(store, 40000)
    assert result.exit_code == 1
    assert "the file that held it is missing" in result.stdout


def damaged_store(tmp_path, change):
    """Three records, the second changed by `change(bytearray, start)`; their offsets."""
    data, starts = bytearray(), []
    for number in range(3):
        starts.append(len(data))
        data += encode_message(
            "T",
            b"body-%d" % number,
            b"KEYS\x01k\x02",
            physical_offset=len(data),
            queue_offset=number,
            store_timestamp=1_700_000_000_000 + number,
            born_timestamp=1_700_000_000_000,
        )
    change(data, starts[1])
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / f"{0:020d}").write_bytes(bytes(data).ljust(4096, b"\0"))
    return tmp_path, starts


def test_a_bad_body_is_shown_and_reported(tmp_path):
    def change(data, start):
        data[start + 88] ^= 1

    store, starts = damaged_store(tmp_path, change)
    code, reported = document(store, starts[1])
    assert (code, reported["what"], reported["crc"]) == (1, "record", "bad")
    crc = next(one for one in reported["fields"] if one["name"] == "body_crc")
    assert crc["meaning"].startswith("BAD: the body has ")
    assert document(store, starts[0])[0] == 0


def test_a_bad_frame_is_shown_as_far_as_it_makes_sense(tmp_path, store_unchanged):
    def change(data, start):
        data[start + 84 : start + 88] = b"\x00\x10\x00\x00"

    store, starts = damaged_store(tmp_path, change)
    code, reported = document(store_unchanged(store), starts[1])
    assert (code, reported["what"], reported["reason"]) == (1, "damaged", "bad_body_length")
    assert reported["found"] == 1 << 20
    assert reported["expected"] < 200
    assert [one["name"] for one in reported["fields"]][-1] == "body_length"
    assert (reported["nearest_before"], reported["nearest_after"]) == (starts[0], starts[2])
    page = show(store, starts[1])
    assert page.exit_code == 1
    assert "bad_body_length" in page.stdout
    assert "store_timestamp" in page.stdout
    raw = show(store, starts[1], "--format", "raw")
    assert (raw.exit_code, raw.stdout) == (1, "")


def test_a_unit_that_points_elsewhere_is_reported(fresh_golden):
    found = fresh_golden("v498-basic")
    one = next(
        item for item in found.expected["records"] if item["topic"] == "TopicA" and item["queueId"] == 0
    )
    path = found.path / "consumequeue" / "TopicA" / "0" / f"{0:020d}"
    data = bytearray(path.read_bytes())
    at = one["queueOffset"] * 20
    data[at + 8 : at + 12] = (one["storeSize"] + 1).to_bytes(4, "big")
    path.write_bytes(data)
    code, reported = document(found.path, one["physicalOffset"])
    assert code == 1
    assert reported["unit"]["agrees"] is False
    assert reported["unit"]["differences"] == [
        {"field": "size", "expected": one["storeSize"], "found": one["storeSize"] + 1}
    ]
    assert "DISAGREES" in show(found.path, one["physicalOffset"]).stdout


def test_raw_and_hex(golden):
    from tests.helpers import rmq_process

    found = golden("v498-basic")
    one = found.expected["records"][0]
    result = show(found.path, one["physicalOffset"], "--format", "hex")
    assert result.exit_code == 0
    held = (found.path / "commitlog" / f"{0:020d}").read_bytes()[: one["storeSize"]]
    shown = "".join(line[12:59].replace(" ", "") for line in result.stdout.splitlines())
    assert bytes.fromhex(shown) == held
    assert rmq_process("show", found.path, 0, "--format", "hex").stdout == result.stdout


def test_rows(golden):
    found = golden("v498-basic")
    offset = found.expected["records"][3]["physicalOffset"]
    result = show(found.path, offset, "--format", "ndjson")
    assert result.exit_code == 0
    kinds = [row["type"] for row in result.rows]
    assert kinds[0] == "message"
    assert kinds[-1] == "summary"
    assert {"field", "unit", "index_item"} <= set(kinds)
    assert result.rows[-1]["schema"] == "rmqtool.show/1"
    table = show(found.path, offset, "--format", "csv").stdout.splitlines()
    assert table[0] == "name,position,length,hex,value,meaning"
    assert table[1].startswith("total_size,")


@pytest.mark.parametrize("form", ["table", "json", "ndjson", "csv"])
def test_redaction_hides_the_bytes_too(tmp_path, form):
    record = encode_message(
        "T",
        b"secret-body",
        b"KEYS\x01secret-key\x02UNIQ_KEY\x01secret-id\x02COLOR\x01secret-red\x02",
        born_host=(bytes([9, 8, 7, 6]), 1234),
        store_host=(bytes([9, 8, 7, 5]), 1235),
    )
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / f"{0:020d}").write_bytes(record.ljust(4096, b"\0"))
    shown = show(tmp_path, 0, "--format", form, "--redact", "body,keys,hosts,properties")
    assert shown.exit_code == 0
    for secret in (b"secret-body", b"secret-key", b"secret-id", b"secret-red", b"\x09\x08\x07"):
        text = shown.stdout.replace(" ", "")
        assert secret.hex() not in text
        assert secret.decode("latin-1") not in shown.stdout
    assert "9.8.7.6" not in shown.stdout
    assert show(tmp_path, 0, "--format", "raw", "--redact", "body").exit_code == 2


def test_bodies_as_asked(golden):
    found = golden("v498-compressed")
    one = next(item for item in found.expected["records"] if item["sysFlag"] & 1)
    _, reported = document(found.path, one["physicalOffset"], "--body-sha256", "--body", "hex")
    assert len(reported["body_hex"]) == 2 * one["plainLength"]
    assert reported["plain_body_sha256"] == one["plainSha256"]
    _, none = document(found.path, one["physicalOffset"], "--body", "none")
    assert next(item for item in none["fields"] if item["name"] == "body")["hex"] is None
    assert not any(name.startswith("body_utf8") for name in none)


def test_the_page_fits_80_columns(golden):
    found = golden("b533-full")
    result = show(found.path, 60369, "--tz", "UTC")
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert result.stdout == (SNAPSHOTS / "show-b533-full.txt").read_text()
    coloured = show(found.path, 60369, "--color", "always", "--tz", "+08:00")
    assert "\x1b[" in coloured.stdout
    assert "+08:00" in coloured.stdout


def test_control_characters_never_reach_the_terminal(tmp_path):
    record = encode_message("[/x]\x1b[2J", b"\x1b]0;x\x07", b"KEYS\x01\x1b[31m\x02\x1b\x01\x9b\x02")
    (tmp_path / "commitlog").mkdir()
    (tmp_path / "commitlog" / f"{0:020d}").write_bytes(record.ljust(4096, b"\0"))
    for options in ([], ["--body"], ["--format", "hex"], ["--format", "csv"], ["--json"]):
        result = show(tmp_path, 0, *options)
        assert result.exit_code == 0
        assert "\x1b" not in result.stdout + result.stderr
        assert "\x9b" not in result.stdout


@pytest.mark.parametrize(
    "target",
    ["zz", "", "-5", "1.5", "0x", "7F00", "f" * 31, "g" * 32, "1:2:3", "99999999999999999999", "32769:1"],
)
def test_bad_targets(golden, target):
    result = show(golden("v498-basic").path, target)
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert result.stdout == ""


def test_bad_stores(tmp_path, golden):
    assert show(tmp_path / "missing", 0).exit_code == 2
    assert show(tmp_path, 0).exit_code == 2
    assert rmq("show", tmp_path).exit_code == 2
    assert show(golden("v498-basic").path / "consumequeue", 0).exit_code == 2
    dledger = show(golden("b533-dledger").path, 0)
    assert dledger.exit_code == 6
    assert len(dledger.stderr.splitlines()) == 1


@pytest.mark.parametrize("size", [0, 1, 7, 8, 40, 90, 5000])
def test_noise_gives_an_answer(tmp_path, size):
    (tmp_path / "commitlog").mkdir()
    noise = bytes((number * 89 + 3) % 251 for number in range(size))
    (tmp_path / "commitlog" / f"{0:020d}").write_bytes(noise)
    for offset in (0, size // 2, max(size - 1, 0), size, size + 1):
        for form in ("table", "json"):
            result = show(tmp_path, offset, "--format", form)
            assert result.exit_code == 1, (offset, result.stderr)
            assert result.stderr == ""
