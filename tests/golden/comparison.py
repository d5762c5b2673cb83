"""Rows of ``rmqtool dump`` against what the real RocketMQ said about the same bytes.

Each function returns one line per difference, so that a failure names every field that is wrong at once.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Row = dict[str, Any]

DUMP_OPTIONS = ("--format", "ndjson", "--body", "none", "--body-sha256")

RECORD_FIELDS = {
    "physicalOffset": "physical_offset",
    "storeSize": "store_size",
    "topic": "topic",
    "queueId": "queue_id",
    "queueOffset": "queue_offset",
    "flag": "flag",
    "sysFlag": "sys_flag",
    "bornTimestamp": "born_timestamp",
    "storeTimestamp": "store_timestamp",
    "reconsumeTimes": "reconsume_times",
    "preparedTransactionOffset": "prepared_transaction_offset",
    "bodyCRC": "body_crc",
    "bodyLength": "body_length",
    "bodySha256": "body_sha256",
    "offsetMsgId": "offset_msg_id",
    "uniqKey": "uniq_key",
    "tags": "tags",
}
MESSAGE_FIELDS = {
    "commitLogOffset": "physical_offset",
    "storeSize": "store_size",
    "topic": "topic",
    "queueId": "queue_id",
    "queueOffset": "queue_offset",
    "flag": "flag",
    "bornHost": "born_host",
    "bornTimestamp": "born_timestamp",
    "storeHost": "store_host",
    "storeTimestamp": "store_timestamp",
    "reconsumeTimes": "reconsume_times",
    "preparedTransactionOffset": "prepared_transaction_offset",
    "bodyCRC": "body_crc",
    "offsetMsgId": "offset_msg_id",
    "properties": "properties",
}
MAGIC = {-626843481: "V1", -626843477: "V2"}
TRANSACTION = {0x0: "none", 0x4: "prepared", 0x8: "commit", 0xC: "rollback"}
COMPRESSION = {0x000: "zlib", 0x100: "lz4", 0x200: "zstd", 0x300: "zlib"}
COMPRESSED = 0x1
DROPS_VALUES_WITH_0X01 = ("4.7.0", "4.9.0")


def record_differences(row: Row, record: Row, release: str) -> list[str]:
    """A dumped message against a record as the Java store reads it (all of it, body as stored)."""
    where = f"@{record['physicalOffset']}"
    lines = list(_field_differences(row, record, RECORD_FIELDS, where))
    for theirs, ours in (("bornHost", "born_host"), ("storeHost", "store_host")):
        address, port = record[theirs]
        expected = ipaddress.ip_address(address), port
        if _host(row[ours]) != expected:
            lines.append(f"{where} {ours}: {row[ours]} is not {expected}")
    properties = row["properties"]
    if release in DROPS_VALUES_WITH_0X01:
        known = record["properties"]
        properties = {
            name: value for name, value in properties.items() if "\x01" not in value or name in known
        }
    lines += _unequal(f"{where} properties", properties, record["properties"])
    lines += _unequal(f"{where} magic", row["magic"], MAGIC[record["magic"]])
    lines += _unequal(f"{where} keys", row.get("keys") or [], split_keys(record["keys"]))
    lines += _place_differences(row, where)
    lines += _unequal(f"{where} transaction", row["transaction"], TRANSACTION[record["sysFlag"] & 0xC])
    lines += _body_differences(row, record["sysFlag"], record.get("plainSha256"), where)
    if "plainLength" in record:
        lines += _unequal(f"{where} plain_length", row["plain_length"], record["plainLength"])
    return lines


def message_differences(row: Row, message: Row, release: str) -> list[str]:
    """A dumped message against one that a client pulled: body decompressed, some flags cleared."""
    where = f"@{message['commitLogOffset']}"
    lines = list(_field_differences(row, message, MESSAGE_FIELDS, where))
    identity = row["uniq_key"] or row["offset_msg_id"]
    lines += _unequal(f"{where} msgId", identity, message["msgId"])
    cleared = COMPRESSED if release >= "5.3.2" else 0
    lines += _unequal(f"{where} sys_flag", row["sys_flag"] & ~cleared, message["sysFlag"] & ~cleared)
    compressed = bool(row["sys_flag"] & COMPRESSED)
    plain = "plain_body_sha256" if compressed else "body_sha256"
    lines += _unequal(f"{where} {plain}", row[plain], message["bodySha256"])
    length = row["plain_length"] if compressed else row["body_length"]
    lines += _unequal(f"{where} length", length, message["bodyLength"])
    lines += _unequal(f"{where} tags", row["tags"], message["properties"].get("TAGS"))
    lines += _unequal(f"{where} keys", row.get("keys") or [], split_keys(message["properties"].get("KEYS")))
    lines += _place_differences(row, where)
    lines += _body_differences(row, row["sys_flag"], None, where)
    return lines


def split_keys(keys: str | None) -> list[str]:
    """The single keys of KEYS, as `IndexService#buildIndex` takes them: separated by spaces, none empty."""
    return [key for key in (keys or "").split(" ") if key]


def java_hash(text: str) -> int:
    """`String#hashCode`, written down here once more so that expectations do not depend on `formats`."""
    value = 0
    units = text.encode("utf-16-be", "surrogatepass")
    for at in range(0, len(units), 2):
        value = (31 * value + int.from_bytes(units[at : at + 2])) & 0xFFFFFFFF
    return value - (1 << 32) if value >> 31 else value


def index_hash(topic: str, key: str) -> int:
    """`IndexFile#indexKeyHashMethod` of ``topic#key``: the absolute value, 0 where there is none."""
    value = abs(java_hash(f"{topic}#{key}"))
    return 0 if value == 1 << 31 else value


def _field_differences(row: Row, truth: Row, fields: dict[str, str], where: str) -> Iterator[str]:
    for theirs, ours in fields.items():
        yield from _unequal(f"{where} {ours}", row.get(ours), truth[theirs])


def _place_differences(row: Row, where: str) -> Iterable[str]:
    """Segment, position and path say where the record is; the stored offset shows only when it is another."""
    yield from _unequal(
        f"{where} segment + position", row["segment"] + row["position"], row["physical_offset"]
    )
    yield from _unequal(f"{where} file", row["path"].rpartition("/")[2], f"{row['segment']:020d}")
    if "stored_physical_offset" in row:
        yield f"{where} stored_physical_offset: {row['stored_physical_offset']}"


def _body_differences(row: Row, sys_flag: int, plain_sha256: str | None, where: str) -> Iterable[str]:
    compression = COMPRESSION[sys_flag & 0x700] if sys_flag & COMPRESSED else None
    yield from _unequal(f"{where} compression", row["compression"], compression)
    if plain_sha256 is not None:
        yield from _unequal(f"{where} plain_body_sha256", row["plain_body_sha256"], plain_sha256)
    crc = "ok" if row["body_length"] > 0 else "absent"
    if row["crc"] not in {crc, "ok"}:
        yield f"{where} crc: {row['crc']}"


def _host(text: str) -> tuple[ipaddress.IPv4Address | ipaddress.IPv6Address, int]:
    address, _, port = text.rpartition(":")
    return ipaddress.ip_address(address.strip("[]")), int(port)


def _unequal(what: str, found: object, expected: object) -> list[str]:
    return [] if found == expected else [f"{what}: {found!r} is not {expected!r}"]
