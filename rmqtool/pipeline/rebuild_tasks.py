"""What the tasks of `rebuild` do: parts of a log into spool files, these into queues and index files.

A task writes below a directory of its own attempt, so that one that is tried again meets nothing of the
attempt before; the driver moves the files of the attempts that counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from rmqtool.build.builder import Builder, QueueBuilder, SkippedRecords
from rmqtool.build.files import DerivedFiles
from rmqtool.build.index_cut import IndexShare, SpooledKeys
from rmqtool.build.log import build_log
from rmqtool.build.queues import BuiltQueue, Queues
from rmqtool.build.spool import KeySpool, QueueSpool, SpoolFile, feed, read_frames
from rmqtool.pipeline.shared import new_attempt
from rmqtool.repair.rebuild_files import Made
from rmqtool.repair.rebuild_options import WantedQueues
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.options import ReadOptions, data_bytes
from rmqtool.store.live import is_live

if TYPE_CHECKING:
    from rmqtool.broker.file_rules import FileRules
    from rmqtool.pipeline.parts import LogPart
    from rmqtool.repair.rebuild_options import RebuildOptions


@dataclass(frozen=True)
class Spooled:
    """What a part of a log has.

    places: of its frames, by bucket. lost: see `QueueBuilder.lost`. batch_topics: those that it tells of.
    """

    frames: str
    places: list[list[tuple[int, int]]]
    keys: SpooledKeys
    lost: int
    made: Made
    batch_topics: frozenset[str]


@dataclass(frozen=True)
class SpoolTask:
    """A part of a log → its spool files. topics: those of the store."""

    rules: FileRules
    options: RebuildOptions
    topics: frozenset[str]
    place: str
    buckets: int

    def __call__(self, part: LogPart) -> Spooled | None:
        """None for a part that is empty."""
        store = part.resolved()
        if store is None:
            return None
        wanted = WantedQueues(self.options, self.topics)
        kernels = choose_kernels(data_bytes(store.segments))
        with (
            new_attempt(self.place) as place,
            SpoolFile(f"{place.here}/frames") as frames,
            SpoolFile(f"{place.here}/keys") as keyed,
        ):
            sink, keys = QueueSpool(frames, self.buckets), KeySpool(keyed)
            files = DerivedFiles(Path(place.here))
            queues = QueueBuilder(self.rules, files, kernels, wanted, sink)
            what = self.options.what
            builder = Builder(queues if "cq" in what else None, keys if "index" in what else None)
            anomalies = build_log(store.segments, builder, kernels, ReadOptions(live=is_live(store)))
        made = Made(anomalies, builder.records, builder.elsewhere, {}, queues.left, keys.keys, wanted.deleted)
        spooled = SpooledKeys(f"{place.path}/keys", keys.keys, keys.first, keys.last)
        return Spooled(f"{place.path}/frames", sink.places, spooled, queues.lost, made, queues.batch_topics)


@dataclass(frozen=True)
class Bucket:
    """Queues that one task builds. parts: spool file, places of frames, records lost in front of it."""

    parts: tuple[tuple[str, tuple[tuple[int, int], ...], int], ...]


@dataclass(frozen=True)
class Built:
    """Files of one task. root: where they lie. times: see `DerivedFiles`."""

    root: str
    times: dict[str, int | None]
    queues: dict[tuple[str, int], BuiltQueue] = field(default_factory=dict)


@dataclass(frozen=True)
class BuildTask:
    """Spool files → the files of some queues, or one index file. log_bytes: of the whole log."""

    rules: FileRules
    place: str
    log_bytes: int

    def __call__(self, share: Bucket | IndexShare) -> Built:
        """Reads the parts in the order of the log."""
        kernels = choose_kernels(self.log_bytes)
        with new_attempt(self.place) as root:
            files = DerivedFiles(Path(root.here))
            if isinstance(share, IndexShare):
                share.build(self.rules, files, kernels)
                return Built(root.path, files.times)
            queues = Queues(self.rules, files, kernels)
            for path, places, lost in share.parts:
                for frame in read_frames(path, places):
                    feed(frame, queues, lost)
            return Built(root.path, files.times, queues.built())


def together(parts: list[Spooled]) -> Made:
    """What the parts of a log have, as one."""
    made = Made()
    for one in parts:
        made.anomalies.add(one.made.anomalies)
        made.records += one.made.records
        made.elsewhere += one.made.elsewhere
        made.index_items += one.made.index_items
        made.deleted |= one.made.deleted
        left = one.made.left
        made.left = SkippedRecords(
            made.left.nameless + left.nameless,
            made.left.unlisted + left.unlisted,
            made.left.numberless + left.numberless,
        )
    return made
