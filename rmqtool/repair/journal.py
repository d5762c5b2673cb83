"""The undo journal: what everything that a plan touches was before, synced before the first change.

A directory: `journal.json` (never changed once it is there), `state.json` (how far things got),
`files/PATH` (whole files that leave the store or are replaced), `ranges/PATH@POSITION` (bytes that are
written over or cut).
"""

from __future__ import annotations

import os
from enum import StrEnum
from typing import Any, Literal, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from formats.java import java_parse_int
from rmqtool.errors import NewerFormatError, UsageError
from rmqtool.repair.facts import Facts, Length, Time
from rmqtool.repair.plan import Location, Plan  # noqa: TC001 - pydantic reads them
from rmqtool.store.names import INT_MAX, escape_name

JOURNAL = "journal.json"
STATE = "state.json"
SCHEMA: Literal["rmqtool.journal/1"] = "rmqtool.journal/1"


_Model = TypeVar("_Model", bound=BaseModel)


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Piece(_Data):
    """A region of an edited file; see `regions.Region`. sha256: of the bytes as they were."""

    position: Length
    before: Length
    after: Length
    sha256: str


class Entry(_Data):
    """One path that a plan touches.

    location: where it lies. made: it is a directory that the plan makes. pieces: of a file that is edited in
    place; None for a path that comes, goes or is replaced as a whole. sha256: of a whole file that was there.
    """

    path: str
    location: Location
    before: Facts
    pieces: tuple[Piece, ...] | None = None
    sha256: str | None = None

    @field_validator("pieces")
    @classmethod
    def _inside(cls, pieces: tuple[Piece, ...] | None, info: ValidationInfo) -> tuple[Piece, ...] | None:
        before = info.data.get("before", Facts())
        if any(one.position + one.before > before.size for one in pieces or ()):
            raise ValueError("a region reaches behind the end of the file")
        return pieces


class Journal(_Data):
    """All that undo needs. directories: facts of those in which names come and go, by location."""

    schema_: Literal["rmqtool.journal/1"] = Field(default=SCHEMA, alias="schema")
    journal_id: str
    tool_version: str
    created_timestamp: int
    store: Location
    marker_directory: Location
    further_markers: tuple[Location, ...] = ()
    """commitlog directories elsewhere, of a multi-path store"""
    made_marker_directory: bool
    made_lock: bool
    entries: tuple[Entry, ...]
    directories: dict[Location, Facts]
    plan: Plan


class Phase(StrEnum):
    """How far things got."""

    PREPARED = "prepared"
    """the journal is complete; the plan was perhaps begun"""
    APPLIED = "applied"
    """all is written; the marker may still be there"""
    DONE = "done"
    UNDOING = "undoing"
    UNDONE = "undone"


class After(_Data):
    """A path behind the apply: its facts, the digest of a whole new file, the digests of pieces in order."""

    facts: Facts
    sha256: str | None = None
    pieces: tuple[str, ...] = ()


class State(_Data):
    """The changing part. after: by path, once applied. skipped: what a partial undo leaves, by key."""

    phase: Phase
    after: dict[str, After] = Field(default_factory=dict)
    directories: dict[Location, Time] = Field(default_factory=dict)
    """modification times of directories behind the apply"""
    skipped: tuple[str, ...] = ()


def journal_directory(given: str) -> str:
    """The directory that JOURNAL means: itself, or the one of its journal file."""
    place = os.path.dirname(os.path.abspath(given)) if os.path.isfile(given) else given
    return os.path.realpath(place)


def parse_as(model: type[_Model], content: dict[str, Any], path: str, what: str) -> _Model:
    """`content` as a model. Raises `NewerFormatError` for a later schema, `UsageError` for other content."""
    field = model.model_fields.get("schema_")
    shown = escape_name(path)
    if field is not None:
        wanted, found = str(field.default), content.get("schema")
        family, _, number = wanted.rpartition("/")
        given_family, _, given = str(found).rpartition("/")
        if given_family != family:
            raise UsageError(f"{shown} is not {what}: schema {str(found)[:80]!r}")
        if given.isdecimal() and (java_parse_int(given) or INT_MAX) > int(number):
            raise NewerFormatError(f"{shown} is of schema {found}, newer than this rmqtool knows ({wanted})")
    try:
        return model.model_validate_json(_json(content))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise UsageError(f"{shown} is not {what}: {place}: {first['msg']}") from None


def _json(content: dict[str, Any]) -> bytes:
    import json

    return json.dumps(content).encode()
