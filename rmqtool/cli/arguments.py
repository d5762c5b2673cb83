"""How the arguments of a command are read: positionals may start with `-`, and `--body` may stand alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import typer
import typer.core

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

BODY_FORMS = frozenset({"auto", "utf8", "gbk", "hex", "base64", "none"})
"""values of --body, see `filters.BodyOptions`"""

DRAWN = "-"
"""what --plot means by itself: on the screen"""
_OPTIONAL_VALUES: Mapping[str, tuple[str, Callable[[str], bool]]] = {
    "--body": ("auto", BODY_FORMS.__contains__),
    "--plot": (DRAWN, lambda word: word.lower().endswith((".svg", ".png"))),
}
"""options that may stand alone: what they mean then, and which values they take"""


def flags_without_type(parameters: list[Any]) -> list[Any]:
    """`parameters`; help would show `<bool>` behind an option that takes no value."""
    for one in parameters:
        if isinstance(one, typer.core.TyperOption) and one.is_flag:
            one.metavar = ""
    return parameters


_ALL = "--help-all"


class Documented(NamedTuple):
    """What a page of help says of a command: its docstring, and examples."""

    doc: str
    examples: tuple[str, ...]


class VerbCommand(typer.core.TyperCommand):
    """A command whose positionals may start with `-` (an age `-2h`, a key `-k1`)."""

    documented: Documented
    """set by who loads the command"""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The page of `--help`, of `--help-all` with every option explained."""
        from rmqtool.cli.helping import command_page

        formatter.write(command_page(self, ctx, full=ctx.meta.get(_ALL, False)))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Moves positionals behind `--`, where the parser takes them as they are."""
        if not ctx.resilient_parsing:
            if _ALL in args[: args.index("--")] if "--" in args else _ALL in args:
                ctx.meta[_ALL] = True
                args = ["--help"]
            args = split_arguments(args, self._options(ctx), self._alone(ctx))
        try:
            return super().parse_args(ctx, args)
        except typer.TyperException as error:
            if getattr(error, "ctx", None) is None:
                error.ctx = ctx  # type: ignore[attr-defined]  # whose help the message points to
            raise

    def get_params(self, ctx: Any) -> list[Any]:
        """All parameters, flags without a type."""
        return flags_without_type(super().get_params(ctx))

    def _options(self, ctx: Any) -> dict[str, bool]:
        """Every option string of the command, and whether a value follows it."""
        takes_value: dict[str, bool] = {}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, typer.core.TyperOption):
                for name in (*parameter.opts, *parameter.secondary_opts):
                    takes_value[name] = not (parameter.is_flag or parameter.count)
        return takes_value

    def _alone(self, ctx: Any) -> set[str]:
        """Options that may stand alone: those of `_OPTIONAL_VALUES`, but not a --body that takes any text."""
        found: set[str] = set()
        for parameter in self.get_params(ctx):
            if isinstance(parameter, typer.core.TyperOption):
                alone = {name for name in parameter.opts if name in _OPTIONAL_VALUES}
                found |= alone if parameter.type_descriptor.choices else alone - {"--body"}
        return found


def split_arguments(
    args: Iterable[str], takes_value: Mapping[str, bool], alone: Collection[str]
) -> list[str]:
    """`args` in the order options, `--`, positionals.

    What starts with `--` is an option, known or not, so that a mistyped one is reported. What starts with a
    single `-` is an option only when its first letter is one; otherwise it is a positional. An option of
    `alone` without one of its values gets its default.
    """
    options: list[str] = []
    positionals: list[str] = []
    rest = list(args)
    while rest:
        word = rest.pop(0)
        if word == "--":
            positionals += rest
            break
        if not _is_option(word, takes_value):
            positionals.append(word)
            continue
        if word in alone:
            default, is_value = _OPTIONAL_VALUES[word]
            options += [word, rest.pop(0) if rest and is_value(rest[0]) else default]
        elif not _wants_value(word, takes_value):
            options.append(word)
        elif rest:
            options += [word, rest.pop(0)]
        else:
            return [*options, word]  # the parser says what is missing
    return [*options, "--", *positionals]


def _is_option(word: str, takes_value: Mapping[str, bool]) -> bool:
    if word.startswith("--"):
        return True
    if len(word) < 2 or word[0] != "-":
        return False
    return _cluster_end(word, takes_value) is not None


def _wants_value(word: str, takes_value: Mapping[str, bool]) -> bool:
    if word.startswith("--"):
        return takes_value.get(word, False)
    return _cluster_end(word, takes_value) == "next"


def _cluster_end(word: str, takes_value: Mapping[str, bool]) -> str | None:
    """How `-abc` ends: "flag", "value" (`-n5`), "next" when the value is the next word; None: no options."""
    for place, letter in enumerate(word[1:], 2):
        wants = takes_value.get(f"-{letter}")
        if wants is None:
            return None
        if wants:
            return "next" if place == len(word) else "value"
    return "flag"
