"""RocketMQ's own producer and consumer, for `driver`: what an application does on a broker."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from jpype import JArray, JByte, JClass  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Callable

POLL_MS = 500
ROUTE_SECONDS = 60


class Client:
    """Clients that live as long as a call: each starts, does its work and is shut down."""

    def calls(self) -> dict[str, Callable[..., Any]]:
        """By the names of the requests."""
        return {"produce": self.produce, "consume": self.consume}

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
