"""Stored offsets of every kind in one shape, and which of them are meant."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, NamedTuple

from formats.tags_code import SCHEDULE_TOPIC
from rmqtool.scan.multi import LMQ_PREFIX
from rmqtool.store.consumer_offsets import DELAY_OFFSETS, LIGHT_OFFSETS, delay_offsets_in, offsets_in

if TYPE_CHECKING:
    from collections.abc import Mapping


class Kind(StrEnum):
    """Whose offset it is: a consumer group's, a delay level's, or a light queue's."""

    CONSUMER = "consumer"
    DELAY = "delay"
    LMQ = "lmq"


class Place(NamedTuple):
    """Where an offset stands. group: empty for delay levels, whose queue is that of the level."""

    kind: Kind
    group: str
    topic: str
    queue_id: int

    @property
    def row(self) -> dict[str, Any]:
        """Its keys in JSON."""
        level = {"level": self.queue_id + 1} if self.kind is Kind.DELAY else {}
        group = None if self.kind is Kind.DELAY else self.group
        return {
            "kind": str(self.kind),
            "group": group,
            "topic": self.topic,
            "queue_id": self.queue_id,
        } | level

    @property
    def text(self) -> str:
        """In words."""
        if self.kind is Kind.DELAY:
            return f"delay level {self.queue_id + 1}"
        return f"group {self.group}, topic {self.topic}, queue {self.queue_id}"


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which offsets are meant: globs of groups and topics, kinds; empty for all. Plain JSON values."""

    groups: tuple[str, ...] = ()
    topics: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    _names: dict[tuple[tuple[str, ...], str], bool] = field(default_factory=dict, compare=False, repr=False)

    def __call__(self, place: Place) -> bool:
        """Whether this one is."""
        if self.kinds and place.kind not in self.kinds:
            return False
        if place.kind is Kind.DELAY and self.groups:
            return False
        return self._matches(self.groups, place.group) and self._matches(self.topics, place.topic)

    def _matches(self, globs: tuple[str, ...], name: str) -> bool:
        if not globs:
            return True
        known = self._names.get((globs, name))
        if known is None:
            known = self._names[globs, name] = any(fnmatchcase(name, one) for one in globs)
        return known

    @property
    def parameters(self) -> dict[str, Any]:
        """For a plan."""
        return {"group": list(self.groups), "topic": list(self.topics), "kind": list(self.kinds)}

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Chosen:
        """The choice with these `parameters`."""
        return cls(tuple(parameters["group"]), tuple(parameters["topic"]), tuple(parameters["kind"]))


def table_offsets(name: str, data: Any) -> dict[Place, int]:
    """Offsets in a parsed table; name: of its file, which tells the shape."""
    if name == DELAY_OFFSETS:
        return {
            Place(Kind.DELAY, "", SCHEDULE_TOPIC, level - 1): offset
            for level, offset, _ in delay_offsets_in(data)
        }
    found = {}
    for one in offsets_in(data, light=name == LIGHT_OFFSETS):
        light = one.light or one.group.startswith(LMQ_PREFIX) or one.topic.startswith(LMQ_PREFIX)
        found[Place(Kind.LMQ if light else Kind.CONSUMER, one.group, one.topic, one.queue_id)] = one.offset
    return found
