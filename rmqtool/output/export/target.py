"""Where an export goes: written beside its place under another name, put there when it is whole.

`NAME.part` holds what is written so far, `NAME.part.json` what is needed to go on from there.
"""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any

from rmqtool.errors import StoreIOError, UsageError
from rmqtool.output.jsonrows import encode

if TYPE_CHECKING:
    from pathlib import Path

STATE_SCHEMA = "rmqtool.export-state/1"
MARKER = "_rmqtool-export.json"
"""in a directory that an export has made; only such a directory is ever replaced"""

State = dict[str, Any]


class Target:
    """One file, or with `directory` a directory. Nothing is touched before `begin`."""

    def __init__(self, path: Path, *, directory: bool) -> None:
        if not path.name:
            raise UsageError(f"--to: {path} exists and is not replaced")
        self.path = path
        self.part = path.with_name(path.name + ".part")
        self._state = path.with_name(path.name + ".part.json")
        self._directory = directory
        self._force = False

    def begin(self, *, force: bool, resume: bool, options: State) -> State | None:
        """What to go on from, None at a new start.

        options: what has to be the same when an export goes on. Raises `UsageError` rather than writing over
        anything without `force`.
        """
        self._force = force
        if not self.path.parent.is_dir():
            raise UsageError(f"--to: there is no directory {self.path.parent}")
        self._refuse_existing()
        begun = os.path.lexists(self.part) or os.path.lexists(self._state)
        if resume and begun:
            return self._continued(options)
        if begun and not force:
            raise UsageError(
                f"{self.part} is what an interrupted export left: --resume goes on, --force starts anew"
            )
        if begun:
            self.discard()
        return None

    def _refuse_existing(self) -> None:
        if not os.path.lexists(self.path):
            return
        if not self._force:
            empty = self._directory and self.path.is_dir() and not any(self.path.iterdir())
            if not empty:
                raise UsageError(f"{self.path} exists; --force replaces it")
        elif not self._directory:
            if self.path.is_dir() or not self.path.is_file():
                raise UsageError(f"{self.path} is no plain file and is not replaced")
        elif not self.path.is_dir() or not ((self.path / MARKER).is_file() or not any(self.path.iterdir())):
            raise UsageError(f"{self.path} was not made by an export and is not replaced")

    def _continued(self, options: State) -> State | None:
        try:
            state: State = json.loads(self._state.read_bytes())
        except FileNotFoundError:
            state = {"schema": STATE_SCHEMA, "options": options, "position": None}
        except (OSError, ValueError) as error:
            raise UsageError(f"{self._state} cannot be read ({error}); --force starts anew") from error
        if state.get("schema") != STATE_SCHEMA:
            raise UsageError(f"{self._state} is of another release; --force starts anew")
        before = state["options"]
        differing = sorted(
            name for name in options.keys() | before.keys() if options.get(name) != before.get(name)
        )
        if differing:
            raise UsageError(
                f"--resume: not the options of the interrupted export: {', '.join(differing)} differ"
            )
        if state["position"] is None:
            self.discard()
            return None
        return state

    def save(self, state: State) -> None:
        """Puts down what is needed to go on, in one step."""
        fresh = self._state.with_name(self._state.name + ".new")
        with self._failing():
            with fresh.open("wb") as stream:
                stream.write(encode({"schema": STATE_SCHEMA, **state}))
                stream.flush()
                os.fsync(stream.fileno())
            fresh.replace(self._state)

    def publish(self, made: Path) -> None:
        """Gives what was written its name; `made` is it, on disk already."""
        with self._failing():
            if self._directory:
                self._replace_directory(made)
            elif self._force:
                made.replace(self.path)
            else:
                self._place(made)
            self._state.unlink(missing_ok=True)
            if self.part.is_dir():
                shutil.rmtree(self.part)
            sync(self.path.parent)

    def _place(self, made: Path) -> None:
        """Under its name, unless something took it meanwhile."""
        try:
            os.link(made, self.path)
        except FileExistsError:
            raise UsageError(f"{self.path} has appeared meanwhile; the export is {made}") from None
        except OSError:  # no links here
            self._refuse_existing()
            made.replace(self.path)
        else:
            made.unlink()

    def _replace_directory(self, made: Path) -> None:
        self._refuse_existing()
        if self.path.is_dir():
            if any(self.path.iterdir()):
                shutil.rmtree(self.path)
            else:
                self.path.rmdir()
        made.replace(self.path)

    def discard(self) -> None:
        """Removes what an interrupted export left."""
        with self._failing():
            if self.part.is_dir() and not self.part.is_symlink():
                shutil.rmtree(self.part)
            else:
                self.part.unlink(missing_ok=True)
            self._state.unlink(missing_ok=True)

    def _failing(self) -> writing:
        return writing(self.path)


class writing:  # noqa: N801 - used as a context manager
    """Turns what the system says about a file into one line."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise refused(self._path, error) from error


def refused(path: Path, error: OSError) -> StoreIOError:
    """What the system says about writing a file."""
    return StoreIOError(f"{path} cannot be written: {error.strerror or error}")


def sync(path: Path) -> None:
    """Makes a file, or the names in a directory, last."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
