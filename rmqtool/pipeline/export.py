"""`export` of many stores into one directory, cut by parts of their logs.

A task writes below the directory that is being made, in a place of its own attempt, and says what it wrote.
The driver puts the files of the attempts that counted where they belong, adds the summary and gives the
directory its name: it is there whole or not at all. Tasks and driver have to see the same file system.
"""

from __future__ import annotations

import os
import shutil
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from rmqtool.errors import ExitCode, UsageError
from rmqtool.output.export.run import SCHEMA, ExportRun
from rmqtool.output.export.target import MARKER, Target, sync, writing
from rmqtool.output.jsonrows import encode
from rmqtool.pipeline.parts import log_parts
from rmqtool.pipeline.runner import Lost, lost_part, over_log
from rmqtool.pipeline.shared import new_attempt, part_mode, refuse_not_shared
from rmqtool.query.scope import Scope
from rmqtool.scan.options import ReadOptions
from rmqtool.store.coverage import Incomplete, coverage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pyspark.sql import SparkSession

    from rmqtool.output.export.run import Destination
    from rmqtool.output.messages import MessageShape
    from rmqtool.pipeline.options import SourceOptions
    from rmqtool.pipeline.parts import LogPart
    from rmqtool.query.message_filter import MessageFilter
    from rmqtool.store.layout import Store

    Row = dict[str, Any]

ATTEMPTS = "_attempts"
"""where tasks write, below the directory that is being made"""

_SUMS = ("messages", "bytes", "gaps", "bad_crc", "not_covered_left_out")


@dataclass(frozen=True)
class ExportForm:
    """What files hold. keys: of partition directories, Parquet only: some of `topic`, `day`."""

    format: Literal["ndjson", "parquet"]
    shape: MessageShape
    keys: tuple[str, ...] = ()
    compression: str = "zstd"

    def destination(self, target: Target) -> Destination:
        """What takes the records of one task."""
        if self.format == "ndjson":
            from rmqtool.output.export.streams import RowForm, StreamExport

            return StreamExport(target, RowForm(self.shape, SCHEMA, csv=False, summary=False))
        from rmqtool.output.export.parquet import ParquetExport
        from rmqtool.output.export.record_table import RecordTable

        return ParquetExport(target, RecordTable(self.shape), self.compression, self.keys)


@dataclass(frozen=True)
class _Written:
    """The files of one part: path below the attempts → path below the export; and the summary of the run."""

    files: dict[str, str]
    summary: Row


@dataclass
class StoreExported:
    """What was exported of one store."""

    store: str
    summary: Row = field(default_factory=dict)

    @property
    def not_covered(self) -> list[Row]:
        """What was not exported."""
        rows: list[Row] = self.summary.get("not_covered", [])
        return rows


