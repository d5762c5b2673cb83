"""What brokers cannot take in their tables, as the classes of 4.9.7 and 5.3.3 read it by fastjson."""

from __future__ import annotations

import json

import pytest

from rmqtool.store.config_json import ParseState, parse_table
from rmqtool.store.config_types import misfits, misnamed, number_of, without

VALUES = "null 5 1.5 'x' '5' '' true [] [1] {} {'a':1} 99999999999 -1".replace("'", '"').split()
BEYOND = ["100000000000000000000", "1e999"]
VALUES += BEYOND
NO_TABLE = VALUES[:9] + VALUES[10:]
NUMBER = ["null", '"x"', '""', "true", "[]", "[1]", "{}", '{"a":1}', *BEYOND]
ENTRY = VALUES[:9] + VALUES[11:]
FIELD = ['"x"', "[]", "[1]", "{}", '{"a":1}', "99999999999", *BEYOND]
SWITCH = ['"x"', '"5"', *FIELD[1:]]

NO_OBJECT = [one for one in VALUES if not one.startswith("{")]

SEEN = {
    ("topics.json", '{"topicConfigTable":%s}'): (NO_TABLE, NO_TABLE),
    ("topics.json", '{"topicConfigTable":{"T":%s}}'): (ENTRY, ENTRY),
    ("topics.json", '{"topicConfigTable":{"T":{"perm":%s}}}'): (FIELD, FIELD),
    ("topics.json", '{"topicConfigTable":{"T":{"order":%s}}}'): (SWITCH, SWITCH),
    ("topics.json", '{"topicConfigTable":{"T":{"topicName":%s}}}'): ([], []),
    ("topics.json", '{"somethingElse":%s}'): ([], []),
    ("subscriptionGroup.json", '{"subscriptionGroupTable":{"G":%s}}'): (ENTRY, ENTRY),
    ("subscriptionGroup.json", '{"subscriptionGroupTable":{"G":{"consumeEnable":%s}}}'): (SWITCH, SWITCH),
    ("subscriptionGroup.json", '{"forbiddenTable":{"G":%s}}'): ([], ENTRY),
    ("delayOffset.json", '{"offsetTable":{3:%s}}'): (NUMBER, [one for one in NUMBER if one != "true"]),
    ("consumerOffset.json", '{"offsetTable":{"T@G":%s}}'): (NO_TABLE, NO_TABLE),
    ("consumerOffset.json", '{"offsetTable":{"T@G":{0:%s}}}'): (
        NUMBER,
        [one for one in NUMBER if one != "true"],
    ),
    ("lmqConsumerOffset.json", '{"lmqOffsetTable":{"T@G":%s}}'): (
        NUMBER,
        [one for one in NUMBER if one != "true"],
    ),
    ("consumerFilter.json", '{"filterDataByTopic":{"T":{"groupFilterData":{"G":%s}}}}'): (ENTRY, ENTRY),
    ("topics.json", '{"dataVersion":%s}'): (NO_OBJECT, NO_OBJECT),
    ("topics.json", '{"topicConfigTable":%s,"dataVersion":{}}'): (NO_TABLE, NO_TABLE),
    ("subscriptionGroup.json", '{"subscriptionGroupTable":%s}'): (NO_TABLE, NO_TABLE),
    ("consumerOffset.json", '{"groupTopicMap":%s}'): ([], [*NO_TABLE, '{"a":1}']),
    ("topicQueueMapping.json", '{"topicQueueMappingInfoMap":{},"dataVersion":%s}'): ([], NO_OBJECT),
    ("consumerOffset.json", '{"dataVersion":{"counter":%s}}'): (
        [],
        ['"x"', "[]", "[1]", "{}", '{"a":1}', *BEYOND],
    ),
}


@pytest.mark.parametrize(("name", "form"), SEEN)
def test_what_each_release_refuses(name: str, form: str) -> None:
    for before_5, refused in zip((True, False), SEEN[name, form], strict=True):
        found = [
            value
            for value in VALUES
            if not parse_table((form % value).encode(), name, before_5=before_5).state.has_data
        ]
        assert found == [one for one in VALUES if one in refused], before_5


