"""What the parameters of a saved plan may be: the file may have been changed by anybody since."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from formats.checkpoint import CHECKPOINT_FIELDS
from rmqtool.errors import UsageError
from rmqtool.store.names import may_be_path, unescape_name
from rmqtool.store.releases import RELEASES

if TYPE_CHECKING:
    from collections.abc import Mapping


def _known(name: str) -> str:
    if name not in RELEASES:
        raise ValueError("is not a release of RocketMQ known here")
    return name


def _field(name: str) -> str:
    if name not in CHECKPOINT_FIELDS:
        raise ValueError("is not a field of a checkpoint")
    return name


def _path(shown: str) -> str:
    if not may_be_path(unescape_name(shown)):
        raise ValueError("is not a path")
    return shown


_Release = Annotated[str, AfterValidator(_known)]
_Long = Annotated[int, Field(ge=-(1 << 63), lt=1 << 63)]


class _Data(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")


class _Recover(_Data):
    policy: Literal["keep", "broker"]
    release: _Release | None
    damaged_body: Literal["tombstone", "keep"]
    donors: list[Annotated[str, AfterValidator(_path)]]


class _Rebuild(_Data):
    release: _Release
    what: list[Literal["cq", "index"]]
    topic: list[str]
    queue: list[int]
    keep_expired: bool
    deleted_topics: bool
    complete: bool
    tz: str
    restore_topics: bool


class _SetCheckpoint(_Data):
    release: _Release
    values: dict[Annotated[str, AfterValidator(_field)], _Long]


class _Offsets(_Data):
    release: _Release
    group: list[str]
    topic: list[str]
    kind: list[Literal["consumer", "delay", "lmq"]]


class _Clamp(_Offsets):
    to: Literal["nearest", "min", "max"] | _Long


class _Merge(_Offsets):
    other: Annotated[str, AfterValidator(_path)]
    other_sha256: str
    policy: Literal["max", "min", "prefer-a", "prefer-b"]


class _Salvage(_Data):
    release: _Release
    table: list[str]
    topic: list[str]


_BY_COMMAND: dict[str, type[_Data]] = {
    "recover": _Recover,
    "rebuild": _Rebuild,
    "checkpoint set": _SetCheckpoint,
    "offsets clamp": _Clamp,
    "offsets merge": _Merge,
    "config salvage": _Salvage,
}


def check_parameters(command: str, parameters: Mapping[str, Any], shown: str) -> None:
    """Raises `UsageError` for parameters that planning of this command never makes."""
    try:
        _BY_COMMAND[command].model_validate(dict(parameters))
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, ("parameters", *first["loc"])))
        raise UsageError(f"{shown} is not a saved plan: {place}: {first['msg']}") from None
