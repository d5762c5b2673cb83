"""Every code of the catalogue has damage that triggers it: at the exact place, and nothing beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fixtures.mutators import MUTATORS, Mutator
from fixtures.stores import healthy_store
from rmqtool.check.catalogue import CATALOGUE
from rmqtool.check.verify import Reading, Verification
from rmqtool.store.config import config_of
from rmqtool.store.layout import Store

if TYPE_CHECKING:
    from pathlib import Path

    from rmqtool.check.findings import Finding


def findings_of(root: Path, one: Mutator | None = None, jobs: int = 1) -> list[Finding]:
    config = config_of(one.settings) if one is not None and one.settings else None
    roots = [root / name for name in one.roots] if one is not None else []
    store = Store.open(root, config=config, commitlog_roots=roots)
    return list(Verification(store, Reading(jobs=jobs)).findings())


def told(one: Finding) -> str:
    return f"{one.severity.value} {one.code} {one.path} @{one.position}+{one.length} -> {one.physical_offset} | {one.message} <- {one.caused_by}"


def test_the_healthy_store_has_no_finding(tmp_path: Path) -> None:
    healthy_store().write(tmp_path / "store")
    assert [told(one) for one in findings_of(tmp_path / "store")] == []


def at_its_place(one: Finding, code: str, place: Any) -> bool:
    where = one.path, one.position, one.physical_offset, one.length
    if (one.code, where) != (code, (place.path, place.position, place.physical_offset, place.length)):
        return False
    return all(getattr(one, name) == value for name, value in place.facts.items())


@pytest.mark.parametrize("mutator", MUTATORS, ids=lambda one: one.id)
def test_damage_is_found_at_its_place_and_nothing_else(mutator: Mutator, tmp_path: Path) -> None:
    store = healthy_store().write(tmp_path / "store")
    place = mutator.apply(store)
    found = findings_of(store.root, mutator)
    here = [one for one in found if at_its_place(one, mutator.code, place)]
    assert len(here) == 1, "\n".join(["", str(place), *map(told, found)])
    beside = [one for one in found if one.severity.value != "note" and one is not here[0]]
    if mutator.several:
        beside = [one for one in beside if one.code not in (mutator.code, *mutator.several)]
    unrelated = [one for one in beside if one.caused_by is None and one.code != here[0].caused_by]
    assert not unrelated, "\n".join(["", *map(told, found)])


@pytest.mark.parametrize("code", CATALOGUE)
def test_every_code_has_a_mutator(code: str) -> None:
    assert any(one.code == code for one in MUTATORS)