def test_a_table_that_every_release_refuses_has_no_data() -> None:
    raw = b'{"offsetTable":{"T@G":{0:5,1:"x"},"Other@G":{2:99999999999999999999}}}'
    parsed = parse_table(raw, "consumerOffset.json.bak")
    why = 'offsetTable.T@G.1 is "x", which brokers cannot read there'
    assert parsed == (None, ParseState.UNPARSABLE, why)
    assert parse_table(raw, "other.json").data["offsetTable"]["T@G"] == {"0": 5, "1": "x"}


ODD = [
    ("consumerOffset.json", '{"offsetTable":{"":{0:3}}}', True, True),
    ("consumerOffset.json", '{"offsetTable":"","groupTopicMap":{}}', False, True),
    ("lmqConsumerOffset.json", '{"offsetTable":{},"lmqOffsetTable":""}', False, True),
    ("delayOffset.json", '{"offsetTable":""}', False, False),
    ("delayOffset.json", '{"offsetTable":null}', False, False),
    ("consumerOffset.json", '{"offsetTable":{"T@G":{0:1e30}}}', True, True),
    ("consumerOffset.json", '{"offsetTable":{"T@G":{0:1e200}}}', False, False),
    ("consumerOffset.json", '{"offsetTable":{},"groupTopicMap":{"G":null}}', True, True),
    (
        "subscriptionGroup.json",
        '{"subscriptionGroupTable":{"G":{"brokerId":1e19}},"dataVersion":{}}',
        True,
        True,
    ),
    ("subscriptionGroup.json", '{"subscriptionGroupTable":{},"dataVersion":5}', True, False),
    ("delayOffset.json", '{"offsetTable":{1:5},"dataVersion":5}', True, False),
    ("topics.json", '{"topicConfigTable":{"T":{"perm":1e30}},"dataVersion":{}}', True, True),
    ("delayOffset.json", '{"offsetTable":{1:5},"dataVersion":null}', True, True),
    (
        "consumerFilter.json",
        '{"filterDataByTopic":{"T":{"groupFilterData":{"G":{"compiledExpression":5}}}}}',
        False,
        False,
    ),
    (
        "subscriptionGroup.json",
        '{"subscriptionGroupTable":{"G":{"attributes":[]}},"dataVersion":{}}',
        True,
        False,
    ),
    (
        "subscriptionGroup.json",
        '{"subscriptionGroupTable":{"G":{"attributes":{"a":null}}},"dataVersion":{}}',
        True,
        True,
    ),
    ("topics.json", '{"topicConfigTable":{},"dataVersion":{"counter":null}}', False, False),
    ("subscriptionGroup.json", '{"subscriptionGroupTable":{},"dataVersion":{"counter":""}}', True, False),
    ("consumerOffset.json", '{"offsetTable":{},"dataVersion":{"counter":null}}', True, True),
    ("subscriptionGroup.json", '{"subscriptionGroupTable":{"G":{"groupSysFlag":"x"}}}', True, False),
    (
        "consumerFilter.json",
        '{"filterDataByTopic":{"T":{"groupFilterData":{"G":{"bornTime":[1]}}}}}',
        False,
        False,
    ),
    ("consumerOrderInfo.json", '{"table":{"T@G":{0:{"l":[1,2]}}}}', False, False),
    (
        "consumerOrderInfo.json",
        '{"table":{"T@G":{0:{"l":1,"o":[1],"ot":{3000000000:1},"oc":{1:2}}}}}',
        True,
        True,
    ),
    ("consumerOrderInfo.json", '{"table":{"T@G":{0:{"oc":{"q":2}}}}}', False, False),
    ("topicQueueMapping.json", '{"topicQueueMappingInfoMap":{"T":{"currIdMap":{"p":0}}}}', False, False),
]


