"""What `recover` leaves as it is: zeros that a client may have sent, a hole that no record fits into."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from fixtures.stores import HandmadeStore
from formats.commitlog import encode_message
from tests.helpers import rmq

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("value", ["a\0b", "a\0\0\0\0\0\0\0b"])
def test_zeros_inside_of_a_value_are_no_damage_to_any_command(value: str, tmp_path: Path) -> None:
    store = HandmadeStore()
    for number in range(30):
        store.put("Orders", b"body %d" % number, properties={"note": value if number == 7 else "-"})
    store.write(tmp_path / "store")
    assert rmq("recover", store.root, "--json").exit_code == 0
    assert '"changes":0' in rmq("recover", store.root, "--json").stdout
    assert rmq("doctor", store.root, "--as-version", "5.3.3").exit_code == 0
    reported = rmq("verify", store.root, "--format", "ndjson")
    codes = [json.loads(line).get("code") for line in reported.stdout.splitlines()]
    assert (reported.exit_code, "CL-NUL-VALUE" in codes) == (0, True)


@pytest.mark.share
@pytest.mark.parametrize("value", ["a" + "\0" * 8 + "b", "\0b", "a\0"])
def test_other_zeros_go_and_nobody_finds_them_afterwards(value: str, tmp_path: Path) -> None:
    store = HandmadeStore()
    for number in range(30):
        store.put("Orders", b"body %d" % number, properties={"note": value if number == 7 else "-"})
    store.write(tmp_path / "store")
    assert "CL-NUL " in rmq("verify", store.root).stdout
    assert rmq("doctor", store.root, "--as-version", "5.3.3").exit_code == 1
    assert rmq("recover", store.root, "--output", tmp_path / "out", "--apply").exit_code == 0
    assert rmq("verify", tmp_path / "out").exit_code == 0


@pytest.mark.parametrize("count", [5, 60])
def test_bytes_in_front_of_the_first_record_of_a_segment(count: int, tmp_path: Path) -> None:
    store = HandmadeStore()
    for number in range(90):
        store.put("Orders", b"a body that is somewhat longer %d" % number)
    store.write(tmp_path / "store")
    one = store.inside(1)[0]
    least = len(encode_message("T", b""))
    facts = {"physical_offset": one.offset + count, "store_timestamp": one.time}
    data = encode_message("T", bytes(one.size - count - least), **facts)  # type: ignore[arg-type]
    store.patch(store.segment(one.offset)[0], 0, b"\x77" * count + data)
    for more in ((), ("--output", tmp_path / "out", "--apply")):
        reported = rmq("recover", store.root, *more)
        assert reported.exit_code == 1
        assert f"no record fits into the {count} bytes at offset {one.offset} of the log" in reported.stderr
    assert not (tmp_path / "out").exists()
