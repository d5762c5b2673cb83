"""Derived files of stores that real brokers left in good order, built from the log: the same bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from fixtures import golden_names
from rmqtool.broker.file_rules import rules_of
from rmqtool.scan.extension import ExtensionLookup
from rmqtool.scan.units import UNIT
from rmqtool.store.config import load_broker_conf
from rmqtool.store.kinds import FileKind
from rmqtool.store.layout import Store
from tests.build.building import build, files_of, kernel_modules, same

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType

    from fixtures import Golden

OTHERWISE = ("dledger", "unclean", "cqext", "expired-all", "expired-head")
"""entries of another format, queues behind the log, bit maps of a filter, units of records that are gone"""
IN_ROCKSDB = ("rocksdb", "rocksdb-double")
IDENTICAL = [name for name in golden_names() if not name.endswith(OTHERWISE)]


def opened(golden: Golden) -> Store:
    return Store.open(golden.path, config=load_broker_conf(golden.config_path))


@pytest.mark.share
@pytest.mark.parametrize("kernels", kernel_modules(), ids=lambda module: module.__name__.rpartition(".")[2])
@pytest.mark.parametrize("name", IDENTICAL)
def test_every_byte_is_the_brokers(
    golden: Callable[[str], Golden], name: str, kernels: ModuleType, tmp_path: Path
) -> None:
    one = golden(name)
    store = opened(one)
    _, heard = build(store, rules_of(store, one.release), tmp_path / "out", kernels)
    kinds = ("index",) if name.endswith(IN_ROCKSDB) else ()
    assert same(files_of(one.path, *kinds), files_of(tmp_path / "out", *kinds)) == []
    assert heard.lost_bytes == heard.bad_body_count == 0
    assert len(files_of(tmp_path / "out")) > 1


@pytest.mark.parametrize("name", [name for name in golden_names() if name.endswith("cqext")])
def test_extension_files_hold_the_same_but_for_bit_maps(
    golden: Callable[[str], Golden], name: str, tmp_path: Path
) -> None:
    one = golden(name)
    store = opened(one)
    build(store, rules_of(store, one.release), tmp_path / "out")
    rebuilt = Store.open(tmp_path / "out", config=store.config)
    assert all_units(rebuilt) == all_units(store)
    assert all(len(units) > 50 for units in all_units(store).values())


@pytest.mark.parametrize("name", [name for name in golden_names() if name.endswith(OTHERWISE[-2:])])
def test_units_are_the_same_from_the_first_record_that_exists(
    golden: Callable[[str], Golden], name: str, tmp_path: Path
) -> None:
    one = golden(name)
    store = opened(one)
    builder, _ = build(store, rules_of(store, one.release), tmp_path / "out")
    old, new = files_of(one.path, "consumequeue"), files_of(tmp_path / "out", "consumequeue")
    assert builder.queues is not None
    built = builder.queues.queues.built().values()
    assert any(queue.first for queue in built)
    for queue in built:
        assert queue.directory == "consumequeue"
        first = (queue.first or 0) * UNIT.itemsize
        for path, data in new.items():
            base = int(path.rpartition("/")[2])
            if path.startswith(f"consumequeue/{queue.topic}/{queue.queue_id}/"):
                assert data[max(first - base, 0) :] == old[path][max(first - base, 0) :]


def all_units(store: Store) -> dict[str, list[tuple[int, int, int | None]]]:
    """Offset, size and tags code of every unit, extension units resolved."""
    extensions = {(one.topic, one.queue_id): one for one in store.queues(FileKind.CONSUMEQUEUE_EXT)}
    found: dict[str, list[tuple[int, int, Any]]] = {}
    for queue in store.queues():
        files = extensions[queue.topic, queue.queue_id].files
        lookup = ExtensionLookup([(file.base_offset or 0, file.open()) for file in files])
        raw = b"".join(file.absolute.read_bytes() for file in queue.files)
        units = np.frombuffer(raw, UNIT)
        found[f"{queue.topic}/{queue.queue_id}"] = [
            (int(unit["physical_offset"]), int(unit["size"]), lookup.tags_code(int(unit["tags_code"])))
            for unit in units[units["size"] > 0]
        ]
    return found
