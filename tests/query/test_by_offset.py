"""Pulls: status, offsets and records as the brokers of all releases answered them."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter

import pytest

from rmqtool.broker.get_message import GetMessageStatus, pull
from rmqtool.query.by_offset import pull_on
from rmqtool.query.offset_query import OffsetQuery
from rmqtool.query.subscription import Subscription
from rmqtool.query.unit_tags import UnitTags
from rmqtool.query.verdict import Question
from rmqtool.store.layout import Store
from tests.query.serving import NAMES, queue, rules_of
from tests.tiers import of_each_kind

PLACE = itemgetter("topic", "queue")


@pytest.mark.parametrize("name", of_each_kind(NAMES))
def test_one_pull_is_answered_as_java_did(golden, name):
    found = golden(name)
    rules, store = rules_of(found), Store.open(found.path)
    questions = sorted(found.expected["get"], key=PLACE)
    assert questions
    for (topic, number), of_queue in groupby(questions, PLACE):
        with queue(found, topic, number) as view, UnitTags(store, topic, number) as tags:
            for asked in of_queue:
                offset, expression = asked["offset"], asked.get("tagExpr") or "*"
                question = Question(topic, number, offset)
                query = OffsetQuery(store, view, rules, question, Subscription.of(expression))
                answer = pull(view, offset, asked["max"], query.broker_filter(tags))
                facts = answer.status, answer.min_offset, answer.max_offset, answer.next_begin_offset
                java = asked["status"], asked["minOffset"], asked["maxOffset"], asked["nextBeginOffset"]
                assert (str(facts[0]), *facts[1:]) == java, (question, expression)
                if not any(one.foreign for one in answer.delivered):
                    delivered = [one.physical_offset for one in answer.delivered]
                    assert delivered == asked["physicalOffsets"], question


@pytest.mark.parametrize("name", ["v470-basic", "v498-preblank", "v533-basic", "v533-batchcq", "v533-v2"])
def test_all_messages_follow_past_the_limits_of_one_pull(golden, name):
    found = golden(name)
    for one in found.expected["cqUnits"]:
        with queue(found, one["topic"], one["queue"]) as view:
            start = view.min_offset
            first, more = pull_on(view, start, 10**6)
            slots = [each.queue_offset for each in more]
        if first.status is GetMessageStatus.FOUND:
            wanted = [unit[0] for unit in one["units"] if unit[0] >= start and unit[2] != 0x7FFFFFFF]
            assert slots == wanted, one["topic"]


def test_the_filter_report_tells_where_each_message_passes(golden):
    """Every record of the queue is listed; the hash of a unit and the tag itself are distinguished."""
    found = golden("v533-cqext")
    store, rules = Store.open(found.path), rules_of(found)
    tags = {one["physicalOffset"]: one["tags"] for one in found.expected["records"]}
    with queue(found, "TopicExt", 0) as view:
        query = OffsetQuery(
            store, view, rules, Question("TopicExt", 0, 0), Subscription.of("TagA"), report=True
        )
        reported = []
        for batch, more in query.batches(1000, ("physical_offset",)):
            rows = zip(batch["physical_offset"].to_pylist(), *more.values(), strict=True)
            reported += [(offset, broker, consumer) for offset, _, broker, consumer in rows]
        summary = query.summary()
    units = {(one["topic"], one["queue"]): one["units"] for one in found.expected["cqUnits"]}
    wanted = [unit[1] for unit in units["TopicExt", 0]]
    assert reported == [(offset, tags[offset] == "TagA", tags[offset] == "TagA") for offset in wanted]
    assert {True, False} == {broker for _, broker, _ in reported}
    assert summary["complete"]
