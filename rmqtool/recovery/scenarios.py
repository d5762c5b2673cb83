"""Workarounds that operators know, as views of the store: simulated before anybody tries them."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from formats.checkpoint import CHECKPOINT_SIZE
from rmqtool.broker.traits import traits_of
from rmqtool.errors import UsageError
from rmqtool.recovery.view import changed, file_with
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from rmqtool.store.layout import Store

_REMOVED = {
    "delete-consumequeue": "consumequeue",
    "delete-index": "index",
    "remove-abort": "abort",
    "remove-checkpoint": "checkpoint",
}
NAMES = (*_REMOVED, "zero-checkpoint", "remove-file PATH", "start-twice", "release X", "set NAME=VALUE")
"""what can be asked for; several joined with + are done together"""
_SWITCHES = {
    "checkCRCOnRecover": "check_crc",
    "duplicationEnable": "duplication",
    "enableCompaction": "compaction",
    "enableLmq": "lmq",
    "enableMultiDispatch": "multi_dispatch",
    "messageIndexEnable": "index_enabled",
    "messageIndexSafe": "index_safe",
    "recheckReputOffsetFromCq": "recheck_reput",
    "timerWheelEnable": "timer_wheel",
}
"""settings of a broker, by the field of `StartSettings` that has them"""
_WORDS = "|".join(name.partition(" ")[0] for name in NAMES)
_STEP = re.compile(rf"\+(?=(?:{_WORDS})(?:[+ =]|$))")
_WITH_VALUE = re.compile(r"(remove-file|release|set)[ =]\s*(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Scenario:
    """text: as it was asked for. gone: paths that are removed. zeroed: paths that are filled with zeros.

    twice: the store is started, stopped and started again. release: the one to start with, None for the
    release in question. switches: fields of `StartSettings` that are other than they are.
    """

    text: str
    gone: tuple[str, ...] = ()
    zeroed: tuple[str, ...] = ()
    twice: bool = False
    release: str | None = None
    switches: tuple[tuple[str, Any], ...] = ()

    def applied(self, store: Store) -> Store:
        """The store after the workaround. Raises `UsageError` for a path that is not in it."""
        if not self.gone and not self.zeroed:
            return store
        put = {path: file_with(store, path, CHECKPOINT_SIZE, _zeros) for path in self.zeroed}
        return changed(store, self.gone, put)


def parse_scenario(text: str, store: Store) -> Scenario:
    """A workaround by its name, or several joined with `+`.

    Raises `UsageError` for an unknown name, a path that is not in the store, a release that is none.
    """
    gone: list[str] = []
    zeroed: list[str] = []
    switches: list[tuple[str, bool]] = []
    twice, release = False, None
    for step in _STEP.split(text.strip()):
        valued = _WITH_VALUE.fullmatch(step)
        if step in _REMOVED:
            gone.append(_REMOVED[step])
        elif step == "zero-checkpoint":
            zeroed.append("checkpoint")
        elif step == "start-twice":
            twice = True
        elif valued is not None and valued[1] == "release":
            release = valued[2].strip()
            traits_of(release)
        elif valued is not None and valued[1] == "set":
            switches.append(_switch(valued[2].strip()))
        elif valued is not None:
            gone.append(_path_in(store, valued[2]))
        else:
            hint = f', in one word or quoted: "{step} …"' if step in {"remove-file", "release", "set"} else ""
            raise UsageError(f"unknown workaround {escape_name(step)}; known are {', '.join(NAMES)}{hint}")
    return Scenario(text, tuple(gone), tuple(zeroed), twice, release, tuple(switches))


def _switch(text: str) -> tuple[str, bool]:
    name, _, value = text.partition("=")
    if name not in _SWITCHES or value not in ("true", "false"):
        known = ", ".join(sorted(_SWITCHES))
        raise UsageError(f"set {escape_name(text)}: must be one of {known}, with =true or =false")
    return _SWITCHES[name], value == "true"


def _path_in(store: Store, given: str) -> str:
    """The path of a file or directory of the store, given relative to its root or to anything else."""
    known = {one.path for one in store.files} | {one.path for one in store.directories}
    inside = os.path.normpath(given)
    if inside not in known:
        inside = os.path.relpath(os.path.abspath(given), os.path.abspath(store.root))
    if inside not in known or inside in {"", "."}:
        raise UsageError(f"remove-file {escape_name(given)}: the store has no such file")
    return inside


def _zeros() -> bytes:
    return bytes(CHECKPOINT_SIZE)
