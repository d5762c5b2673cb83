"""Where an export goes: written beside its place under another name, put there when it is whole.

`NAME.part` holds what is written so far, `NAME.part.json` what is needed to go on from there.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from rmqtool.errors import StoreIOError, UsageError
from rmqtool.output.jsonrows import encode
from rmqtool.store.writing import Folder, shown_path, way_to

STATE_SCHEMA = "rmqtool.export-state/1"
MARKER = "_rmqtool-export.json"
"""in a directory that an export has made or is making; only such a directory is ever replaced"""

State = dict[str, Any]


class Target:
    """One file, or with `directory` a directory. Nothing is touched before `begin`.

    part: what is written so far is called so. From `begin` on the directory that it lies in is held.
    option: which names the path.
    """

    def __init__(self, path: Path, *, directory: bool, option: str = "--to") -> None:
        if not path.name:
            raise UsageError(f"{option}: {path} exists and is not replaced")
        self._option = option
        self.path = path
        self.part = path.with_name(path.name + ".part")
        self._state = self.part.name + ".json"
        self._directory = directory
        self._force = False
        self._folder: Folder
        self._inside: Folder | None = None

    def begin(self, *, force: bool, resume: bool, options: State, useless: str | None = None) -> State | None:
        """What to go on from, None at a new start.

        options: what has to be the same when an export goes on. useless: what an interrupted export left is
        removed when a directory of this name is in it. Raises `UsageError` rather than writing over
        anything without `force`, or behind another user's link.
        """
        self._force = force
        if not self.path.parent.is_dir():
            raise UsageError(f"{self._option}: there is no directory {self.path.parent}")
        with self._failing():
            self._folder, missing = way_to(self.path.parent, self._option)
        if missing:
            raise UsageError(f"{self._option}: there is no directory {self.path.parent}")
        self._refuse_existing()
        if useless is not None and os.path.isdir(f"{self._folder.here}/{self.part.name}/{useless}"):
            self.discard()
        begun = self._folder.has(self.part.name) or self._folder.has(self._state)
        if resume and begun:
            return self._continued(options)
        if begun and not force:
            raise UsageError(
                f"{self.part} is what an interrupted export left: --resume continues, --force starts over"
            )
        if begun:
            self.discard()
        return None

    def _refuse_existing(self) -> None:
        name = self.path.name
        if not self._folder.has(name):
            return
        found = Path(self._folder.here, name)
        if not self._force:
            empty = self._directory and found.is_dir() and not any(found.iterdir())
            if not empty:
                raise UsageError(f"{self.path} exists; --force replaces it")
        elif not self._directory:
            if found.is_dir() or not found.is_file():
                raise UsageError(f"{self.path} is not a plain file and is not replaced")
        elif not found.is_dir() or not ((found / MARKER).is_file() or not any(found.iterdir())):
            raise UsageError(f"{self.path} was not made by an export and is not replaced")

    def require(self, place: str, size: int) -> None:
        """What an interrupted export wrote is all there: cut or lost, its messages would be missing unsaid.

        place: what of it, behind the name of the part. Raises `UsageError`.
        """
        path = f"{self.part.name}{place}"
        try:
            there = os.stat(f"{self._folder.here}/{path}").st_size
        except OSError:
            there = -1
        if there < size:
            now = "is not there" if there < 0 else f"has {there} bytes"
            raise UsageError(
                f"--resume: {self.part}{place} {now}, the interrupted export had written {size}; "
                "--force starts over"
            )

    def open_part(self, *, fresh: bool) -> int:
        """A descriptor of the file that is written, a new one or the one that is there."""
        with writing(self.part):
            return self._folder.create(self.part.name) if fresh else self._folder.again(self.part.name)

    def open_parts(self, *, fresh: bool, mode: int = 0o700) -> Path:
        """The directory that is written, a new one or the one that is there, held and this user's alone.

        mode: of a new one that others have to write in, too.
        """
        with writing(self.part):
            if fresh:
                inside = self._folder.make(self.part.name, mode)
                inside.write(MARKER, b"")
            else:
                inside = self._folder.enter(self.part.name)
                inside.set_mode(0o700)
        self._inside = inside
        return Path(inside.here)

    def _continued(self, options: State) -> State | None:
        try:
            with open(self._folder.again(self._state), "rb") as file:
                state = json.load(file)
        except FileNotFoundError:
            state = {"schema": STATE_SCHEMA, "options": options, "position": None}
        except (OSError, ValueError) as error:
            raise UsageError(f"{self.part}.json cannot be read ({error}); --force starts over") from error
        if not isinstance(state, dict) or state.get("schema") != STATE_SCHEMA:
            raise UsageError(f"{self.part}.json is of another release; --force starts over")
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
        fresh = f"{self._state}.new"
        with self._failing():
            self._folder.remove(fresh)
            self._folder.write(fresh, encode({"schema": STATE_SCHEMA, **state}))
            self._folder.rename(fresh, self._state)

    def publish(self, made: str | None = None) -> None:
        """Gives what was written its name, on disk already.

        made: one file of the directory that is written.
        """
        with self._failing():
            if self._directory:
                self._replace_directory()
            elif made is None:
                self._place(self._folder, self.part.name)
            elif self._inside is not None:
                self._place(self._inside, made)
            self._folder.remove(self._state)
            if not self._directory and self._inside is not None:
                self._folder.remove_held(self.part.name, self._inside)
            self._folder.sync()

    def _place(self, folder: Folder, name: str) -> None:
        """Under its name, unless something took it meanwhile."""
        if self._force:
            folder.rename(name, self.path.name, into=self._folder)
            return
        try:
            folder.link(name, self.path.name, into=self._folder)
        except FileExistsError:
            raise UsageError(f"{self.path} was created meanwhile; the export is {self.part}") from None
        except OSError:  # no links here
            self._refuse_existing()
            folder.rename(name, self.path.name, into=self._folder)
        else:
            folder.remove(name)

    def _replace_directory(self) -> None:
        self._refuse_existing()
        self._folder.remove_made(self.path.name, MARKER)
        if self._inside is not None:
            self._inside.show()
        self._folder.rename(self.part.name, self.path.name)

    def discard(self) -> None:
        """Removes what an interrupted export left."""
        with self._failing():
            if os.path.isdir(f"{self._folder.here}/{self.part.name}"):
                try:
                    self._folder.remove_made(self.part.name, MARKER)
                except FileExistsError:
                    raise UsageError(f"{self.part} was not made by an export and is not replaced") from None
            self._folder.remove(self.part.name)
            self._folder.remove(self._state)

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
    return StoreIOError(f"{shown_path(str(path))} cannot be written: {error.strerror or error}")


def sync(path: Path) -> None:
    """Makes a file, or the names in a directory, last."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
