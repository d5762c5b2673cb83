"""Every code of the catalogue has damage that triggers it: at the exact place, and nothing beside it."""

from __future__ import annotations

import errno
import os
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any
from unittest import mock

import pytest

from fixtures.mutators import HEALTHY, INCIDENTS, MUTATORS, Mutator, codes_of
from fixtures.stores import healthy_store
from rmqtool.check.catalogue import CATALOGUE
from rmqtool.check.levels import Level
from rmqtool.check.verify import Verification
from rmqtool.scan.options import ReadOptions
from rmqtool.store.config import config_of
from rmqtool.store.layout import Store
from tests.helpers import held
from tests.tiers import sampled

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from rmqtool.check.findings import Finding


def findings_of(root: Path, one: Mutator | None = None, jobs: int = 1) -> list[Finding]:
    config = config_of(one.settings) if one is not None and one.settings else None
    roots = [root / name for name in one.roots] if one is not None else []
    store = Store.open(root, config=config, commitlog_roots=roots)
    level = Level.DEEP if one is None or one.deep else Level.DEFAULT
    return list(Verification(store, ReadOptions.of(store, jobs), level).findings())


def reported(one: Finding) -> str:
    place = f"{one.path} @{one.position}+{one.length} -> {one.physical_offset}"
    return f"{one.severity.value} {one.code} {place} | {one.message} <- {one.caused_by}"


def test_the_healthy_store_has_no_finding(tmp_path: Path) -> None:
    healthy_store().write(tmp_path / "store")
    assert [reported(one) for one in findings_of(tmp_path / "store")] == []


@contextmanager
def circumstances(mutator: Mutator, root: Path) -> Iterator[None]:
    """What a mutator asks for that does not lie in the store: a lock that is held, a medium that fails."""
    bad = {str(root / name) for name in mutator.unreadable}
    really = os.open

    def opened(path: Any, *rest: Any, **more: Any) -> int:
        if str(path) in bad:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        return really(path, *rest, **more)

    with ExitStack() as stack:
        if mutator.locked:
            stack.enter_context(held(root))
        stack.enter_context(mock.patch("os.open", opened))
        for name, value in mutator.limits:
            stack.enter_context(mock.patch(name, value))
        yield


def at_its_place(one: Finding, code: str, place: Any) -> bool:
    where = one.path, one.position, one.physical_offset, one.length
    if (one.code, where) != (code, (place.path, place.position, place.physical_offset, place.length)):
        return False
    return all(getattr(one, name) == value for name, value in place.facts.items())


@pytest.mark.parametrize("mutator", sampled(MUTATORS, kind=lambda one: one.code), ids=lambda one: one.id)
def test_damage_is_found_at_its_place_and_nothing_else(mutator: Mutator, tmp_path: Path) -> None:
    store = healthy_store().write(tmp_path / "store")
    place = mutator.apply(store)
    with circumstances(mutator, store.root):
        found = findings_of(store.root, mutator)
    here = [one for one in found if at_its_place(one, mutator.code, place)]
    assert len(here) == 1, "\n".join(["", str(place), *map(reported, found)])
    beside = [one for one in found if one.severity.value != "note" and one is not here[0]]
    if mutator.several:
        beside = [one for one in beside if one.code not in (mutator.code, *mutator.several)]
    unrelated = [one for one in beside if one.caused_by is None and one.code != here[0].caused_by]
    assert not unrelated, "\n".join(["", *map(reported, found)])


SIZES = [one for one in MUTATORS if one.code == "CQ-SIZE"]


@pytest.mark.parametrize("mutator", SIZES, ids=lambda one: one.id)
def test_units_that_say_more_or_less_than_their_record(mutator: Mutator, tmp_path: Path) -> None:
    test_damage_is_found_at_its_place_and_nothing_else(mutator, tmp_path)


@pytest.mark.parametrize("code", CATALOGUE)
def test_every_code_has_a_mutator(code: str) -> None:
    assert any(one.code == code for one in MUTATORS)


TRACED = [f"F{number:02}" for number in (*range(1, 7), *range(8, 21), 25, 26, 27, 28, 44, 46, 47)]
"""incidents that leave a trace in what verify reads; F07 shows in bodies only"""


@pytest.mark.parametrize("incident", sorted({*TRACED, *INCIDENTS}))
def test_every_incident_has_codes_or_leaves_nothing_wrong(incident: str) -> None:
    assert bool(codes_of(incident)) != (incident in HEALTHY)


def test_every_mutator_is_of_a_known_incident() -> None:
    assert {name for one in MUTATORS for name in one.incidents} <= set(INCIDENTS)
    assert len({one.name for one in MUTATORS}) == len(MUTATORS)


def test_the_healthy_store_holds_what_looks_odd() -> None:
    """Two hosts (F44), equal times (F46), one hash for several keys (F25)."""
    store = healthy_store()
    assert len({one.placed.data[64:72] for one in store.stored}) == 2
    assert len({one.time for one in store.stored}) < len(store.stored)
    hashes = [item[:4] for file in store.index.files for item in file.built.values()]
    keys = {(one.topic, path, number) for one in store.stored for path, number in one.items}
    assert len(set(hashes)) < len(keys)
