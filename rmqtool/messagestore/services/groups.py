"""Consumer groups and their settings: `SubscriptionGroupManager`, in `subscriptionGroup.json`."""

from __future__ import annotations

import re
import threading
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rmqtool.errors import UsageError
from rmqtool.messagestore.arguments import checked
from rmqtool.messagestore.services.tables import Table
from rmqtool.query.groups import GROUP_KEYS, GroupConfig, group_configs
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.messagestore.services.engine import Engine

_NAME = re.compile(r"[%|a-zA-Z0-9_-]{1,255}")
"""`Validators#checkGroup`"""
_MOST = 1 << 15
"""queues of a retry topic, tries"""
_ALWAYS: dict[str, Any] = {
    "brokerId": 0,
    "consumeFromMinEnable": True,
    "notifyConsumerIdsChangedEnable": True,
    "whichBrokerWhenConsumeSlowly": 1,
}
_SINCE_5: dict[str, Any] = {
    "consumeMessageOrderly": False,
    "consumeTimeoutMinute": 15,
    "groupRetryPolicy": {"type": "CUSTOMIZED"},
    "groupSysFlag": 0,
}
_ATTRIBUTES = (5, 1, 0)


class Groups:
    """By name. Changes are on disk when a call returns."""

    def __init__(self, engine: Engine) -> None:
        self._all = group_configs(engine.stored)
        self._engine, self._guard = engine, threading.Lock()
        self._create = engine.settings.create_groups
        self._table = Table(engine, "subscriptionGroup.json", self._document)

    def __iter__(self) -> Iterator[GroupConfig]:
        return iter(list(self._all.values()))

    def __len__(self) -> int:
        return len(self._all)

    def __contains__(self, name: str) -> bool:
        return name in self._all

    def get(self, name: str) -> GroupConfig | None:
        """One group, None where no settings of it are stored."""
        return self._all.get(name)

    @checked
    def set(
        self,
        name: str,
        *,
        retry_max: int | None = None,
        retry_queues: int | None = None,
        consume: bool | None = None,
        broadcast: bool | None = None,
    ) -> GroupConfig:
        """Makes a group or changes what is given of it.

        retry_max: how often a message is given back before it becomes a dead letter.
        retry_queues: of its retry topic, 0: what is given back is gone. consume: it may consume at all;
        broadcast: each member may get everything. Raises `UsageError`, `StoreIOError`.
        """
        if not _NAME.fullmatch(name):
            raise UsageError(f"{escape_name(name)}: a consumer group can have no such name")
        for what, number in (("retry_max", retry_max), ("retry_queues", retry_queues)):
            if number is not None and not 0 <= number <= _MOST:
                raise UsageError(f"{what} is {number}, not 0 to {_MOST}")
        given: dict[str, Any] = {
            "retry_max_times": retry_max,
            "retry_queue_nums": retry_queues,
            "consume_enable": consume,
            "consume_broadcast_enable": broadcast,
        }
        with self._guard:
            before = self._all.get(name) or GroupConfig(name)
            made = replace(before, **{key: one for key, one in given.items() if one is not None})
            if made != self._all.get(name):
                self._save({**self._all, name: made})
        return made

    @checked
    def delete(self, name: str) -> bool:
        """Takes a group out of the table; its offsets stay. Whether it was there. Raises `StoreIOError`."""
        with self._guard:
            left = {one: config for one, config in self._all.items() if one != name}
            gone = len(left) < len(self._all)
            if gone:
                self._save(left)
        return gone

    def of_consumer(self, name: str, *, broadcast: bool = False) -> GroupConfig:
        """The group of a consumer, made if `autoCreateSubscriptionGroup` lets it.

        Raises `UsageError` where the group may not consume (`PullMessageProcessor#processRequest`).
        """
        found = self._all.get(name)
        if found is None:
            if not self._create:
                raise UsageError(f"there is no consumer group {escape_name(name)}")
            found = self.set(name)
        if not found.consume_enable:
            raise UsageError(f"consumer group {name} may not consume: consumeEnable is false")
        if broadcast and not found.consume_broadcast_enable:
            raise UsageError(f"consumer group {name} may not broadcast: consumeBroadcastEnable is false")
        return found

    def _save(self, groups: dict[str, GroupConfig]) -> None:
        """The table as it is from now on; nothing changes where it cannot be written."""
        before, self._all = self._all, groups
        self._table.touch()
        try:
            self._table.save()
        except BaseException:
            self._all = before
            raise

    def _document(self) -> dict[str, Any]:
        table = {one.name: self._entry(one) for one in self._all.values()}
        forbidden = self._table.loaded.get("forbiddenTable")
        more = {"forbiddenTable": forbidden or {}} if self._engine.of_5 else {}
        return {**more, "subscriptionGroupTable": table}

    def _entry(self, group: GroupConfig) -> dict[str, Any]:
        own = {key: getattr(group, name) for key, name in GROUP_KEYS.items()}
        later: dict[str, Any] = _SINCE_5 if self._engine.of_5 else {}
        if self._engine.since(_ATTRIBUTES):
            later = {"attributes": {}, **later}
        return dict(sorted({**_ALWAYS, **later, **group.further, **own}.items()))
