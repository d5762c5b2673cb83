"""A broker's own decoders of its tables behind the requests of `driver`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jpype import JArray, JByte, JClass, JException  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Callable

_MANAGERS = {
    "topics.json": "topic.TopicConfigManager",
    "subscriptionGroup.json": "subscription.SubscriptionGroupManager",
    "consumerOffset.json": "offset.ConsumerOffsetManager",
    "lmqConsumerOffset.json": "offset.LmqConsumerOffsetManager",
    "consumerFilter.json": "filter.ConsumerFilterManager",
    "consumerOrderInfo.json": "offset.ConsumerOrderInfoManager",
    "topicQueueMapping.json": "topic.TopicQueueMappingManager",
}
_OF_A_BROKER = frozenset({"topicQueueMapping.json"})


class Tables:
    """`ConfigManager#decode` of each table."""

    def calls(self) -> dict[str, Callable[..., Any]]:
        """Name of a request → what carries it out."""
        return {"decode": self.decode}

    def decode(self, tables: list[tuple[str, str]]) -> list[str | None]:
        """What each table (name, bytes in hex) holds then, as the broker writes it; None: it throws."""
        return [self._decoded(name, bytes.fromhex(raw)) for name, raw in tables]

    def _decoded(self, name: str, raw: bytes) -> str | None:
        string, utf8 = JClass("java.lang.String"), JClass("java.nio.charset.StandardCharsets").UTF_8
        made = JClass(f"org.apache.rocketmq.broker.{_MANAGERS[name]}")
        manager = made(None) if name in _OF_A_BROKER else made()
        signed = [one - 256 if one > 127 else one for one in raw]
        try:
            manager.decode(string(JArray(JByte)(signed), utf8))
            return bytes(string(manager.encode()).getBytes(utf8)).decode("utf-8", "replace")
        except JException:
            return None
