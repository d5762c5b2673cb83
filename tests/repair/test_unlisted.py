"""Whole records whose lists of further queues are damaged, in bytes that no CRC covers.

What consumers know of a light queue are its entries: none of them may move, and no message may leave it.
"""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING

import pytest

from fixtures import strict
from fixtures.goldens import Golden, open_golden
from tests.helpers import rmq

if TYPE_CHECKING:
    from pathlib import Path

NAMES, OFFSETS = b"INNER_MULTI_DISPATCH\x01", b"INNER_MULTI_QUEUE_OFFSET\x01"
GOLDENS = ("v498-lmq", "v533-lmq")


def listing(golden: Golden) -> list[strict.Record]:
    """Records with both lists, in the order of the log."""
    return [one for _, one in sorted(strict.carve(golden.path).items()) if OFFSETS in one.raw]


def overwrite(golden: Golden, offset: int, data: bytes) -> None:
    base = next(base for base, there in strict.segments(golden.path) if base <= offset < base + len(there))
    with (golden.path / f"commitlog/{base:020d}").open("r+b") as file:
        file.seek(offset - base)
        file.write(data)


def recovered(golden: Golden, target: Path) -> dict[str, object]:
    """The summary; the plan was carried out to `target`."""
    conf = ("--store-config", golden.config_path)
    done = rmq("recover", golden.path, "--output", target, "--apply", "--json", *conf)
    assert done.exit_code == 0, done.stderr
    summary: dict[str, object] = json.loads(done.stdout)["summary"]
    again = rmq("recover", target, "--json", *conf)
    assert not json.loads(again.stdout)["rows"]
    return summary


def places(root: Path) -> dict[tuple[str, str, int, int], int]:
    """Where each entry of each queue leads."""
    return {key: one.offset for key, one in strict.entries(root).items()}


@pytest.mark.share
@pytest.mark.parametrize("name", GOLDENS)
@pytest.mark.parametrize("seed", range(8))
def test_no_entry_moves_whatever_byte_of_the_lists_is_wrong(name: str, seed: int, tmp_path: Path) -> None:
    golden, chance = open_golden(name, tmp_path), random.Random(seed)
    before = places(golden.path)
    for one in chance.sample(listing(golden), 3):
        begin, end = one.raw.index(NAMES), one.raw.index(OFFSETS) + len(OFFSETS)
        at = chance.choice([place for place in range(begin, end) if one.raw[place] not in b"\x01\x02,"])
        overwrite(golden, one.offset + at, bytes([one.raw[at] ^ 1 << chance.randrange(8)]))
    recovered(golden, tmp_path / "out")
    assert places(tmp_path / "out") == before


@pytest.mark.share
@pytest.mark.parametrize("name", GOLDENS)
@pytest.mark.parametrize("lost", ["name", "offsets", "both", "end of one, begin of the other"])
@pytest.mark.parametrize("fill", [b"\0", b"x", b"\xf0"])
def test_lists_are_made_again_from_their_entries(name: str, lost: str, fill: bytes, tmp_path: Path) -> None:
    golden = open_golden(name, tmp_path)
    before, one = places(golden.path), listing(golden)[20]
    names, offsets = one.raw.index(NAMES), one.raw.index(OFFSETS)
    start, end = {
        "name": (names, names + 12),
        "offsets": (offsets + 3, offsets + len(OFFSETS) + 1),
        "both": (names + 4, offsets + 9),
        "end of one, begin of the other": (offsets - 12, offsets + 6),
    }[lost]
    overwrite(golden, one.offset + start, fill * (end - start))
    recovered(golden, tmp_path / "out")
    assert places(tmp_path / "out") == before
    after = strict.carve(tmp_path / "out")[one.offset]
    further = {name.decode().rstrip("\x01") for name in (NAMES, OFFSETS)}
    assert {key: after.properties[key] for key in further} == {key: one.properties[key] for key in further}
    assert (after.body, after.size, after.properties["KEYS"]) == (one.body, one.size, one.properties["KEYS"])


@pytest.mark.share
@pytest.mark.parametrize("name", GOLDENS)
@pytest.mark.parametrize("room", [False, True], ids=["no trace of a list", "no room for them"])
def test_an_entry_that_is_dropped_is_named(name: str, room: bool, tmp_path: Path) -> None:
    golden = open_golden(name, tmp_path)
    before, one = places(golden.path), listing(golden)[20]
    begin, end = one.raw.index(NAMES) - 1, one.raw.index(OFFSETS) + len(OFFSETS) + 1
    if room:
        end -= len(OFFSETS) + 2
        overwrite(golden, one.offset + begin, b"\x02other\x01".ljust(end - begin, b"x"))
    else:
        overwrite(golden, one.offset + begin, b"x" * (end - begin))
    summary = recovered(golden, tmp_path / "out")
    after = places(tmp_path / "out")
    moved = {key for key in before if after.get(key) != before[key]}
    assert moved == {key for key, offset in before.items() if offset == one.offset and key[1] != one.topic}
    for _, topic, queue_id, slot in moved:
        assert any(
            words.startswith(f"queue {topic}/{queue_id}: the entry at queue offset {slot} leads to a message")
            for words in summary["notes"]  # type: ignore[attr-defined]
        ), summary["notes"]
