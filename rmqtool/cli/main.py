"""The program `rmqtool`: the only place where errors become messages and exit codes."""

from __future__ import annotations

import gc
import os
import signal
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated

import typer
import typer.main

from rmqtool.cli.commands import LazyGroup
from rmqtool.cli.invocation import remember
from rmqtool.errors import ABANDONED, ExitCode, RmqtoolError
from rmqtool.output.text import safe
from rmqtool.secrets import hide

if TYPE_CHECKING:
    from collections.abc import Sequence

PROGRAM = "rmqtool"
_LONGEST = 16384
"""characters of an error, more than two paths have"""

_COLLECTED = 200_000
"""objects between two garbage collections: those while modules are loaded find nothing, and took a tenth of a
short command"""

_BARE = """\
rmqtool doctor STORE   is it safe to start this broker, and what will it do?
rmqtool recover STORE  keeps every intact message; a plan, without --apply
rmqtool --help         see, query, repair, many stores at once; with examples
"""

app = typer.Typer(
    name=PROGRAM,
    cls=LazyGroup,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import PackageNotFoundError, version

        try:
            number = version(PROGRAM)
        except PackageNotFoundError:
            number = "(run from its source, not installed)"
        sys.stdout.write(f"{PROGRAM} {number}\n")
        raise typer.Exit


@app.callback(
    epilog="Read commands never write in the store. Exit codes: 0 clean, 1 damage, 2 usage, 3 incomplete. "
    "rmqtool --install-completion teaches your shell."
)
def _program(
    ctx: typer.Context,
    version: Annotated[  # noqa: ARG001 - its callback answers
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Inspects, repairs and queries Apache RocketMQ stores, one or many, without a broker."""
    if ctx.invoked_subcommand is None:
        sys.stdout.write(_BARE)


def run(argv: Sequence[str]) -> int:
    """Runs the program with these arguments and returns its exit code; every error ends here."""
    remember(argv)
    try:
        code = _dispatch(list(argv))
        sys.stdout.flush()
    except SystemExit as stop:  # rich's answer to a closed pipe, and completion's end
        return ExitCode.CLOSED_PIPE if isinstance(stop.__context__, BrokenPipeError) else int(stop.code or 0)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the boundary: whatever is left is one line
        return _report(error, debug="--debug" in argv)
    return code


def main() -> None:
    """Entry point of the console script."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # started with the descriptor closed
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - for the process's life
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        # asked to end, as at Ctrl-C: the listing is closed with what was covered
        signal.signal(signal.SIGTERM, signal.default_int_handler)
    gc.set_threshold(_COLLECTED, 10, 10)
    # pydantic, which typer and plans are built on, looks through all packages for plugins otherwise
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
    # NumPy's linear algebra, which nothing here asks for, starts a thread for each core and lets it spin
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    code = run(sys.argv[1:])
    _settle()
    if any(one.name == ABANDONED for one in threading.enumerate()):
        os._exit(code)
    if "duckdb" not in sys.modules:  # which reports objects that nobody looks at any more as leaked
        gc.freeze()  # else the interpreter looks at every object once more before it drops them
    sys.exit(code)


def _dispatch(argv: list[str]) -> int:
    program = typer.main.get_command(app)
    if "_RMQTOOL_COMPLETE" in os.environ:
        program.main(argv, prog_name=PROGRAM)  # answers the shell and exits
    try:
        # Not program.main(): that turns a broken pipe into exit 1 and swallows an interrupt.
        with program.make_context(PROGRAM, argv) as context:
            return int(program.invoke(context) or ExitCode.OK)
    except typer.Exit as stop:
        return stop.exit_code


def _report(error: BaseException, *, debug: bool) -> int:
    """One line on stderr, or none where the contract wants silence; the exit code."""
    if isinstance(error, BrokenPipeError):
        return ExitCode.CLOSED_PIPE
    if isinstance(error, (KeyboardInterrupt, typer.Abort)):
        return ExitCode.INTERRUPTED
    if debug:
        import traceback

        stack = hide("".join(traceback.format_exception(error)).rstrip("\n"))
        _say("\n".join(map(safe, stack.split("\n"))))
    if isinstance(error, RmqtoolError):
        _say(f"{PROGRAM}: {_one_line(str(error))}")
        return error.exit_code
    if isinstance(error, typer.TyperException):
        _say(f"{PROGRAM}: {_usage(error)}")
        return ExitCode.USAGE
    if isinstance(error, OSError) and error.strerror:
        place = f"{os.fsdecode(error.filename)}: " if error.filename is not None else ""
        _say(f"{PROGRAM}: {_one_line(place + error.strerror)}")
        return ExitCode.INTERNAL
    if isinstance(error, MemoryError):
        _say(f"{PROGRAM}: not enough memory (--debug shows for what)")
        return ExitCode.INTERNAL
    _say(f"{PROGRAM}: internal error: {type(error).__name__}: {_one_line(str(error))} (--debug shows where)")
    return ExitCode.INTERNAL


def _usage(error: typer.TyperException) -> str:
    """What is wrong with the arguments, and where to read on."""
    context = getattr(error, "ctx", None)
    message = error.format_message().replace("Value error, ", "")  # pydantic's words, not the user's
    return f"{_one_line(message)} (see '{context.command_path if context else PROGRAM} --help')"


def _one_line(text: str) -> str:
    line = safe(hide(" ".join(text.split())))
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def _say(text: str) -> None:
    with suppress(OSError, ValueError):  # nobody left to tell
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()


def _settle() -> None:
    """What cannot be written any more is dropped here, not complained about when the interpreter ends."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
