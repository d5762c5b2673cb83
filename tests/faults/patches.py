"""Reading the patches and putting them on; nothing but Python is needed, line numbers do not count."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

HERE = Path(__file__).parent
_HEADER = re.compile(r"^(Fault|Room|Command|Caught-by): *(.*)$", re.MULTILINE)
_FILE = re.compile(r"^--- a/(\S+)\n\+\+\+ b/(\S+)\n", re.MULTILINE)
_HUNK = re.compile(r"^@@ .*\n", re.MULTILINE)


class MisfitError(ValueError):
    """A patch that does not fit the source, or is none."""


@dataclass(frozen=True)
class Fault:
    """One patch. edits: by file, the pairs of text that it takes out and puts in."""

    name: str
    text: str

    @cached_property
    def headers(self) -> dict[str, tuple[str, ...]]:
        """Values by header name."""
        found: dict[str, tuple[str, ...]] = {}
        for name, value in _HEADER.findall(self.text.split("\n--- a/", 1)[0]):
            found[name] = (*found.get(name, ()), value.strip())
        return found

    @property
    def caught_by(self) -> tuple[str, ...]:
        """Node ids of tests that fail with the fault."""
        return self.headers.get("Caught-by", ())

    @cached_property
    def edits(self) -> dict[str, list[tuple[str, str]]]:
        """See the class. Raises `MisfitError`."""
        _, *parts = _FILE.split(self.text)
        found = {}
        for before, after, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
            if before != after:
                raise MisfitError(f"{self.name}: {before} and {after}")
            found[before] = [_sides(hunk) for hunk in _HUNK.split(body)[1:]]
        if not found or not all(found.values()):
            raise MisfitError(f"{self.name}: changes nothing")
        return found

    def applied(self, root: Path) -> dict[Path, str]:
        """The changed files of the project at `root`, with their new text. Raises `MisfitError`."""
        found = {}
        for name, pairs in self.edits.items():
            path = root / name
            text = path.read_text(encoding="utf-8") if path.is_file() else ""
            for old, new in pairs:
                if text.count(old) != 1 or old == new:
                    raise MisfitError(f"{self.name}: {name} has {text.count(old)} times what it takes out")
                text = text.replace(old, new)
            found[path] = text
        return found


def faults() -> list[Fault]:
    """All of them, by name."""
    return [Fault(path.stem, path.read_text(encoding="utf-8")) for path in sorted(HERE.glob("*.patch"))]


def _sides(hunk: str) -> tuple[str, str]:
    """The text of a hunk before and after."""
    lines = hunk.splitlines(keepends=True)
    return tuple("".join(line[1:] for line in lines if line[0] in kept) for kept in (" -", " +"))
