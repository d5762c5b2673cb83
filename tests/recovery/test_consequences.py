"""Each consequence on a store that has it, with its facts; sound stores have none that matters."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from fixtures import damage_case, golden_names
from fixtures.timers import timers_moved
from rmqtool.recovery.consequences.catalogue import CATALOGUE
from rmqtool.scan import kernels_python
from tests.recovery.corpus import damaged_store, simulated
from tests.recovery.showing import all_shown, of, shows
from tests.recovery.test_goldens import of as of_golden

if TYPE_CHECKING:
    from collections.abc import Callable

    from fixtures import Golden
    from rmqtool.recovery.outcome import Outcome

ORDER = {"topic": "OrderTopic"}
ON_CASES: dict[str, tuple[str, dict[str, Any]]] = {
    # facts: what the real store showed (bounds, files, offsets), or the damage itself
    "DR-ABNORMAL": ("v533-none-healthy-abort", {"offset": 327680}),
    "DR-BAD-BODIES": ("v533-record-body-middle-mid-clean", {"count": 1}),
    "DR-BORDER-RECORD": ("v533-cq-lag-2-clean", {}),
    "DR-CHECKPOINT-FUTURE": ("v533-checkpoint-future-abort", {}),
    "DR-CONFIG-BAK": (
        "v498-delayoffset-cut-goodbak-clean",
        {"path": "config/delayOffset.json", "what": "offsets of delayed messages"},
    ),
    "DR-CONFIG-BAK-BAD": ("v498-delayoffset-good-badbak-clean", {"path": "config/delayOffset.json"}),
    "DR-CONFIG-BAK-ONLY": ("v498-delayoffset-absent-goodbak-clean", {"path": "config/delayOffset.json"}),
    "DR-CONFIG-EMPTY": ("v498-delayoffset-null-goodbak-clean", {"path": "config/delayOffset.json"}),
    "DR-CRC-OFF": ("v498-config-no-crc-clean", {}),
    "DR-DIRECTORY-IGNORED": ("v533-layout-stray-dir-clean", {}),
    "DR-DISPATCH-AHEAD": ("v498-cq-only-pre-blank-clean", {"offset": 2147483647, "end": 423137}),
    "DR-DISPATCHED": ("v498-cq-lag-2-clean", {"messages": 2, "units": 2}),
    "DR-DISPLACED": ("v533-layout-swapped-segments-clean", {}),
    "DR-DUP-INFO": ("v533-config-duplication-clean", {}),
    "DR-EMPTY-FILE-DELETED": ("v533-layout-zero-length-next-clean", {"count": 1}),
    "DR-FILLER-HIDES": ("v533-record-magic-blank-first-last-abort0", {"messages": 0}),
    "DR-FULL-SCAN": ("v533-rebuild-body-clean", {"reason": "no queue says how far it got", "files": 7}),
    "DR-GAP": ("v533-layout-missing-penultimate-clean", {"start": 327680, "end": 393216}),
    "DR-INDEX-DOUBLE": ("v498-cq-lag-2-clean", {}),
    "DR-INDEX-DROPPED": ("v533-marker-lock-held-abort", {"count": 1, "offset": 327680}),
    "DR-LOCK-HELD": ("v533-marker-lock-held-clean", {}),
    "DR-LOG-CUT": ("v533-tail-garbage-clean", {"offset": 424136}),
    "DR-LOOKAHEAD-DELETED": ("v533-layout-extra-zero-1-clean", {"count": 1}),
    "DR-NOT-INDEXED": ("v533-torn-last-20-records-clean", {"end": 418199}),
    "DR-OFFSETS-TWICE": (
        "v533-cq-lag-2-clean",
        {**ORDER, "queue_id": 0, "start": 605, "end": 605, "count": 1},
    ),
    "DR-MISPLACED": ("v533-cq-lag-2-clean", {**ORDER, "queue_id": 0, "count": 1}),
    "DR-PHANTOM-UNIT": ("v498-cq-new-queue-zero-file-clean", {**ORDER, "queue_id": 7, "start": 0}),
    "DR-PRE-BLANK-TAIL": ("v498-cq-only-pre-blank-clean", {**ORDER, "queue_id": 2, "end": 423137}),
    "DR-NOT-REBUILT": ("v533-cq-pre-blank-clean", {**ORDER, "queue_id": 2, "count": 5, "start": 0}),
    "DR-PROPERTY-CRC": ("v533-config-force-prop-crc-abort", {}),
    "DR-QUEUE-CUT": ("v533-torn-last-20-records-abort", {**ORDER, "queue_id": 0, "end": 592, "before": 606}),
    "DR-REFUSE-ABORT": ("v533-marker-abort-dir-clean", {}),
    "DR-REFUSE-CONFIG": ("v498-delayoffset-cut-badbak-clean", {}),
    "DR-REFUSE-LENGTH": ("v498-layout-stray-dir-clean", {}),
    "DR-REFUSE-NAME": ("v498-layout-stray-full-size-name-clean", {}),
    "DR-REFUSE-RECORD-SIZE": ("v498-record-size-max-last-mid-clean", {}),
    "DR-REFUSE-ZERO-FILE": ("v533-cq-idle-queue-full-plus-zero-file-lag-1-clean", {}),
    "DR-REFUSED-LATE": ("v498-record-size-max-last-last-abort", {"count": 1}),
    "DR-SECOND-START": ("v533-marker-lock-held-extra-zero-abort", {"count": 2}),
    "DR-SHIFTED": ("v498-cq-shift-back-clean", {}),
    "DR-SLOT-TAKEN": ("v498-cq-all-zero-bytes-clean", {}),
    "DR-STALE-MAX": ("v498-cq-size-bigger-last-clean", {}),
    "DR-TOPICS-UNKNOWN": ("v533-none-healthy-clean", {"count": 2}),
    "DR-UNPADDED-NAME": ("v533-layout-short-name-clean", {"count": 1}),
    "DR-UNREAD-DAMAGE": ("v533-record-magic-flip-middle-mid-clean", {"count": 1}),
    "DR-UNREAD-FILES": ("v533-none-healthy-clean", {"count": 6, "offset": 393216}),
    "DR-INDEX-ITEMS-MISSING": ("v498-layout-first-renamed-gap-abort", {}),
    "DR-TORN-PROPERTIES": ("v498-rebuild-torn-props-only-clean", {"count": 1}),
    "DR-QUEUES-DESTROYED": ("v533-layout-empty-commitlog-abort", {}),
    "DR-SKIPPED": ("v498-rebuild-propslen-plus-clean", {}),
    "DR-WRONG-ENTRIES": ("v533-cq-wrong-queue-units-clean", {**ORDER, "queue_id": 2, "start": 0}),
    "DR-ASTRAY": ("v533-rebuild-physoffset-clean", {"count": 1}),
}
"""code → case of the corpus and facts"""


def test_every_code_is_shown_on_a_store() -> None:
    assert all_shown() | set(ON_CASES) == set(CATALOGUE)


@cache
def case_outcome(case_id: str) -> Outcome:
    case = damage_case(case_id)
    with damaged_store(case) as store:
        return simulated(store, case, kernels_python)


@pytest.mark.share
@pytest.mark.parametrize("code", ON_CASES)
def test_on_a_store_that_the_real_broker_opened(code: str) -> None:
    case_id, facts = ON_CASES[code]
    found = of(case_outcome(case_id), code)
    assert found
    assert any({name: one.facts.get(name) for name in facts} == facts for one in found), [
        one.facts for one in found
    ]
    for one in found:
        assert one.message
        assert "{" not in one.message


@shows("DR-MESSAGES-LOST", "DR-SEGMENTS-DELETED")
def test_one_flipped_byte_says_how_much_it_costs() -> None:
    case = damage_case("v533-record-body-middle-first-abort0")
    outcome = case_outcome(case.id)
    (lost,) = of(outcome, "DR-MESSAGES-LOST")
    (deleted,) = of(outcome, "DR-SEGMENTS-DELETED")
    assert outcome.loss is not None
    assert lost.facts["messages"] == outcome.loss.messages
    assert set(deleted.paths) == {
        path for path in case.result["filesAfterLoad"]["deleted"] if path.startswith("commitlog/")
    }
    assert outcome.consequences[0].severity == "error"
    assert outcome.safe_to_start is False


@pytest.mark.share
@pytest.mark.parametrize("name", golden_names())
def test_sound_stores_have_notes_only(fresh_golden: Callable[[str], Golden], name: str) -> None:
    opened = fresh_golden(name)
    if any(opened.path.glob("timerlog/*")):
        timers_moved(opened.path)
    grave = [one for one in of_golden(opened).consequences if one.severity != "note"]
    # 5.3.3 itself shifts one queue of this store
    known = {("DR-WRONG-ENTRIES", "%LMQ%beta")} if name == "v533-lmq" else set()
    # and does not load this one without its topic table
    known |= {("DR-BATCH-TOPICS-UNKNOWN", None)} if name == "v533-batchcq" else set()
    assert {(one.code, one.facts.get("topic")) for one in grave} == known


@pytest.mark.parametrize("name", ["v533-rocksdb-unclean"])
@shows("DR-ROCKSDB-QUEUES")
def test_queues_in_rocksdb_after_a_crash(golden: Callable[[str], Golden], name: str) -> None:
    assert of(of_golden(golden(name)), "DR-ROCKSDB-QUEUES")


@shows("DR-EXPIRED-QUEUE")
def test_an_expired_queue_of_4_9_returns_foreign_bytes(golden: Callable[[str], Golden]) -> None:
    assert of(of_golden(golden("v498-expired-all")), "DR-EXPIRED-QUEUE")
    assert not of(of_golden(golden("v533-expired-all")), "DR-EXPIRED-QUEUE")
