"""What a rebuild is asked for."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

from rmqtool.broker.deleted_topics import is_somebodys

if TYPE_CHECKING:
    from collections.abc import Mapping

WHAT = ("cq", "index")


@dataclass(frozen=True)
class RebuildOptions:
    """What to build, and against what.

    what: `cq`, `index` or both. topic: globs, empty for all. queue: numbers, empty for all; both choose
    queues, the index is always of all records. complete: the plan writes every file that is built, for an
    empty directory, instead of what differs from the store. tz: name of the zone in which index files are
    named where the store has no names to keep. restore_topics: topics that `topics.json` lacks get an entry,
    too; their queues are built as with deleted_topics.
    """

    release: str
    what: tuple[str, ...] = WHAT
    topic: tuple[str, ...] = ()
    queue: tuple[int, ...] = ()
    keep_expired: bool = False
    deleted_topics: bool = False
    complete: bool = False
    tz: str = "local"
    restore_topics: bool = False

    def selects(self, topic: str, queue_id: int) -> bool:
        """Whether the queue is one of those asked for."""
        named = not self.topic or any(fnmatchcase(topic, glob) for glob in self.topic)
        return named and (not self.queue or queue_id in self.queue)

    def parameters(self) -> dict[str, Any]:
        """All that the plan depends on beside the store, as plain JSON values."""
        given = asdict(self).items()
        return {name: list(value) if isinstance(value, tuple) else value for name, value in given}

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> RebuildOptions:
        """The options with these `parameters`."""
        lists = {name: tuple(parameters[name]) for name in ("what", "topic", "queue")}
        return cls(**{**parameters, **lists})


@dataclass
class WantedQueues:
    """Whether a queue is built, asked by topic and number.

    topics: those of `topics.json`. deleted: topics that were refused because they are not in it.
    """

    options: RebuildOptions
    topics: frozenset[str]
    deleted: set[str] = field(default_factory=set)

    def __call__(self, topic: str, queue_id: int) -> bool:
        """Whether it is one of those asked for, and of a topic that is there."""
        if not self.options.selects(topic, queue_id):
            return False
        deleted_too = self.options.deleted_topics or self.options.restore_topics
        if not deleted_too and not is_somebodys(self.topics, topic):
            self.deleted.add(topic)
            return False
        return True