@pytest.mark.parametrize(("name", "text", "before_5", "later"), ODD)
def test_what_only_some_read(name: str, text: str, before_5: bool, later: bool) -> None:
    loads = [parse_table(text.encode(), name, before_5=one).state.has_data for one in (True, False)]
    assert loads == [before_5, later]


def test_a_real_number_is_cut_to_its_low_bits() -> None:
    assert number_of(1e19) == -8446744073709551616
    assert number_of(1e30) == 5076944270305263616


def test_a_mapping_without_its_map() -> None:
    assert parse_table(b"{}", "topicQueueMapping.json", before_5=True).state.has_data
    found = parse_table(b"{}", "topicQueueMapping.json", before_5=False)
    assert (found.data, found.state) == (None, ParseState.UNPARSABLE)
    assert found.detail == "it lacks topicQueueMappingInfoMap, without which brokers cannot read it"


def test_without_what_does_not_fit() -> None:
    data = {"offsetTable": {"T@G": {"0": 5, "1": "x"}, "U@G": [1], "V@G": {"x": 1, "2": "7"}}}
    wrong = list(misfits("consumerOffset.json", data, before_5=False))
    assert [".".join(one.keys) for one in wrong] == [
        "offsetTable.T@G.1",
        "offsetTable.U@G",
        "offsetTable.V@G.x",
    ]
    left = without(data, wrong)
    assert left == {"offsetTable": {"T@G": {"0": 5}, "V@G": {"2": "7"}}}
    assert parse_table(json.dumps(left).encode(), "consumerOffset.json").state is ParseState.STRICT


def test_entries_under_a_name_that_nobody_reads() -> None:
    text = '{"dataVersion":{},"%s":{"T@G":{0:5}}}'
    for name in ("offsetTable", "offsettable", "offset_Table", "OFFSET-TABLE"):
        data = parse_table((text % name).encode(), "consumerOffset.json").data
        assert data["offsetTable"] == {"T@G": {"0": 5}}
        assert misnamed("consumerOffset.json", data) is None
    for name in ("uffsetTable", "topicConfigTable"):
        parsed = parse_table((text % name).encode(), "consumerOffset.json")
        assert misnamed("consumerOffset.json", parsed.data) == name
        assert parsed.detail == f"has its entries under '{name}', which brokers do not read"
    for table in (
        '{"dataVersion":{"counter":1}}',
        '{"uffsetTable":{}}',
        '{"uffsetTable":{"a":1},"offsetTable":{}}',
    ):
        assert (
            misnamed("consumerOffset.json", parse_table(table.encode(), "consumerOffset.json").data) is None
        )


