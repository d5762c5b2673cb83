"""RocketMQ's own producer and consumer, for `driver`: what an application does on a broker."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from jpype import JArray, JByte, JClass, JProxy  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Callable

POLL_MS = 500
ROUTE_SECONDS = 60


class Client:
    """Clients that live as long as a call: each starts, does its work and is shut down."""

    def calls(self) -> dict[str, Callable[..., Any]]:
        """By the names of the requests."""
        return {
            "produce": self.produce,
            "consume": self.consume,
            "allocate": self.allocate,
            "answer_checks": self.answer_checks,
        }

    def allocate(
        self, strategy: str, cases: list[tuple[list[list[Any]], list[str]]], rooms: list[str]
    ) -> list[list[list[list[Any]]]]:
        """What `AllocateMessageQueue…` gives each client of each case: of queues and clients, in order.

        Queues are topic, broker name and number. The room of a broker or client is its name up to an @.
        """
        queue = JClass("org.apache.rocketmq.common.message.MessageQueue")
        chosen = self._strategy(strategy, rooms, queue)
        found = []
        for queues, clients in cases:
            everything, everyone = JClass("java.util.ArrayList")(), JClass("java.util.ArrayList")()
            for topic, broker, number in queues:
                everything.add(queue(topic, broker, number))
            for one in clients:
                everyone.add(one)
            given = [chosen.allocate("G", one, everything, everyone) for one in clients]
            found.append(
                [
                    [[str(q.getTopic()), str(q.getBrokerName()), int(q.getQueueId())] for q in one]
                    for one in given
                ]
            )
        return found

    def _strategy(self, name: str, rooms: list[str], queue: Any) -> Any:
        of = "org.apache.rocketmq.client.consumer.rebalance."
        if name == "MACHINE_ROOM":
            made = JClass(f"{of}AllocateMessageQueueByMachineRoom")()
            known = JClass("java.util.HashSet")()
            for one in rooms:
                known.add(one)
            made.setConsumeridcs(known)
            return made
        if name == "MACHINE_ROOM_NEARBY":
            nearby = JClass(f"{of}AllocateMachineRoomNearby")

            class Resolver:
                def brokerDeployIn(self, one: Any) -> str:  # noqa: N802 - Java's name
                    return str(one.getBrokerName()).partition("@")[0]

                def consumerDeployIn(self, one: Any) -> str:  # noqa: N802
                    return str(one).partition("@")[0]

            resolver = JProxy(f"{of}AllocateMachineRoomNearby$MachineRoomResolver", inst=Resolver())
            return nearby(JClass(f"{of}AllocateMessageQueueAveragely")(), resolver)
        if name == "CONFIG":
            made = JClass(f"{of}AllocateMessageQueueByConfig")()
            fixed = JClass("java.util.ArrayList")()
            fixed.add(queue("T", "r0@b", 7))
            made.setMessageQueueList(fixed)
            return made
        names = {
            "AVG": "Averagely",
            "AVG_BY_CIRCLE": "AveragelyByCircle",
            "CONSISTENT_HASH": "ConsistentHash",
        }
        return JClass(f"{of}AllocateMessageQueue{names[name]}")()

    def produce(self, address: str, group: str, topic: str, bodies: list[str]) -> list[list[Any]]:
        """Sends with `DefaultMQProducer`; queue and queue offset of each message."""
        producer = JClass("org.apache.rocketmq.client.producer.DefaultMQProducer")(group)
        message = JClass("org.apache.rocketmq.common.message.Message")
        producer.setNamesrvAddr(address)
        producer.start()
        try:
            _wait_for_route(producer, topic)
            found = []
            for number, body in enumerate(bodies):
                data = JArray(JByte)(bytes.fromhex(body))
                sent = producer.send(message(topic, "Sent", f"sent-{number}", data))
                if str(sent.getSendStatus()) != "SEND_OK":
                    raise RuntimeError(str(sent))
                queue = int(sent.getMessageQueue().getQueueId())
                found.append([queue, int(sent.getQueueOffset())])
            return found
        finally:
            producer.shutdown()

    def answer_checks(
        self, address: str, group: str, topic: str, sends_to: str, committed: list[str], count: int
    ) -> list[str]:
        """A `TransactionMQProducer` that says what became of half messages, until it has said so of `count`.

        committed: bodies (hex) of those that are to be committed; others are rolled back. Bodies asked about.
        sends_to: another topic, to which it sends a message first.
        """
        state = JClass("org.apache.rocketmq.client.producer.LocalTransactionState")
        asked: list[str] = []

        def check(half: Any) -> Any:
            body = bytes(half.getBody()).hex()
            asked.append(body)
            return state.COMMIT_MESSAGE if body in committed else state.ROLLBACK_MESSAGE

        methods = {"executeLocalTransaction": lambda *_: state.UNKNOW, "checkLocalTransaction": check}
        listener = JProxy("org.apache.rocketmq.client.producer.TransactionListener", dict=methods)
        producer = JClass("org.apache.rocketmq.client.producer.TransactionMQProducer")(group)
        producer.setNamesrvAddr(address)
        producer.setHeartbeatBrokerInterval(1000)  # by which the broker learns whom it can ask
        producer.setTransactionListener(listener)
        producer.start()
        try:
            _wait_for_route(producer, topic)
            # heartbeats go to the brokers of topics that it has sent to
            message = JClass("org.apache.rocketmq.common.message.Message")
            producer.send(message(sends_to, JArray(JByte)(b"route")))
            until = time.monotonic() + ROUTE_SECONDS
            while len(set(asked)) < count and time.monotonic() < until:
                time.sleep(0.1)
            time.sleep(1)  # answers are one way: the last is on its way
            return sorted(set(asked))
        finally:
            producer.shutdown()

    def consume(self, address: str, group: str, topic: str, count: int, polls: int) -> list[list[Any]]:
        """Consumes with `DefaultLitePullConsumer` and commits; ends with `count` messages or after `polls`.

        Queue, queue offset and body (hex) of each, in the order of their arrival.
        """
        consumer = JClass("org.apache.rocketmq.client.consumer.DefaultLitePullConsumer")(group)
        first = JClass("org.apache.rocketmq.common.consumer.ConsumeFromWhere").CONSUME_FROM_FIRST_OFFSET
        consumer.setNamesrvAddr(address)
        consumer.setConsumeFromWhere(first)
        consumer.setAutoCommit(False)
        consumer.subscribe(topic, "*")
        consumer.start()
        try:
            found: list[list[Any]] = []
            while len(found) < count and polls > 0:
                for one in consumer.poll(POLL_MS):
                    body = bytes(one.getBody()).hex()
                    found.append([int(one.getQueueId()), int(one.getQueueOffset()), body])
                polls -= 1
            consumer.commitSync()
            return found
        finally:
            consumer.shutdown()


def _wait_for_route(producer: Any, topic: str) -> None:
    """A broker listens before the name server knows its topics."""
    until = time.monotonic() + ROUTE_SECONDS
    while True:
        try:
            producer.fetchPublishMessageQueues(topic)
        except JClass("org.apache.rocketmq.client.exception.MQClientException"):
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
        else:
            return
