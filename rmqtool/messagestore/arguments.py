"""Arguments of public calls, held against the types that their annotations name.

Without it an argument of a wrong type is an `AttributeError` from somewhere inside, or worse a wrong answer:
no queue has the number `"0"`.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache, wraps
from inspect import signature
from operator import index
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from rmqtool.errors import UsageError
from rmqtool.messagestore.messages import AppendContext, Message, StoredMessage
from rmqtool.messagestore.records import is_integer

if TYPE_CHECKING:
    from collections.abc import Callable

_Class = TypeVar("_Class", bound=type)
_Method = TypeVar("_Method", bound="Callable[..., Any]")
_SHOWN = 60
"""characters of a value in an error"""


class _Kind(NamedTuple):
    """What an annotation stands for. exact: types that need no look. again: it is gone through repeatedly."""

    words: str
    exact: frozenset[type]
    fits: Callable[[object], bool]
    again: bool = False


def _is_one_of(*types: type) -> Callable[[object], bool]:
    return lambda value: isinstance(value, types)


def _is_several(element: type) -> Callable[[object], bool]:
    """Elements of what can be gone through once only are not looked at."""

    def fits(value: object) -> bool:
        if not isinstance(value, Iterable) or isinstance(value, (str, bytes)):
            return False
        types = set(map(type, value)) if isinstance(value, Collection) else ()
        return all(issubclass(one, element) for one in types)

    return fits


_KINDS = {
    "None": _Kind("None", frozenset({type(None)}), _is_one_of(type(None))),
    "str": _Kind("a string", frozenset({str}), _is_one_of(str)),
    "int": _Kind("an integer", frozenset({int}), is_integer),
    "float": _Kind(
        "a number", frozenset({float, int}), lambda value: hasattr(value, "__float__") or is_integer(value)
    ),
    "os.PathLike[str]": _Kind("a path", frozenset(), _is_one_of(os.PathLike)),
    "Mapping[str, str]": _Kind("a mapping", frozenset({dict}), _is_one_of(Mapping)),
    "Message": _Kind("a Message", frozenset({Message}), _is_one_of(Message)),
    "StoredMessage": _Kind("a StoredMessage", frozenset({StoredMessage}), _is_one_of(StoredMessage)),
    "AppendContext": _Kind("an AppendContext", frozenset({AppendContext}), _is_one_of(AppendContext)),
    "Sequence[str]": _Kind("strings", frozenset(), _is_several(str), again=True),
    "Iterable[Message]": _Kind("messages", frozenset(), _is_several(Message)),
    "Sequence[AppendContext]": _Kind("contexts", frozenset(), _is_several(AppendContext), again=True),
    "pa.Table": _Kind("a table", frozenset(), lambda value: hasattr(value, "__arrow_c_stream__")),
    "Callable[[], int]": _Kind("a function", frozenset({FunctionType}), callable),
    "Handler": _Kind("a function", frozenset({FunctionType}), callable),
    "Listener": _Kind("a function", frozenset({FunctionType}), callable),
}


def _kind_of(annotation: str) -> _Kind | None:
    """None for what is not looked at here."""
    parts = [_KINDS.get(one) for one in annotation.split(" | ")]
    known = [one for one in parts if one is not None]
    if len(known) < len(parts):
        return None
    return _Kind(
        " or ".join(one.words for one in known),
        frozenset().union(*(one.exact for one in known)),
        lambda value: any(one.fits(value) for one in known),
        any(one.again for one in known),
    )


class _Signature:
    """What the arguments of a method have to be."""

    def __init__(self, method: Callable[..., Any]) -> None:
        names = list(signature(method).parameters)[1:]
        self._kinds = {name: _kind_of(method.__annotations__[name]) for name in names}
        self._exact = [(None if kind is None else kind.exact, name) for name, kind in self._kinds.items()]

    def demand(
        self, args: tuple[Any, ...], named: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The arguments, all integers as `int`. Raises `UsageError` for the first that is wrong."""
        for number, (value, (exact, name)) in enumerate(zip(args, self._exact, strict=False)):
            if exact is not None and value.__class__ not in exact:
                args = (*args[:number], self._plain(name, value), *args[number + 1 :])
        return args, {name: self._plain(name, value) for name, value in named.items()}

    def _plain(self, name: str, value: Any) -> Any:
        kind = self._kinds.get(name)
        if kind is None or value.__class__ in kind.exact:
            return value
        if kind.again and isinstance(value, Iterator):
            value = list(value)
        if not kind.fits(value):
            shown = repr(value)
            shown = shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"
            raise UsageError(f"{name} is {shown}, not {kind.words}")
        # of NumPy's integers a product may overflow
        return index(value) if int in kind.exact and is_integer(value) else value


_signature_of = cache(_Signature)


def demand(method: Callable[..., Any], *args: Any, **named: Any) -> tuple[Any, ...]:
    """`args` as `checked` hands them on, for a method that calls it where it has no quick answer."""
    return _signature_of(method).demand(args, named)[0]


def checked(method: _Method) -> _Method:
    """A method that raises `UsageError` for an argument that is not what its annotation says."""
    expected = _Signature(method)

    @wraps(method)
    def call(self: Any, *args: Any, **named: Any) -> Any:
        args, named = expected.demand(args, named)
        return method(self, *args, **named)

    return cast("_Method", call)


def all_checked(*but: str) -> Callable[[_Class], _Class]:
    """Makes the public methods of a class `checked`, those that it inherits among them.

    but: those that look at their arguments themselves, as the look takes a good part of a call's time.
    """

    def made(of: _Class) -> _Class:
        for name in dir(of):
            found = next(one.__dict__[name] for one in of.__mro__ if name in one.__dict__)
            if name.startswith("_") or name in but:
                continue
            if isinstance(found, FunctionType):
                setattr(of, name, checked(found))
            elif isinstance(found, classmethod):
                setattr(of, name, classmethod(checked(found.__func__)))
        return of

    return made
