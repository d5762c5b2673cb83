"""What a run leaves out is chosen by kind, and what was done is not done again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.tiers import FEW, SHARE, beyond_a_few, beyond_a_share, of_each_kind, passed_in, sampled

if TYPE_CHECKING:
    from pathlib import Path


def always(chosen: list[Any]) -> list[Any]:
    extra = [one for one in chosen if not isinstance(one, str)]
    assert all([mark.name for mark in one.marks] == ["full"] for one in extra)
    return [one for one in chosen if isinstance(one, str)]


def test_some_of_each_kind_run_always_and_take_turns() -> None:
    cases = ["a1", "b1", "a2", "b2", "c1", "a3", "a4"]
    assert always(sampled(cases, kind=lambda name: name[0])) == ["a1", "b2", "c1"]
    assert always(sampled(cases, kind=lambda name: name[0], each=2)) == ["a1", "b1", "b2", "c1", "a3"]
    assert len(sampled(cases, kind=lambda name: name[0])) == len(cases)
    assert always(of_each_kind(["v498-tx", "v533-edge", "v533-tx", "v498-edge"])) == ["v498-tx", "v498-edge"]


def test_few_keeps_some_cases_of_a_test_and_one_golden_of_each_kind() -> None:
    cases = [f"tests/a.py::test_b[{number}]" for number in range(FEW + 2)]
    assert beyond_a_few(cases) == set(cases[FEW:])
    goldens = [f"tests/a.py::test_b[{name}]" for name in ("v498-tx", "v533-tx", "v533-edge", "b533-tx")]
    assert beyond_a_few(goldens) == {goldens[1], goldens[3]}
    assert beyond_a_few(["tests/pipeline/test_b.py::test_c", "tests/a.py::test_b"]) == {
        "tests/pipeline/test_b.py::test_c"
    }


def test_a_share_of_each_test_runs_always_and_has_all_values_of_a_parameter() -> None:
    cases = [f"tests/a.py::test_b[{number}-{mode}]" for number in range(20) for mode in ("x", "y", "z")]
    alone = ["tests/a.py::test_c[1]", "tests/a.py::test_d"]
    beyond = beyond_a_share([*cases, *alone])
    stays = [one for one in cases if one not in beyond]
    assert len(stays) == len(cases) / SHARE
    assert {one[-2] for one in stays} == {"x", "y", "z"}
    assert not beyond & set(alone)
    assert beyond == beyond_a_share([*alone, *reversed(cases)])


def test_only_what_passed_last_is_done(tmp_path: Path) -> None:
    done = tmp_path / "done.jsonl"
    assert passed_in(str(done)) == set()
    rows = [("a", "passed"), ("b", "failed"), ("c", "skipped"), ("b", "passed"), ("a", "failed")]
    lines = [f'{{"id": "{name}", "result": "{result}"}}\n' for name, result in rows]
    done.write_text("".join(lines) + '{"id": "d", "resu')
    assert passed_in(str(done)) == {"b"}
