"""The longest front of a broken table: cut anywhere, it loads and holds what stood whole before the cut."""

from __future__ import annotations

import json

import pytest

from rmqtool.repair.config_salvage import valid_prefix

TOPICS = {
    "dataVersion": {"counter": 3, "timestamp": 1},
    "topicConfigTable": {
        f"topic-{number}": {"topicName": f'topic-{number} "{{', "perm": number, "attributes": {"a": [1, {}]}}
        for number in range(5)
    },
}
OFFSETS = {"offsetTable": {"T@g": {"0": 1234, "1": 5}, "U@g": {"0": 77}, "%RETRY%g@g": {}}}


def part_of(part: object, whole: object, levels: int) -> bool:
    """Whether every entry of `part` is one of `whole`, those below `levels` entirely."""
    if not isinstance(part, dict) or not isinstance(whole, dict) or not levels:
        return part == whole
    return all(key in whole and part_of(value, whole[key], levels - 1) for key, value in part.items())


@pytest.mark.parametrize(("table", "levels"), [(TOPICS, 2), (OFFSETS, 3)])
@pytest.mark.parametrize("indent", [None, 1])
@pytest.mark.parametrize("rest", [b"", b"\0\0\0", b"\xff\xfe", b" off"])
def test_a_table_cut_anywhere(table: dict[str, object], levels: int, indent: int | None, rest: bytes) -> None:
    raw = json.dumps(table, indent=indent).encode()
    before = -1
    for size in range(len(raw)):
        kept, data = valid_prefix(raw[:size] + rest, levels)
        assert kept >= before or rest
        before = kept
        if data:
            assert part_of(json.loads(data), table, levels)
    assert valid_prefix(raw + rest, levels) == (len(raw), raw)
    assert json.loads(valid_prefix(raw[: raw.rindex(b"}") - 1] + rest, levels)[1])


def test_half_a_number_is_none() -> None:
    assert valid_prefix(b'{"offsetTable":{"T@g":{0:12,1:34', 3) == (27, b'{"offsetTable":{"T@g":{0:12}}}')
    assert valid_prefix(b'{"offsetTable":{"T@g":{0:12,1:34,', 3)[1] == b'{"offsetTable":{"T@g":{0:12,1:34}}}'


@pytest.mark.parametrize(
    "raw", [b"", b"\0" * 9, b"garbage", b"]", b"12", b'"x"', b":", b"{,", b'{"a" 1}', b"[}"]
)
def test_nothing_comes_of_nothing(raw: bytes) -> None:
    kept, data = valid_prefix(raw, 2)
    assert (kept, data) == (0, b"")


def test_depth_and_length_cost_no_more_than_the_bytes() -> None:
    assert valid_prefix(b'{"a":' * 100_000, 2) == (0, b"")
    assert valid_prefix(b'{"a":[' + b"1," * 300_000, 3)[0] == 600_005
    assert valid_prefix(b'{"a":"' + b"\\" * 500_001, 3) == (0, b"")
