"""The command line at hand, for commands to type next."""

from __future__ import annotations

import shlex
from contextvars import ContextVar
from typing import TYPE_CHECKING

from rmqtool.secrets import hide

if TYPE_CHECKING:
    from collections.abc import Sequence

_TYPED: ContextVar[tuple[str, ...]] = ContextVar("typed", default=())
_CONFIG = "--store-config"


def remember(argv: Sequence[str]) -> None:
    """Called once, before a command runs: the words behind `rmqtool`."""
    _TYPED.set(tuple(argv))


def same_command(*more: str) -> str:
    """The command line at hand with further options, to be copied; a plan that it saved is there now."""
    typed = _without(_TYPED.get(), "--save-plan")
    place = typed.index("--") if "--" in typed else len(typed)
    return hide(shlex.join(["rmqtool", *typed[:place], *more, *typed[place:]]))


def store_config() -> tuple[str, ...]:
    """`--store-config` as it was typed, for commands on a store of the same settings."""
    typed = _TYPED.get()
    for number, word in enumerate(typed):
        if word.startswith(f"{_CONFIG}="):
            return (_CONFIG, word.partition("=")[2])
        if word == _CONFIG and number + 1 < len(typed):
            return (_CONFIG, typed[number + 1])
    return ()


def _without(typed: tuple[str, ...], option: str) -> tuple[str, ...]:
    """The words without an option and its value."""
    if option in typed:
        place = typed.index(option)
        return typed[:place] + typed[place + 2 :]
    return tuple(word for word in typed if not word.startswith(f"{option}="))
