"""A plan: what a changing command read, and the ordered changes it would make. Data, nothing else.

A plan holds digests, not bytes. Planning is deterministic: the same inputs, parameters and release of rmqtool
give the same plan, so a saved plan is applied by planning again and comparing (`repair/saved.py`).
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, PlainSerializer, PlainValidator, ValidationInfo

from rmqtool.store.names import escape_name, may_be_path, unescape_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Self

    from rmqtool.repair.content import Content
    from rmqtool.store.files import StoreFile
    from rmqtool.store.layout import Store

SCHEMA: Literal["rmqtool.plan/1"] = "rmqtool.plan/1"
FROM_DONOR = "donor"
"""why bytes are written that another file has"""
_PROBLEMS = 100
"""problems that a plan lists"""


class Action(StrEnum):
    """What a change does to one path of the store."""

    WRITE = "write"
    """bytes over bytes of an existing file, inside its size"""
    RESIZE = "resize"
    """an existing file is cut, or gets zeros (a hole) at its end"""
    PUT = "put"
    """a file comes into being, or is replaced as a whole"""
    REMOVE = "remove"
    """a file leaves the store; it is kept beside the plan, never destroyed"""
    MAKE_DIRECTORY = "make-directory"
    REMOVE_DIRECTORY = "remove-directory"
    """an empty directory leaves the store"""
    SET_ASIDE = "set-aside"
    """bytes stay where they are but count no longer: a copy of them is kept beside the plan"""


_GIVEN: dict[frozenset[str], set[str]] = {}
"""which fields were given, once for all that were made alike: a set each would be most of a small change"""


class _Data(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    def model_post_init(self, context: Any, /) -> None:  # noqa: ARG002 - pydantic's
        """Shares what no frozen model changes."""
        given = self.__pydantic_fields_set__
        object.__setattr__(self, "__pydantic_fields_set__", _GIVEN.setdefault(frozenset(given), given))


def _read_location(value: Any, info: ValidationInfo) -> str:
    if not isinstance(value, str):
        raise ValueError("is not a path")  # noqa: TRY004 - what pydantic expects
    place = unescape_name(value) if info.mode == "json" else value
    if not may_be_path(place):
        raise ValueError("is not a path")
    return place


Location = Annotated[str, PlainValidator(_read_location), PlainSerializer(escape_name)]
"""an absolute path; in JSON printable, as `escape_name` writes it"""


class Input(_Data):
    """A file that the plan rests on: path relative to the store root, as it was when it was read.

    sha256 is None in a plan that was not saved: it is applied in the run that made it, which compares size,
    modification time and inode instead.
    """

    path: str
    size: int
    mtime_ns: int
    sha256: str | None = None


class Change(_Data):
    """One change. path: relative to the store root, printable (`StoreFile.display_path`).

    position: of WRITE and SET_ASIDE. length, sha256: the bytes written by WRITE and PUT, or set aside.
    size: the file's afterwards. mtime_ns: its modification time afterwards, None to keep the one that it
    has (or, for a new file, the time of writing). why: a stable word of what it repairs ("tombstone",
    "torn-tail", "consumequeue", …). facts: about what it saves or costs, keys and units as in the record
    table.
    """

    action: Action
    path: str
    position: int | None = None
    length: int | None = None
    size: int | None = None
    sha256: str | None = None
    mtime_ns: int | None = None
    why: str
    message: str
    facts: dict[str, Any] = Field(default_factory=dict)


class Cost(_Data):
    """Messages, bytes and store times (epoch ms) of what is saved, or what no policy can save."""

    messages: int | None = None
    """None where it cannot be known"""
    bytes: int = 0
    first_timestamp: int | None = None
    last_timestamp: int | None = None


class UnprovenOffsets(_Data):
    """Messages of a queue from a physical offset on that may stand at other queue offsets than before.

    Nothing in the store tells how many of the messages that were lost in front of them were in the queue.
    """

    topic: str
    queue_id: int
    physical_offset: int
    messages: int


class Undecided(_Data):
    """Two whole records of one queue with one queue offset, of which nothing tells the one that lies.

    physical_offsets: of the one that keeps the queue offset first, then of the other one. Or of a single one
    that stays alone in its queue, while more than one other queue misses it.
    """

    topic: str
    queue_id: int
    queue_offset: int
    physical_offsets: tuple[int, ...]


class Checked(_Data):
    """What looked at the result of a plan before anything was written.

    by: what was done, a line each. problems: what speaks against the plan, the first of them; more: how many
    there are beyond these. remains: harm that a start would do to the store as it is, and to the result too.
    """

    by: tuple[str, ...]
    problems: tuple[str, ...] = ()
    more: int = 0
    remains: tuple[str, ...] = ()

    @classmethod
    def of(cls, by: tuple[str, ...], problems: Iterator[str]) -> Self:
        """Lists the first problems and counts the others."""
        reported = tuple(islice(problems, _PROBLEMS))
        return cls(by=by, problems=reported, more=sum(1 for _ in problems))

    @property
    def proven(self) -> bool:
        """Nothing spoke against it."""
        return not self.problems


class Plan(_Data):
    """What a command would do to a store.

    plan_id: 16 hex digits, a digest of command, parameters and inputs. parameters: all that the planning
    depends on beside the inputs, so that it can be repeated. saved, lost: against what a broker would leave.
    unproven_offsets: what may have moved in it, although no check finds that. undecided: records of which one
    or the other was to be moved or given up, as much as speaks for both. not_salvaged: tables in `config/`
    that stay as they are, though no broker loads or saves them. checked: None where nobody looked, or nothing
    would change and a start does no harm. refusal: why a broker of the release does not start here, of a plan
    that leaves the store as a broker does.
    """

    schema_: Literal["rmqtool.plan/1"] = Field(default=SCHEMA, alias="schema")
    command: str
    plan_id: str
    tool_version: str
    store: Location
    release: str
    parameters: dict[str, Any]
    inputs: tuple[Input, ...]
    changes: tuple[Change, ...]
    saved: Cost = Cost()
    lost: Cost = Cost()
    notes: tuple[str, ...] = ()
    refusal: str | None = None
    unproven_offsets: tuple[UnprovenOffsets, ...] = ()
    undecided: tuple[Undecided, ...] = ()
    not_salvaged: tuple[str, ...] = ()
    checked: Checked | None = None

    @property
    def leaves_harm(self) -> bool:
        """Whether the store is not in order, or not known to be, when all is done."""
        remains = self.checked is not None and self.checked.remains
        unsettled = self.unproven_offsets or self.undecided or self.not_salvaged
        return bool(self.refusal or unsettled or remains)

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


@dataclass(frozen=True, slots=True)
class Edit:
    """A change with the bytes that it writes; `content` is None for actions that write none."""

    change: Change
    content: Content | None = None


@dataclass(frozen=True, slots=True)
class Planned:
    """A plan with its bytes: `edits` are `plan.changes` in order.

    uneven: queues have blank units between others, which a broker's search for the minimum may meet, or units
    elsewhere than where records state. skipping: queues whose records skip queue offsets without a hole, and
    whose units stay.
    """

    plan: Plan
    edits: tuple[Edit, ...] = field(default=())
    uneven: bool = False
    skipping: frozenset[tuple[str, int]] = frozenset()

    def with_check(self, checked: Checked) -> Planned:
        """The same with what a check of its result said."""
        return replace(self, plan=self.plan.model_copy(update={"checked": checked}))


def make_planned(
    command: str,
    store: Store,
    release: str,
    parameters: dict[str, Any],
    edits: Iterable[Edit],
    *,
    inputs: Iterable[StoreFile],
    summary: PlanSummary | None = None,
) -> Planned:
    """The plan of these edits. inputs: the files that it rests on; parameters: plain JSON values.

    The same command, parameters and inputs give the same `plan_id`, whatever the edits are.
    """
    read = tuple(
        Input(path=one.display_path, size=one.size, mtime_ns=one.mtime_ns) for one in inputs if one.regular
    )
    ordered, words = tuple(edits), summary or PlanSummary()
    plan = Plan(
        command=command,
        plan_id=plan_id(command, parameters, read),
        tool_version=tool_version(),
        store=os.path.realpath(store.root),
        release=release,
        parameters=parameters,
        inputs=read,
        changes=tuple(one.change for one in ordered),
        saved=words.saved,
        lost=words.lost,
        notes=words.notes,
        refusal=words.refusal,
        unproven_offsets=words.unproven_offsets,
        undecided=words.undecided,
        not_salvaged=words.not_salvaged,
    )
    return Planned(plan, ordered, words.uneven, words.skipping)


@dataclass(frozen=True, slots=True)
class PlanSummary:
    """What a plan says beside its changes. uneven, skipping: as in `Planned`, for who checks its result."""

    saved: Cost = field(default_factory=lambda: Cost(messages=0))
    lost: Cost = field(default_factory=lambda: Cost(messages=0))
    notes: tuple[str, ...] = ()
    refusal: str | None = None
    unproven_offsets: tuple[UnprovenOffsets, ...] = ()
    undecided: tuple[Undecided, ...] = ()
    not_salvaged: tuple[str, ...] = ()
    uneven: bool = False
    skipping: frozenset[tuple[str, int]] = frozenset()


def tool_version() -> str:
    """The release of rmqtool that makes a plan."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("rmqtool")
    except PackageNotFoundError:
        return "unknown"


def plan_id(command: str, parameters: dict[str, Any], inputs: tuple[Input, ...]) -> str:
    """16 hex digits that stay the same as long as command, parameters and inputs do."""
    digest = hashlib.sha256(command.encode())
    for key in sorted(parameters):
        digest.update(f"\0{key}={parameters[key]!r}".encode())
    for one in inputs:
        digest.update(f"\0{one.path}\0{one.size}\0{one.mtime_ns}".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()[:16]
