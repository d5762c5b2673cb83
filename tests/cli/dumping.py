"""What the tests of `dump` share: rows by Java's expectations, and bodies taken from the files directly."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

from formats.commitlog import Message
from tests.helpers import Result, rmq

if TYPE_CHECKING:
    from pathlib import Path

    import fixtures

NDJSON = ("--format", "ndjson")


def messages(store: Path, *options: object) -> list[dict[str, Any]]:
    """Rows of type `message` of a clean dump."""
    result = rmq("dump", store, *NDJSON, *options)
    assert result.exit_code == 0, result.stderr
    return result.of_type("message")


def offsets(result: Result | list[dict[str, Any]]) -> list[int]:
    rows = result if isinstance(result, list) else result.of_type("message")
    return [row["physical_offset"] for row in rows]


def records(opened: fixtures.Golden) -> list[dict[str, Any]]:
    """Java's records in physical order."""
    return sorted(opened.expected["records"], key=lambda record: record["physicalOffset"])


def keys_of(record: dict[str, Any]) -> list[str]:
    return [key for key in (record["keys"] or "").split(" ") if key]


def stored(root: Path, physical_offset: int) -> Any:
    """The parsed record at a physical offset, straight from its file."""
    for path in sorted((root / "commitlog").iterdir(), reverse=True):
        if int(path.name) <= physical_offset:
            raw = path.read_bytes()[physical_offset - int(path.name) :]
            return Message.parse_exact(raw[: int.from_bytes(raw[:4], "big")])
    raise AssertionError(physical_offset)


def raw_record(root: Path, record: dict[str, Any]) -> bytes:
    return bytes(Message.build(stored(root, record["physicalOffset"])))


def plain_body(root: Path, record: dict[str, Any]) -> bytes:
    """The body of a record that is not compressed or compressed by zlib."""
    body = bytes(stored(root, record["physicalOffset"]).body)
    flags = record["sysFlag"]
    if not flags & 1:
        return body
    assert flags & 0x700 in {0, 0x300}
    return zlib.decompress(body)


def assert_one_line(result: Result, exit_code: int) -> None:
    """An error: nothing on standard output, one clear line on the other, no traceback."""
    assert result.exit_code == exit_code, result.stderr
    assert result.stdout == ""
    assert result.stderr.startswith("rmqtool: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr
    assert "internal error" not in result.stderr
