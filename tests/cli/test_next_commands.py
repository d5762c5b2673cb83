"""A dozen incidents, by somebody who knows nothing: only the next command that the tool prints is typed."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING

import pytest

from fixtures.mutators import MUTATORS
from fixtures.stores import healthy_store
from tests.helpers import rmq
from tests.tiers import sampled

if TYPE_CHECKING:
    from pathlib import Path

_DAMAGES = {one.name: one for one in MUTATORS}
_CRASH = "run_that_did_not_end"
STEPS = ["doctor", "recover", "recover", "doctor"]
"""is it safe; a plan; the plan carried out; is the result safe"""

INCIDENTS = {
    "a flipped byte, and a crash": ("body_byte_flipped", _CRASH),
    "a queue shifted": ("units_lost_and_later_ones_moved_down",),
    "zeros over two records": ("zeros_over_two_records", _CRASH),
    "a magic of text": ("magic_is_text", _CRASH),
    "the last records lost": ("last_records_zero",),
    "a segment missing": ("middle_segment_missing",),
    "a segment cut": ("last_segment_cut",),
    "a queue file gone": ("last_queue_file_missing",),
    "zeros inside a queue": ("zeros_to_the_end_of_a_middle_file",),
    "a queue gone": ("directory_of_a_queue_missing",),
    "queues stopped early": ("all_queues_stopped_early_batches_too",),
    "an empty queue file and lost records": ("zero_queue_file_and_lost_records",),
}


def next_command(shown: str, new: Path) -> str:
    """The first command under the last heading that has one; DIR is what a person chooses."""
    _, _, following = shown.rpartition("Do next")
    found = re.search(r"^ +(rmqtool .*)$", following or shown[shown.rindex("Done") :], re.MULTILINE)
    assert found, shown
    return found[1].replace(" DIR ", f" {shlex.quote(str(new))} ")


def to_the_end(name: str, place: Path) -> Path:
    """The store that the printed commands make of an incident; each step is what it has to be."""
    store = healthy_store().write(place / "store")
    for damage in INCIDENTS[name]:
        _DAMAGES[damage].apply(store)
    typed = [shlex.join(["rmqtool", "doctor", str(store.root)])]
    seen = [rmq(*shlex.split(typed[0])[1:])]
    while len(typed) < len(STEPS):
        typed.append(next_command(seen[-1].stdout, place / "result"))
        seen.append(rmq(*shlex.split(typed[-1])[1:]))
    assert [shlex.split(one)[1] for one in typed] == STEPS
    assert "--apply" in typed[2]
    assert seen[0].exit_code == 1
    assert seen[-1].exit_code == 0, "\n".join([*typed, seen[-1].stdout])
    return place / "result"


@pytest.mark.parametrize("name", sampled(INCIDENTS, kind=lambda name: name.startswith("a ")))
def test_the_printed_commands_lead_to_a_safe_store(name: str, tmp_path: Path) -> None:
    assert to_the_end(name, tmp_path).is_dir()
