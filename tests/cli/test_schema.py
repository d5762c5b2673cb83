"""JSON Schemas: each name has one, what commands print is what they say, and what is broken is not."""

from __future__ import annotations

import copy
import json
import re
from typing import TYPE_CHECKING, Any

import pytest
from jsonschema import Draft202012Validator

from rmqtool.cli.commands import COMMANDS
from rmqtool.output.schemas.catalogue import schemas
from tests.cli.conforming import problems, validator
from tests.helpers import rmq
from tests.project.files import sources

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    import fixtures

GOLDEN = {"b533-full": "TopicBasic", "v533-tx": "TopicTx"}
"""stores, and a topic of each"""
ASKED: dict[str, tuple[str, ...]] = {
    "info": (), "info copy": ("--what-to-copy",), "dump": ("--body", "--body-sha256"), "dump files": (),
    "verify": (),
    "doctor": ("--what-if", "delete-consumequeue"), "show": ("0",), "query-key": ("key-0",),
    "query-id": ("7F000001000078BF0000000000000000",),
    "query-offset": ("TOPIC", "0", "min", "-n", "3"), "query-time": ("TOPIC", "0", "0"),
    "tail": (), "stats": ("--by", "topic,hour"), "stats groups": ("--by", "group"),
    "stats old": ("--retention",), "stats twice": ("--duplicates",), "map": (),
    "sql": ("select topic, count(*) as n from messages group by all",), "delayed": (), "half": (),
    "retry": (), "dlq": (), "trace": ("key-0",), "offsets audit": (), "offsets clamp": (),
    "assign": ("TOPIC", "--clients", "a,b", "--join", "c"), "config check": (), "config salvage": (),
    "recover": (), "rebuild": (), "checkpoint show": (), "checkpoint set": (), "store status": (),
    "store groups": (), "tail redacted": ("--redact", "body,keys,hosts,properties", "--body"),
}  # fmt: skip
"""commands about a store with what stands behind it; a word that is not a command only parts two"""
PLACES = {"dump files": "consumequeue"}


def answer(name: str, store: Path, *form: str) -> str:
    command = name if name in COMMANDS else name.rpartition(" ")[0]
    more = [one.replace("TOPIC", GOLDEN[store.parent.name]) for one in ASKED[name]]
    done = rmq(*command.split(), store / PLACES.get(name, "."), *more, *form)
    assert done.exit_code in (0, 1, 3), done.stderr
    return done.stdout


@pytest.fixture(params=GOLDEN)
def store(request: pytest.FixtureRequest, golden: Callable[[str], fixtures.Golden]) -> Path:
    return golden(request.param).path


def test_every_name_in_the_source_has_a_schema() -> None:
    text = "\n".join(path.read_text(encoding="utf-8") for path in sources("rmqtool"))
    names = set(re.findall(r"rmqtool\.[a-z-]+/1\b", text))
    requests = set(re.findall(r'\bChangeRequest\(\s*command="([a-z -]+)"', text))
    plans = {f"rmqtool.{name.replace(' ', '-')}/1" for name in requests}
    assert len(names) > 40
    assert len(plans) > 3
    assert names | plans | {"rmqtool.retry/1", "rmqtool.dlq/1"} == set(schemas())


def test_they_are_schemas_of_the_draft() -> None:
    for schema in schemas().values():
        Draft202012Validator.check_schema(schema)


