"""The files of a rebuild, made by this process from the whole log."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from rmqtool.broker.file_rules import FileRules
from rmqtool.broker.index_files import IndexFiles
from rmqtool.build.builder import Builder, QueueBuilder, SkippedRecords
from rmqtool.build.files import DerivedFiles
from rmqtool.build.log import LogAnomalies, build_log
from rmqtool.repair.rebuild_options import WantedQueues
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.options import data_bytes
from rmqtool.store.layout import Store

if TYPE_CHECKING:
    from rmqtool.build.queues import BuiltQueue
    from rmqtool.scan.options import ReadOptions

    Key = tuple[str, int]


@dataclass
class Made:
    """What was built. elsewhere: records that state another physical offset. deleted: topics left out."""

    anomalies: LogAnomalies = field(default_factory=LogAnomalies)
    records: int = 0
    elsewhere: int = 0
    queues: dict[Key, BuiltQueue] = field(default_factory=dict)
    left: SkippedRecords = field(default_factory=SkippedRecords)
    index_items: int = 0
    deleted: set[str] = field(default_factory=set)


Build = Callable[[Store, FileRules, DerivedFiles, WantedQueues, Callable[[int], str]], Made]
"""makes the derived files of a store below a directory; the last argument names index files"""


def build_here(
    store: Store,
    rules: FileRules,
    files: DerivedFiles,
    wanted: WantedQueues,
    next_name: Callable[[int], str],
    how: ReadOptions,
) -> Made:
    """Reads the log from end to end: once, unless batch queues show late, see `Queues.turned`."""
    kernels = choose_kernels(data_bytes(store.segments))
    what = wanted.options.what
    queues = QueueBuilder(rules, files, kernels, wanted)
    index = IndexFiles(rules, files, kernels, next_name) if "index" in what else None
    builder = Builder(queues if "cq" in what else None, index)
    anomalies = build_log(store.segments, builder, kernels, how)
    built = queues.queues.built()
    if turned := queues.queues.turned:
        known = replace(rules, batch_topics=rules.batch_topics | turned)
        again = QueueBuilder(known, files, kernels, lambda *key: key[0] in turned and wanted(*key))
        build_log(store.segments, Builder(again, None), kernels, how)
        built |= again.queues.built()
    return Made(
        anomalies,
        builder.records,
        builder.elsewhere,
        built,
        queues.left,
        index.items if index is not None else 0,
    )
