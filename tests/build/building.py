"""What the tests of building share: a log through the builder, and the files that come of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rmqtool.broker.deleted_topics import is_somebodys
from rmqtool.broker.index_files import IndexFiles, IndexNames
from rmqtool.build.builder import Builder, QueueBuilder
from rmqtool.build.files import DerivedFiles
from rmqtool.build.log import build_log
from rmqtool.scan import kernels_python
from rmqtool.scan.engine import choose_kernels
from rmqtool.scan.options import ReadOptions

if TYPE_CHECKING:
    from types import ModuleType

    from rmqtool.broker.file_rules import FileRules
    from rmqtool.build.log import LogAnomalies
    from rmqtool.store.layout import Store

DERIVED = ("consumequeue", "batchconsumequeue", "consumequeue_ext", "index")


def kernel_modules() -> list[ModuleType]:
    """The plain-Python kernels, and the compiled ones where there are any."""
    compiled = choose_kernels()
    return [kernels_python] if compiled is kernels_python else [kernels_python, compiled]


def build(
    store: Store,
    rules: FileRules,
    out: Path,
    kernels: ModuleType = kernels_python,
    jobs: int = 1,
    *,
    one_by_one: bool = False,
) -> tuple[Builder, LogAnomalies]:
    """What a store's log gives for topics that are there, into the directory `out`, which is made.

    one_by_one: no run comes by its queues.
    """
    out.mkdir()
    files = DerivedFiles(out)
    index = IndexFiles(rules, files, kernels, IndexNames().next_name)

    def wanted(topic: str, _: int) -> bool:
        return is_somebodys(store.topics, topic)

    queues = QueueBuilder(rules, files, kernels, wanted)
    if one_by_one:
        queues.takes_placed = False
    builder = Builder(queues, index)
    return builder, build_log(store.segments, builder, kernels, ReadOptions(jobs=jobs))


def files_of(root: Path, *kinds: str) -> dict[str, bytes]:
    """Bytes of the derived files of these kinds by path; index files under their number: names are times."""
    found: dict[str, bytes] = {}
    for kind in kinds or DERIVED:
        paths = sorted(path for path in (root / kind).rglob("*") if path.is_file())
        for number, path in enumerate(paths):
            name = f"index/{number}" if kind == "index" else path.relative_to(root).as_posix()
            found[name] = path.read_bytes()
    return found


def same(one: dict[str, bytes], other: dict[str, bytes]) -> list[str]:
    """Paths that are not the same in both."""
    return sorted(name for name in one.keys() | other.keys() if one.get(name) != other.get(name))