CONTRACT = {
    "dump message":
        "segment position physical_offset queue_offset prepared_transaction_offset born_timestamp "
        "store_timestamp store_size body_crc queue_id flag sys_flag reconsume_times body_length "
        "plain_length path magic crc topic tags uniq_key born_host store_host offset_msg_id compression "
        "transaction keys properties",
    "dump blank": "path segment position physical_offset length",
    "dump gap": "path position length reason",
    "dump tail": "path position length content",
    "dump unit": "path position slot physical_offset size tags_code state",
    "dump batch_unit":
        "path position physical_offset size tags_code state store_timestamp base_offset batch_size",
    "dump index_header":
        "path begin_timestamp end_timestamp begin_physical_offset end_physical_offset hash_slot_count "
        "index_count",
    "dump index_item": "path number slot key_hash physical_offset time_diff prev",
    "verify finding":
        "code severity path position physical_offset length field expected found message hint topic "
        "queue_id queue_offset",
    "doctor":
        "version version_source versions_considered assumed_settings lock starts refusal mode "
        "start_segment stop_offset stop_reason min_physical_offset max_physical_offset deletes truncates "
        "queues config loss consequences dispatch_lag disk timing_dependent what_if safe_to_start advice "
        "not_looked_at complete verdict already_damaged",
    "query-offset summary": "status min_offset max_offset next_begin_offset complete",
    "query-time summary": "queue_offset broker_queue_offset boundary version complete",
    "store-put ack": "status topic queue_id queue_offset physical_offset offset_msg_id uniq_key",
    "store-groups group": "group topic queue_id offset max_offset lag",
    "store-status": "writer put get dispatch_behind_bytes flush_behind_bytes disk_ratio",
    "store-expire summary": "segments bytes messages",
    "store-load summary": "segments bytes messages",
    "store-bench bench": "work engine body_bytes count seconds per_second",
    "delayed delayed": "topic queue_id level deliver_timestamp overdue_ms physical_offset keys uniq_key",
    "delayed summary": "by_level next_timestamp overdue",
    "half half": "topic group age_ms checks physical_offset transaction_id",
    "retry retry": "group origin_topic origin_msg_id reconsume_times physical_offset",
    "dlq dlq": "group origin_topic origin_msg_id reconsume_times physical_offset",
    "trace step":
        "stage topic queue_id queue_offset physical_offset store_timestamp consumed_by not_consumed_by",
    "diff range": "state from to messages",
    "diff message": "state uniq_key",
    "diff summary": "first_difference verdict keep why",
    "offsets-audit offset": "kind group topic queue_id offset min_offset max_offset lag next_timestamp state",
    "config-check config": "path primary bak loads entries_lost",
    "assign assignment": "client queue_ids",
    "assign move": "queue_id from to",
    "plan": "schema inputs changes",
}  # fmt: skip
"""what scripts rely on: of a document, or of one type of its rows or its summary"""


@pytest.mark.parametrize("place", CONTRACT)
def test_what_scripts_rely_on_is_demanded(place: str) -> None:
    name, _, part = place.partition(" ")
    schema = schemas()[f"rmqtool.{name}/1"]
    if part:
        schema = schema["$defs"]["summary" if part == "summary" else f"row_{part}"]
    assert set(CONTRACT[place].split()) <= set(demanded(schema))


@pytest.mark.share
@pytest.mark.parametrize("name", ASKED)
def test_what_commands_print_validates_and_a_broken_one_does_not(store: Path, name: str) -> None:
    document = json.loads(answer(name, store, "--json"))
    assert problems(document) == []
    schema = schemas()[document["schema"]]
    if "rows" in document:
        document["rows"] = document["rows"][:3]
    for broken in lacking(document, schema):
        assert not validator(document["schema"]).is_valid(broken)


def test_names_are_listed_and_near_ones_named() -> None:
    assert {row["name"] for row in rmq("schema", "--format", "ndjson").of_type("schema")} == set(schemas())
    for given in ("verify", "rmqtool.verify", "rmqtool.verify/1"):
        assert json.loads(rmq("schema", given).stdout) == schemas()["rmqtool.verify/1"]
    wrong = rmq("schema", "verfy")
    assert (wrong.exit_code, wrong.stdout) == (2, "")
    assert "did you mean verify" in wrong.stderr


