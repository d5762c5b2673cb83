"""What fastjson takes beyond JSON, as the decoders of 4.9.7 and 5.3.3 did (`test_decoders_interop`)."""

from __future__ import annotations

import time

import pytest

from rmqtool.store.config_json import ParseState, parse_config, parse_table

OBJECT = b'{"offsetTable":{"T@G":{0:7}}}'
TAKEN = [
    b"{'offsetTable':{'T@G':{'0':7}}}",
    b'{offsetTable:{"T@G":{0:7,},},}',
    b'{"offsetTable":{"T@G":{00:+7}}}',
    b'//c\n{/*c*/"offsetTable"://c\n{"T@G":{0:7/*c*/}}}',
    OBJECT + b"/*c*/",
    OBJECT + b"//c",
    OBJECT + b"\x0b\x1c\0 \0",
    b"\0\x08" + OBJECT,
    b'{"offsetTable"\x0c:\x08{"T@G":{0:07}}}',
    b'{"offsetTable":{"\\x54@\\u0047":{0:7}}}',
    b'{"\\offsetTable":1,"offsetTable":{"T@G":{0:7}}}'.replace(b"\\o", b"a\\'\\v\\7\\F o"),
    b'{"a\n\t\0":"\x01","offsetTable":{"T@G":{0:7}}}',
    b'{"a":[1,"x",],"offsetTable":{"T@G":{0:7}}}',
]
REFUSED = [
    b'{"offsetTable":{"T@G":{0:7,,}}}',
    b'{"offsetTable":{"T@G":{0:.5}}}',
    b'{"offsetTable":{"T@G":{0:0x1F}}}',
    b'{"offsetTable":{"T@G":{0:p}}}',
    b'{"offsetTable":{"T@G":{0:truE}}}',
    b'{"a-b":1,a-b:1,"offsetTable":{}}',
    b'{"a":x"41","offsetTable":{}}',
    b'{"a":bare,"offsetTable":{}}',
    b'{\xc2\xa0"offsetTable":{}}',
    b"\xc2\xa0" + OBJECT,
    b'{"offsetTable"\x0b:{}}',
    b'{"offsetTable":{"T\\q@G":{0:7}}}',
    b'{"offsetTable":{"T\x1a@G":{0:7}}}',
    b'{"offsetTable":{"T@G":{0:7},"x":1},"offsetTable":{"T@G":{0:7}}}',
    b"null" + OBJECT,
    b"[]" + OBJECT,
]
DOUBTED = [
    b'{"a":{1.5:1},"offsetTable":{}}',
    b'{"a":{"@type":"java.lang.Object"},"offsetTable":{}}',
    b'{"a":{"$ref":"$"},"offsetTable":{}}',
]
"""taken in some places, or by some releases, and not in others"""


@pytest.mark.parametrize("raw", TAKEN)
def test_what_brokers_read_is_read(raw: bytes) -> None:
    parsed = parse_table(raw, "consumerOffset.json")
    assert parsed.state.has_data, parsed.detail
    assert parsed.data["offsetTable"] == {"T@G": {"0": 7}}


@pytest.mark.parametrize("raw", [*REFUSED, *DOUBTED])
def test_what_brokers_give_up_is_not_sound(raw: bytes) -> None:
    parsed = parse_table(raw, "consumerOffset.json")
    assert parsed.state is ParseState.UNPARSABLE
    assert "holds" not in (parsed.detail or "")


@pytest.mark.parametrize(
    "raw",
    [b"{" + b" /**/" * 300_000, b"{'" + b"\\n" * 700_000, b"{a" + b"," * 10**6, b"{'a':" + b"9" * 10**6],
)
def test_reading_takes_time_by_the_bytes(raw: bytes) -> None:
    begun = time.monotonic()
    assert parse_config(raw).state is ParseState.UNPARSABLE
    assert time.monotonic() - begun < 10