class ExportJob:
    """One export into the directory `to`. A context manager: what is not published is removed.

    missing: store → rows of `not_covered` that are known beforehand. force: an earlier export is replaced.
    """

    def __init__(
        self, session: SparkSession, options: SourceOptions, form: ExportForm, to: Path, *, force: bool
    ) -> None:
        self._session = session
        self._options = options
        self._form = form
        self._target = Target(Path(os.path.abspath(to)), directory=True)
        self._force = force
        self.done: list[StoreExported] = []

    def begin(self) -> None:
        """Makes the directory that is written to; what a killed run left there is not used again."""
        self._target.begin(force=self._force, resume=False, options={}, useless=ATTEMPTS)
        self._staging = self._target.open_parts(fresh=True, mode=part_mode())
        with writing(self._staging):
            (self._staging / ATTEMPTS).mkdir(part_mode())

    def run(
        self, stores: Mapping[str, Store], missing: Mapping[str, Sequence[Row]]
    ) -> Iterator[StoreExported]:
        """Exports the stores one after the other, each in parts."""
        parts: dict[str, list[LogPart]] = {}
        skipped: dict[str, int] = {}
        for path, store in stores.items():
            scope = Scope(store.segments, self._options.wanted)
            parts[path] = log_parts(store, self._options.part_bytes, scope.may_hold)
            skipped[path] = scope.skipped
        where = folders(list(stores))
        attempts = str(self._target.part / ATTEMPTS)
        work = partial(_write_part, wanted=self._options.wanted, form=self._form, attempts=attempts)
        for path, results in over_log(self._session, parts, work):
            reported = self._collected(results, where[path])
            rows = [*missing.get(path, ()), *reported.pop("not_covered", [])]
            one = StoreExported(path, reported | {"segments_skipped": skipped[path]} | coverage(rows))
            self.done.append(one)
            yield one

    def _collected(self, results: Sequence[tuple[LogPart, Any]], folder: str) -> Row:
        """Puts the files of a store's parts in place; the sums of their summaries."""
        reported: Row = dict.fromkeys(_SUMS, 0) | {"first_offset": None, "end_offset": None}
        lacking: list[Row] = []
        for number, (part, one) in enumerate(results):
            if isinstance(one, Lost):
                refuse_not_shared(one)
                lacking.append(lost_part(part, one))
            elif one is not None:
                self._place(one.files, folder, number)
                lacking += one.summary.get("not_covered", [])
                for name in _SUMS:
                    reported[name] += one.summary.get(name, 0)
                if reported["first_offset"] is None:
                    reported["first_offset"] = one.summary["first_offset"]
                if one.summary["end_offset"] is not None:
                    reported["end_offset"] = one.summary["end_offset"]
        if not reported["not_covered_left_out"]:
            del reported["not_covered_left_out"]
        return reported | {"not_covered": lacking}

    def _place(self, files: Mapping[str, str], folder: str, number: int) -> None:
        for made, name in files.items():
            directory, _, last = name.rpartition("/")
            stem, dot, suffix = last.partition(".")
            place = self._staging / folder / directory / f"part-{number:05d}-{stem[-5:]}{dot}{suffix}"
            with writing(place):
                place.parent.mkdir(parents=True, exist_ok=True)
                os.replace(self._staging / ATTEMPTS / made, place)

    def publish(self) -> Row:
        """Gives the directory its name, with the summary in it; the summary."""
        summary = self.summary()
        staging = self._staging
        with writing(staging):
            shutil.rmtree(staging / ATTEMPTS)
            (staging / MARKER).write_bytes(encode({"schema": SCHEMA, **summary}) + b"\n")
            sync(staging / MARKER)
            for directory, _, _ in os.walk(staging):
                sync(Path(directory))
        self._target.publish()
        return summary

    def discard(self) -> None:
        """Removes what was written."""
        self._target.discard()

    def summary(self) -> Row:
        """The closing summary: of one store its own, of several all of them and their sums."""
        if len(self.done) == 1:
            return self.done[0].summary
        parts = [one.summary | {"store": one.store} for one in self.done]
        rows = [row | {"store": one.store} for one in self.done for row in one.not_covered]
        sums = {name: sum(part.get(name, 0) for part in parts) for name in _SUMS[:-1]}
        return {"stores": parts} | sums | coverage(rows)

    def exit_code(self) -> ExitCode:
        """3 when something in the scope was damaged or could not be read."""
        reasons = {row["reason"] for one in self.done for row in one.not_covered}
        return ExitCode.INCOMPLETE if reasons - {Incomplete.LIMIT} else ExitCode.OK


def _write_part(part: LogPart, wanted: MessageFilter, form: ExportForm, attempts: str) -> _Written | None:
    """One part into files of this attempt."""
    store = part.resolved()
    if store is None:
        return None
    with new_attempt(attempts) as attempt:
        place = Path(attempt.here)
        partitioned = bool(form.keys)
        target = Target(
            place / ("made" if partitioned else f"part-00000.{form.format}"), directory=partitioned
        )
        target.begin(force=False, resume=False, options={})
        reading = ReadOptions.of(store)
        run = ExportRun(store, wanted, reading, form.destination(target), target)
        run.run({}, None)
        summary = run.summary()
        if not summary["messages"]:
            return _Written({}, summary)
        root, own = target.path if partitioned else place, os.path.basename(attempt.path)
        found = sorted(path for path in root.rglob(f"*.{form.format}"))
        made = {f"{own}/{one.relative_to(place)}": one.relative_to(root).as_posix() for one in found}
        return _Written(made, summary)


def folders(paths: Sequence[str]) -> dict[str, str]:
    """Directory of each store below the export: none of a single one, else `store=…` as Hive has it."""
    if len(paths) == 1:
        return {paths[0]: ""}
    from rmqtool.output.export.partitions import shortened

    quoted = {path: quote(os.fsencode(path), safe=" ").replace(".", "%2E") for path in paths}
    return {path: f"store={shortened(name)}" for path, name in quoted.items()}


def refuse_inside(stores: Mapping[str, Store], to: Path, option: str = "--to") -> None:
    """Nothing is ever written in a store. option: the one that named `to`."""
    place = to.parent.resolve() / to.name
    for store in stores.values():
        for root in (store.root, *store.roots):
            inside = Path(root).resolve()
            if inside.is_dir() and place.is_relative_to(inside):
                raise UsageError(f"{option}: {to} lies in the store, where nothing is written")
