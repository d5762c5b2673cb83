"""Opening the message store of a command that writes, and ending it in order when it is asked to stop."""

from __future__ import annotations

import logging
import os
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rmqtool.cli.options import StoreOptions, resolve_store
from rmqtool.errors import NotAStoreError

if TYPE_CHECKING:
    from types import FrameType, TracebackType
    from typing import Self

    from rmqtool.cli.context import Context
    from rmqtool.messagestore.store import MessageStore
    from rmqtool.store.config import StoreConfig

DirPositional = Annotated[
    str,
    typer.Argument(metavar="DIR", help="Root of the store; '-' means $RMQTOOL_STORE.", show_default=False),
]

_PANEL = "Store"


@dataclass(frozen=True)
class ConfigOptions:
    """The settings of a store that is written."""

    store_config: Annotated[
        str | None,
        typer.Option(
            "--store-config",
            metavar="FILE",
            help="broker.conf with sizes and switches; existing files keep their sizes.",
            show_default=False,
            rich_help_panel=_PANEL,
        ),
    ] = None


@dataclass(frozen=True)
class RecoveryOptions:
    """What is done where a recovery would give up messages."""

    recovery: Annotated[
        Literal["refuse", "broker"],
        typer.Option(
            "--recovery",
            help="Where a broker's recovery would give up intact messages: do not open, or let it.",
            rich_help_panel=_PANEL,
        ),
    ] = "refuse"


@dataclass(frozen=True)
class EngineOptions(RecoveryOptions, ConfigOptions):
    """How a store is opened for writing."""


class _Warnings(logging.Handler):
    """What the engine logs is said like every other warning."""

    def __init__(self, context: Context) -> None:
        super().__init__(logging.WARNING)
        self._context = context

    def emit(self, record: logging.LogRecord) -> None:
        self._context.console.warn(record.getMessage())


def read_settings(options: ConfigOptions, further: dict[str, str] | None = None) -> StoreConfig:
    """The settings of `--store-config`; `further` ones come in front of them."""
    from rmqtool.store.config import config_of
    from rmqtool.store.names import escape_name
    from rmqtool.store.properties import read_properties

    file = options.store_config
    given: dict[str, Any] = dict(read_properties(file)) if file is not None else {}
    origin = "settings" if file is None else escape_name(file)
    directory = None if file is None else os.path.dirname(os.path.abspath(file))
    return config_of(given | (further or {}), origin, directory)


def open_engine(
    context: Context,
    path: str,
    options: ConfigOptions,
    *,
    create: bool = False,
    release: str | None = None,
    config: StoreConfig | None = None,
    deliver: bool = False,
) -> MessageStore:
    """The store, open for writing. config: as `read_settings` gave it, where a command needed it before.

    deliver: delayed messages are delivered meanwhile, which no command does that only writes.
    Files that it makes are no more readable than those that are there. Raises what `MessageStore.open`
    raises.
    """
    from rmqtool.messagestore.store import MessageStore
    from rmqtool.store.modes import only_for, readers_below

    place = resolve_store(path, StoreOptions(options.store_config))
    if config is None:
        config = read_settings(options)
    only_for(readers_below(str(place), *config.commit_log_roots()))
    recovery = options.recovery if isinstance(options, EngineOptions) else "refuse"
    log, handler = logging.getLogger("rmqtool.messagestore"), _Warnings(context)
    log.addHandler(handler)
    log.propagate = False
    try:
        with context.progress("opening"):
            return MessageStore.open(
                place, config=config, recovery=recovery, create=create, release=release, deliver=deliver
            )
    except NotAStoreError as error:
        raise NotAStoreError(f"{error}: rmqtool store init makes a store") from None
    finally:
        log.propagate = True
        log.removeHandler(handler)


class Stop:
    """Ctrl-C and SIGTERM as something to be looked at, so that nothing is interrupted half done.

    A context manager. Until `defer` a signal interrupts as everywhere; behind it, `asked` becomes true and
    `descriptor` readable.
    """

    def __init__(self) -> None:
        self.asked = False
        self._deferred = False
        self.descriptor, self._other = os.pipe()
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Self:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._signalled)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number, before in self._before.items():
            signal.signal(number, before)
        os.close(self.descriptor)
        os.close(self._other)

    def defer(self) -> None:
        """From now on nothing is interrupted."""
        self._deferred = True

    def _signalled(self, number: int, frame: FrameType | None) -> None:
        if not self._deferred:
            signal.default_int_handler(number, frame)
        if not self.asked:
            self.asked = True
            os.write(self._other, b"x")
