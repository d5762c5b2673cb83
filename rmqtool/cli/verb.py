"""How a command module declares its command: `@verb(...)` over a function that takes option groups."""

from __future__ import annotations

import inspect
import os
from dataclasses import MISSING, fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_type_hints

from rmqtool.cli.options import FORMATS, OutputOptions

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_FAR = "rmqtool.cli.pipeline."
"""modules of commands that read stores at addresses"""
_PATHS = ("STORE", "DIR", "FILE", "PATH", "JOURNAL")


def verb(
    *, examples: Sequence[str], formats: Sequence[str] = FORMATS
) -> Callable[[Callable[..., int | None]], Callable[..., int | None]]:
    """Makes a typer callback of a function that takes option groups.

    Every parameter whose annotation is a dataclass of `typer.Option`s is replaced by the options themselves;
    the function gets the filled dataclass. `examples` close the command's help, `formats` are what --format
    takes (the first is the default). The function returns an `ExitCode`, or None for OK.
    """

    def declare(function: Callable[..., int | None]) -> Callable[..., int | None]:
        hints = get_type_hints(function, include_extras=True)
        groups: dict[str, Any] = {name: hint for name, hint in hints.items() if is_dataclass(hint)}
        parameters = _parameters(function, hints, groups, tuple(formats))
        paths = () if function.__module__.startswith(_FAR) else tuple(filter(_is_path, parameters))

        def command(**values: Any) -> int | None:
            for one in paths:
                _refuse_addresses(values.get(one.name))
            filled = {
                name: group(**{field.name: values.pop(field.name) for field in fields(group)})
                for name, group in groups.items()
            }
            before = os.umask(0o077)
            os.umask(before)
            try:
                return function(**values, **filled)
            finally:
                os.umask(before)  # a command that writes has narrowed it to the readers of its store

        command.__name__ = function.__name__
        command.__doc__ = function.__doc__
        command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {item.name: item.annotation for item in parameters}
        command.examples = tuple(examples)  # type: ignore[attr-defined]
        return command

    return declare


def _is_path(parameter: inspect.Parameter) -> bool:
    """Whether it is for paths of this machine, by what help shows for its value."""
    info = get_args(parameter.annotation)[1:]
    return any((getattr(one, "metavar", None) or "").startswith(_PATHS) for one in info)


def _refuse_addresses(value: Any) -> None:
    for one in value if isinstance(value, (list, tuple)) else [value]:
        if isinstance(one, str) and "://" in one:
            from rmqtool.store.remote.address import refuse_address

            refuse_address(one)


def _parameters(
    function: Callable[..., int | None],
    hints: dict[str, Any],
    groups: dict[str, Any],
    formats: tuple[str, ...],
) -> list[inspect.Parameter]:
    """The flat parameters, arguments before options as the function lists them."""
    flat: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(function).parameters.items():
        if name not in groups:
            flat.append(_keyword(name, parameter.default, hints[name]))
            continue
        group = groups[name]
        group_hints = get_type_hints(group, include_extras=True)
        for field in fields(group):
            default = inspect.Parameter.empty if field.default is MISSING else field.default
            hint = group_hints[field.name]
            if group is OutputOptions and field.name == "format":
                hint = Annotated[Literal[formats] | None, *get_args(hint)[1:]]
            flat.append(_keyword(field.name, default, hint))
    return flat


def _keyword(name: str, default: Any, annotation: Any) -> inspect.Parameter:
    kind = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(name, kind, default=default, annotation=annotation)
