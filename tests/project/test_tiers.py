"""What a run leaves out is chosen by kind, and what was done is not done again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.tiers import FEW, beyond_a_few, passed_in, sampled

if TYPE_CHECKING:
    from pathlib import Path


def test_the_first_of_each_kind_runs_always() -> None:
    chosen = sampled(["a1", "b1", "a2", "a3"], kind=lambda name: name[0], each=2)
    assert chosen[:3] == ["a1", "b1", "a2"]
    assert [mark.name for mark in chosen[3].marks] == ["full"]
    assert chosen[3].values == ("a3",)


def test_few_keeps_some_cases_of_a_test_and_one_golden_of_each_kind() -> None:
    cases = [f"tests/a.py::test_b[{number}]" for number in range(FEW + 2)]
    assert beyond_a_few(cases) == set(cases[FEW:])
    goldens = [f"tests/a.py::test_b[{name}]" for name in ("v498-tx", "v533-tx", "v533-edge", "b533-tx")]
    assert beyond_a_few(goldens) == {goldens[1], goldens[3]}
    assert beyond_a_few(["tests/pipeline/test_b.py::test_c", "tests/a.py::test_b"]) == {
        "tests/pipeline/test_b.py::test_c"
    }


def test_only_what_passed_last_is_done(tmp_path: Path) -> None:
    done = tmp_path / "done.jsonl"
    assert passed_in(str(done)) == set()
    rows = [("a", "passed"), ("b", "failed"), ("c", "skipped"), ("b", "passed"), ("a", "failed")]
    lines = [f'{{"id": "{name}", "result": "{result}"}}\n' for name, result in rows]
    done.write_text("".join(lines) + '{"id": "d", "resu')
    assert passed_in(str(done)) == {"b"}
