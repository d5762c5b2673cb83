"""Queue files beside a database of queues: without `storeType` a broker reads these."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

from tests.helpers import rmq

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fixtures import Golden

QUEUE = "consumequeue/TopicBasic/3/00000000000000000000"


def test_queue_files_beside_a_database_are_put_right(golden: Callable[[str], Golden], tmp_path: Path) -> None:
    root, out = tmp_path / "store", tmp_path / "out"
    shutil.copytree(golden("b533-rocksdb-double").path, root)
    whole = (root / QUEUE).read_bytes()
    (root / QUEUE).write_bytes(b"\xff" * 40 + whole[40:])
    assert rmq("recover", root, "--output", out, "--apply").exit_code == 0
    assert (out / QUEUE).read_bytes() == whole
    assert (out / "consumequeue/CURRENT").exists()
    assert rmq("verify", out).exit_code == 0
