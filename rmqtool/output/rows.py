"""Rows on their way out: one interface for all forms, and the rules that every closing summary follows."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from rmqtool.errors import UnreadableError
from rmqtool.store.coverage import Incomplete, unreadable

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from rmqtool.output.stream import ByteOut

Row = dict[str, Any]
Summary = dict[str, Any]


class Rows(ABC):
    """A listing in one form. Used as a context manager; `finish` closes it with the summary.

    Rows are plain dicts in contract vocabulary (str, int, float, bool, None, lists and dicts of them): bytes
    have become `…_hex` or `…_base64` before. When the block is left by an interrupt or an `UnreadableError`
    before `finish`, the listing is closed with what `covered` tells, `complete` false and the reason.
    """

    def __init__(self, out: ByteOut, schema: str) -> None:
        self.out = out
        self.schema = schema
        self.covered: Callable[[], Mapping[str, Any]] = dict
        """gives the summary of what was covered so far; set by the command"""
        self.left: Callable[[Incomplete], Sequence[Row]] = lambda _: ()
        """gives what was not covered yet, as rows of `not_covered`; set by the command"""
        self._finished = False

    def write_rows(self, rows: Iterable[Row]) -> None:
        """Takes rows one by one."""
        self._emit(rows)

    def write_columns(
        self, names: Sequence[str], columns: Sequence[Iterable[Any]], *, omit_null: Collection[str] = ()
    ) -> None:
        """Takes many rows as columns of equal length.

        One of the columns may be `itertools.repeat(value)`. Keys in `omit_null` are left out of the rows
        where their value is None.
        """
        kept, lists, mixed = _without_nulls(names, columns, omit_null)
        rows: Iterable[Row] = (dict(zip(kept, row, strict=True)) for row in zip(*lists, strict=False))
        if mixed:
            rows = (_drop_nulls(row, mixed) for row in rows)
        self._emit(rows)

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Closes the listing. `summary` has `complete`, and `incomplete_reason` when that is false."""
        self._finished = True
        self._close({"schema": self.schema, **_checked(summary)})
        self.out.flush()

    def flush(self) -> None:
        """Everything taken so far becomes visible."""
        self.out.flush()

    @abstractmethod
    def _emit(self, rows: Iterable[Row]) -> None: ...

    @abstractmethod
    def _close(self, summary: Summary) -> None: ...

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._finished or isinstance(error, BrokenPipeError):
            return
        if isinstance(error, KeyboardInterrupt):
            reason = Incomplete.INTERRUPTED
            self.finish(cut_short(self.covered(), reason, self.left(reason)))
        elif isinstance(error, UnreadableError):
            lost = unreadable(error.path, error.reason, error.offset, error.length)
            rows = [lost, *self.left(Incomplete.UNREADABLE)]
            self.finish(cut_short(self.covered(), Incomplete.UNREADABLE, rows))
        else:
            self.out.flush()


def cut_short(summary: Mapping[str, Any], reason: Incomplete, left: Sequence[Row]) -> Summary:
    """The summary of an answer that ended early, with what it did not cover."""
    missing = [*summary.get("not_covered", ()), *left]
    return {**summary, "complete": False, "incomplete_reason": reason.value, "not_covered": missing}


def _checked(summary: Mapping[str, Any]) -> Mapping[str, Any]:
    if summary["complete"] is False and not summary.get("incomplete_reason"):
        raise ValueError("a summary that is not complete says why")
    return summary


def _without_nulls(
    names: Sequence[str], columns: Sequence[Iterable[Any]], omit_null: Collection[str]
) -> tuple[list[str], list[Iterable[Any]], set[str]]:
    """The columns without those that are None throughout, and the names that are None in some rows."""
    kept: list[str] = []
    lists: list[Iterable[Any]] = []
    mixed: set[str] = set()
    for name, column in zip(names, columns, strict=True):
        values: Iterable[Any] = column
        if name in omit_null:
            values = list(column)
            nulls = values.count(None)
            if nulls == len(values):
                continue
            if nulls:
                mixed.add(name)
        kept.append(name)
        lists.append(values)
    return kept, lists, mixed


def _drop_nulls(row: Row, names: set[str]) -> Row:
    for name in names:
        if row[name] is None:
            del row[name]
    return row