def lacking(document: dict[str, Any], schema: dict[str, Any]) -> list[dict[str, Any]]:
    """The document without a key that its schema demands, or with a word that it does not know."""
    if "$defs" not in schema:
        return [without(document, (), key) for key in demanded(schema)]
    found = [without(document, ("summary",), key) for key in demanded(schema["$defs"]["summary"])]
    for number, row in enumerate(document["rows"]):
        one = schema["$defs"].get(f"row_{row['type']}")
        keys = () if one is None else demanded(one)
        found += [without(document, ("rows", number), key) for key in keys]
        for key, rule in (one or {}).get("properties", {}).items():
            if ("enum" in rule or "const" in rule) and key in row:
                found.append(copy.deepcopy(document))
                found[-1]["rows"][number][key] = "no such word"
    return found


def demanded(schema: dict[str, Any]) -> list[str]:
    """Required keys, also those that only an answer that was not cut short has."""
    rules = schema.get("allOf", ())
    late = [key for rule in rules for key in rule.get("else", {}).get("required", ())]
    return [*schema["required"], *late]


def test_what_is_put_and_what_is_written_validates(tmp_path: Path) -> None:
    store, replay, plan = tmp_path / "store", tmp_path / "a.replay", tmp_path / "plan.json"
    log = tmp_path / "store.log"
    log.write_text("2026-11-22 10:00:00 WARN main - no such line\n")
    config = tmp_path / "broker.conf"
    config.write_text("mappedFileSizeCommitLog=65536\nmaxHashSlotNum=100\nmaxIndexNum=400\n")
    for words in (
        ["store", "init", store],
        ["store", "put", store, "T", "--body", "x", "--keys", "k"],
        ["store", "get", store, "T", "0", "--group", "G"],
        ["store", "topic", store, "T"],
        ["store", "group", store, "G", "--retry-max", "3"],
        ["store", "groups", store],
        ["store", "status", store],
        ["store", "expire", store],
        ["diff", store, store],
        ["offsets", "diff", store, store],
        ["offsets", "merge", store, store],
        ["export", store, "--to", replay],
        ["store", "load", store, replay],
        ["trace", store, "k"],
        ["explain", log],
        ["salvage", replay, "--output", tmp_path / "carved"],
        ["report", store, "--output", tmp_path / "report.html"],
        ["rebuild", store, "--save-plan", plan],
        ["config", "salvage", store, "--in-place", "--backup", tmp_path / "undo", "--apply"],
        ["undo", tmp_path / "undo", "--apply"],
        ["verify", store, store, "--quick"],
        ["schema"],
    ):
        if "salvage" in words and "config" in words:
            (store / "config" / "topics.json").write_text("{")
            (store / "config" / "topics.json.bak").unlink(missing_ok=True)
        about = ["--store-config", config] if store in words and "diff" not in words else []
        done = rmq(*words, *about, "--json")
        assert done.exit_code in (0, 1), done.stderr
        assert problems(json.loads(done.stdout)) == []
    assert problems(json.loads(plan.read_text())) == []
    assert problems(json.loads((tmp_path / "undo" / "journal.json").read_text())) == []
    broken = json.loads(plan.read_text()) | {"changes": [{"action": "burn"}]}
    assert len(problems(broken)) > 1


def test_lines_of_ndjson_are_rows_and_a_summary(store: Path) -> None:
    *rows, summary = map(json.loads, answer("dump", store, "--format", "ndjson").splitlines())
    parts = schemas()["rmqtool.dump/1"]
    for part, line in [("summary", summary), *(("row", row) for row in rows[:20])]:
        assert Draft202012Validator(parts | {"$ref": f"#/$defs/{part}", **OPEN}).is_valid(line)


OPEN = {"type": "object", "required": [], "properties": {}}
"""in the place of what a whole document has"""


def without(document: dict[str, Any], place: tuple[str | int, ...], key: str) -> dict[str, Any]:
    made: Any = copy.deepcopy(document)
    inner = made
    for step in place:
        inner = inner[step]
    del inner[key]
    return dict(made)