UNQUOTED = [
    ("topics.json", '{%s:1,"topicConfigTable":{},"dataVersion":{}}', True, True),
    ("topics.json", '{"topicConfigTable":{%s:{"perm":6}},"dataVersion":{}}', True, True),
    ("topics.json", '{"topicConfigTable":{"T":{%s:{"perm":6}}},"dataVersion":{}}', True, True),
    ("topics.json", '{"topicConfigTable":{"T":{"attributes":{%s:"b"}}},"dataVersion":{}}', False, True),
    ("topics.json", '{"topicConfigTable":{},"dataVersion":{%s:5}}', True, True),
    ("topics.json", '{"x":{%s:[{%s:5}]},"topicConfigTable":{},"dataVersion":{}}', False, False),
    ("subscriptionGroup.json", '{"subscriptionGroupTable":{%s:{}},"dataVersion":{}}', True, True),
    (
        "subscriptionGroup.json",
        '{"subscriptionGroupTable":{},"forbiddenTable":{"g":{%s:1}},"dataVersion":{}}',
        False,
        True,
    ),
    (
        "subscriptionGroup.json",
        '{"subscriptionGroupTable":{"g":{"attributes":{%s:"1"}}},"dataVersion":{}}',
        False,
        True,
    ),
    (
        "subscriptionGroup.json",
        '{"subscriptionGroupTable":{"g":{"groupRetryPolicy":{%s:"1"}}},"dataVersion":{}}',
        False,
        True,
    ),
    ("consumerOffset.json", '{"offsetTable":{%s:{0:12}}}', True, True),
    ("consumerOffset.json", '{"offsetTable":{"T@g":{%s:12}}}', False, False),
    ("consumerOffset.json", '{"offsetTable":{"T@g":{%s:12,0:1}},"groupTopicMap":{%s:["T"]}}', False, True),
    ("consumerFilter.json", '{"filterDataByTopic":{%s:{"groupFilterData":{}}}}', True, True),
    ("consumerFilter.json", '{"filterDataByTopic":{"T":{"groupFilterData":{%s:{}}}}}', True, True),
    (
        "consumerFilter.json",
        '{"filterDataByTopic":{"T":{"groupFilterData":{"g":{"bloomFilterData":{%s:1}}}}}}',
        True,
        True,
    ),
    ("delayOffset.json", '{"offsetTable":{%s:5}}', False, False),
    ("lmqConsumerOffset.json", '{"lmqOffsetTable":{%s:5},"offsetTable":{}}', True, True),
    ("consumerOrderInfo.json", '{"table":{%s:{0:{"l":5}}}}', True, True),
    ("consumerOrderInfo.json", '{"table":{"T@g":{%s:{"l":5,"ot":{%s:2}}}}}', False, False),
    ("topicQueueMapping.json", '{"topicQueueMappingInfoMap":{%s:{}},"dataVersion":{}}', True, True),
    (
        "topicQueueMapping.json",
        '{"topicQueueMappingInfoMap":{"T":{"currIdMap":{%s:0},"hostedQueues":{%s:[]}}},"dataVersion":{}}',
        False,
        False,
    ),
]
"""a name in a table; whether releases before 5.0, and later ones, refuse a number without quotes there"""
AROUND = ["%s", "%s//", "%s\0"]
"""read as JSON, and as far as only fastjson goes"""


@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("number", ["7", "-7", "03", "\\ud8007"])
@pytest.mark.parametrize(("name", "form", "before_5", "later"), UNQUOTED)
def test_a_name_without_quotes(
    name: str, form: str, before_5: bool, later: bool, number: str, around: str
) -> None:
    for quoted in (False, True):
        if number.startswith("\\"):  # that begins names within `config_json`
            text = form.replace("{", '{"\\ud8007":1,', 1).replace("%s", '"7"' if quoted else "7")
        else:
            text = form.replace("%s", f'"{number}"' if quoted else number)
        raw = (around % text).encode()
        refused = [not parse_table(raw, name, before_5=one).state.has_data for one in (True, False)]
        assert refused == ([False, False] if quoted else [before_5, later])


def test_a_name_that_is_given_with_quotes_and_without() -> None:
    for names in (('"7"', "7"), ("7", '"7"')):
        first, second = names
        text = f'{{"topicConfigTable":{{{first}:{{}},{second}:{{}}}},"dataVersion":{{}}}}'
        parsed = parse_table(text.encode(), "topics.json")
        assert parsed == (None, ParseState.UNPARSABLE, "topicConfigTable.7 should have its name in quotes")


def test_types_of_fields_that_are_written_in_another_way() -> None:
    for text in ('{"offsettable":{"T@G":5}}', '{"topicConfigTable":{"T":{"p_erm":[]}},"dataVersion":{}}'):
        name = "topics.json" if "topic" in text else "consumerOffset.json"
        assert not parse_table(text.encode(), name).state.has_data


def test_text_behind_a_table_with_names_without_quotes() -> None:
    parsed = parse_table(
        b'{"offsetTable":{"T@G":{0:1}}}{"offsetTable":{"T@G":{0:1,1:2}}}', "delayOffset.json"
    )
    assert parsed.state is ParseState.UNPARSABLE
    assert not parse_table(b'{"offsetTable":{0:1}},{7:1}', "consumerOffset.json").state.has_data
