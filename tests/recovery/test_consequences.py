"""Each consequence on a store that has it, with its facts; sound stores have none that matters."""

from __future__ import annotations

import json
import os
import shlex
import shutil
from functools import cache, wraps
from typing import TYPE_CHECKING, Any

import pytest

from fixtures import copy_base, damage_case, golden_names
from fixtures.stores import HandmadeStore, healthy_store
from fixtures.timers import timers_moved
from formats.timer import TIMER_CHECK_SIZE, TimerCheck, parse_timer_check
from rmqtool.check.config_files import check_config
from rmqtool.check.layout import check_layout
from rmqtool.check.verify import Verification
from rmqtool.recovery.consequences.catalogue import CATALOGUE
from rmqtool.recovery.outcome import Verdict
from rmqtool.recovery.simulation import simulate
from rmqtool.scan import kernels_python
from rmqtool.scan.options import ReadOptions
from rmqtool.store.config import config_of
from rmqtool.store.layout import Store
from rmqtool.store.lock import LockState
from tests.helpers import rmq
from tests.recovery import laws
from tests.recovery.corpus import damaged_store, simulated
from tests.recovery.test_goldens import of as of_golden
from tests.recovery.test_simulation import SEGMENT, filled, start, write

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from fixtures import Golden
    from rmqtool.recovery.consequences.consequence import Consequence
    from rmqtool.recovery.outcome import Outcome

ORDER = {"topic": "OrderTopic"}
SHOWN: set[str] = set()
"""codes that tests of this module show on stores of their own"""
_met: set[str] = set()


def shows(*wanted: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Says which codes a test shows; it fails when one of them is in no outcome that it looked at."""
    SHOWN.update(wanted)

    def around(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def run(*args: Any, **more: Any) -> None:
            _met.clear()
            test(*args, **more)
            assert set(wanted) <= _met

        return run

    return around


def codes(outcome: Outcome) -> set[str]:
    found = {one.code for one in outcome.consequences}
    _met.update(found)
    return found


def of(outcome: Outcome, code: str) -> list[Consequence]:
    codes(outcome)
    return laws.of(outcome, code)


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
    assert SHOWN | set(ON_CASES) == set(CATALOGUE)


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
def test_sound_stores_have_notes_only(golden: Callable[[str], Golden], name: str) -> None:
    grave = [one for one in of_golden(golden(name)).consequences if one.severity != "note"]
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


@shows("DR-QUEUES-STOP")
@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
def test_a_topic_with_a_zero_byte_ends_the_writing_of_queues(tmp_path: Path, release: str) -> None:
    """Both stores wrote three entries of `Orders`, and took no message (`ConsumeQueue`, `RunningFlags`)."""
    store = HandmadeStore()
    for number in range(6):
        store.put("Late" if number == 3 else "Orders", b"body")
    store.write(tmp_path / "store")
    late = store.stored[3]
    path, position = store.segment(late.offset)
    store.patch(path, store.read(path).index(b"Late", position), bytes(4))
    shutil.rmtree(store.root / "consumequeue")
    (store.root / "abort").touch()
    outcome = start(store.root, release)
    (found,) = of(outcome, "DR-QUEUES-STOP")
    assert found.facts["offset"] == late.offset
    assert {one.topic: one.max_offset for one in outcome.queues if one.max_offset} == {"Orders": 3}
    assert outcome.safe_to_start is False


@shows("DR-REFUSE-QUEUE-TYPE", "DR-REFUSE-CHECKPOINT")
def test_a_checkpoint_or_queue_of_the_wrong_kind(tmp_path: Path) -> None:
    root = write(tmp_path, filled())
    (root / "config").mkdir()
    attributes = '{"topicConfigTable":{"T":{"topicName":"T","attributes":{"queue.type":"BatchCQ"}}}}'
    (root / "config" / "topics.json").write_text(attributes)
    (root / "consumequeue" / "T" / "0").mkdir(parents=True)
    assert "DR-REFUSE-QUEUE-TYPE" in codes(start(root))
    (root / "checkpoint").mkdir()
    assert "DR-REFUSE-CHECKPOINT" in codes(start(root, "4.9.8"))
    (root / "checkpoint").rmdir()
    (root / "checkpoint").symlink_to("checkpoint")
    assert "DR-REFUSE-CHECKPOINT" in codes(start(root, "4.9.8"))
    (root / "checkpoint").unlink()
    (root / "checkpoint").symlink_to("nothing")
    assert "DR-REFUSE-CHECKPOINT" not in codes(start(root, "4.9.8"))


def test_an_index_file_that_is_a_link_to_itself(tmp_path: Path) -> None:
    """4.9 starts all the same (`DefaultMessageStore#load`)."""
    root = write(tmp_path, filled())
    (root / "index").mkdir(exist_ok=True)
    (root / "index" / "20261121093930931").symlink_to("20261121093930931")
    assert "DR-REFUSE-INDEX" in codes(start(root, "5.3.3"))
    assert "DR-REFUSE-INDEX" not in codes(start(root, "4.9.8"))


STATE_LINKS = [
    (name, where, release)
    for name in ("lock", "checkpoint", "abort", "abort.bak")
    for where in ("missing/x", "there/x", "itself")
    for release in ("4.9.8", "5.3.3")
]


def linked(name: str, where: str, release: str, place: Path) -> tuple[Path, Outcome]:
    """A store after a crash, with a link that leads nowhere in the place of a file of its state."""
    root = copy_base(f"v{release.replace('.', '')}-a-crash", place / "store")
    (place / "there").mkdir()
    (root / name).unlink(missing_ok=True)
    (root / name).symlink_to(name if where == "itself" else place / where)
    sizes = config_of({"mappedFileSizeCommitLog": 65536, "mappedFileSizeConsumeQueue": 4000})
    return root, simulate(Store.open(root, config=sizes), release)


@pytest.mark.parametrize(("name", "where", "release"), STATE_LINKS)
def test_a_link_that_leads_nowhere_in_the_place_of_a_state_file(
    name: str, where: str, release: str, tmp_path: Path
) -> None:
    """As the real stores start with each, see `tests/interop/test_ways_out_interop.py`."""
    _, outcome = linked(name, where, release, tmp_path)
    refused = where != "there/x" and (release == "5.3.3" or not name.startswith("abort"))
    assert outcome.starts is not refused
    assert outcome.verdict is (Verdict.UNSAFE if refused else Verdict.SAFE)
    assert outcome.mode == ("normal" if name == "abort" else "abnormal")
    if refused:
        code = "DR-REFUSE-" + name.upper().removesuffix(".BAK")
        assert laws.of(outcome, code)


@shows("DR-ABORT-LINK")
@pytest.mark.parametrize("where", ["missing/x", "there/x", "itself"])
def test_a_link_behind_which_abort_is_never_made(where: str, tmp_path: Path) -> None:
    """4.9.8 takes its own crash for a clean stop; 5.3.3 makes the file behind the link, or does not start."""
    root, outcome = linked("abort", where, "4.9.8", tmp_path)
    (found,) = of(outcome, "DR-ABORT-LINK")
    assert found.paths == ("abort",)
    assert outcome.verdict is Verdict.SAFE
    assert "DR-ABORT-LINK" not in codes(simulate(Store.open(root), "5.3.3"))
    asked = ("--as-version", "4.9.8", "--json")
    advice = json.loads(rmq("doctor", root, *asked).stdout)["advice"]
    assert shlex.split(advice[0]["command"]) == ["rm", str(root / "abort")]
    (root / "abort").unlink()
    assert "DR-ABORT-LINK" not in rmq("doctor", root, *asked).stdout


@shows("DR-REFUSE-LOCK")
@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
def test_a_directory_in_the_place_of_the_lock(tmp_path: Path, release: str) -> None:
    """Measured with both: opening it fails before anything is loaded."""
    root = write(tmp_path, filled())
    (root / "lock").mkdir()
    assert "DR-REFUSE-LOCK" in codes(start(root, release))


@shows("DR-REFUSE-EXTENSION")
def test_a_foreign_queue_file_with_extension_addresses(
    golden: Callable[[str], Golden], tmp_path: Path
) -> None:
    """Measured: 4.9.8 loads the golden with queue 0 over queue 1, not with queue 1 over queue 0."""
    for to, refused in (("1", False), ("0", True)):
        root = tmp_path / to
        shutil.copytree(golden("v498-cqext").path, root)
        queues = root / "consumequeue" / "TopicExt"
        shutil.rmtree(queues / to)
        shutil.copytree(queues / ("1" if refused else "0"), queues / to)
        found = of(simulate(Store.open(root), "4.9.8"), "DR-REFUSE-EXTENSION")
        paths = [one.paths for one in found]
        assert paths == ([("consumequeue_ext/TopicExt/0/00000000000000002048",)] if refused else [])


def extended(golden: Callable[[str], Golden], root: Path, release: str) -> Path:
    """A store with extension files: the units of queue 0 fill two of them and a part of the third."""
    shutil.copytree(golden(f"v{release.replace('.', '')}-cqext").path, root)
    return root


def patched(path: Path, position: int, data: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(data)


EXTENSION = "consumequeue_ext/TopicExt/0"
QUEUE_0 = "consumequeue/TopicExt/0"


@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
def test_extension_files_whose_units_all_stay(
    golden: Callable[[str], Golden], tmp_path: Path, release: str
) -> None:
    """Measured with both: what does not resolve passes every filter, before new messages come and after."""
    root = extended(golden, tmp_path / "store", release)
    assert simulate(Store.open(root), release).verdict is Verdict.SAFE
    patched(root / EXTENSION / f"{1024:020d}", 0, bytes(2))
    found = simulate(Store.open(root), release)
    assert (found.verdict, found.not_looked_at) == (Verdict.DAMAGED, ())
    (tags,) = of(found, "DR-WRONG-TAGS")
    assert tags.facts["count"] == found.already_damaged.messages == 1


def test_entries_of_expired_messages_need_no_extension_unit(
    golden: Callable[[str], Golden], tmp_path: Path
) -> None:
    """Seed 10775: a copy of a queue, of which nothing but entries of expired messages is left."""
    root = extended(golden, tmp_path / "store", "4.9.8")
    first, second = sorted((root / "commitlog").iterdir())[:2]
    units = (root / QUEUE_0 / f"{0:020d}").read_bytes()
    kept = [
        units[at : at + 20]
        for at in range(0, len(units), 20)
        if int.from_bytes(units[at : at + 8], "big") < int(second.name)
    ]
    copy = root / "consumequeue/TopicExt/35"
    copy.mkdir()
    (copy / f"{0:020d}").write_bytes(b"".join(kept).ljust(len(units), b"\0"))
    assert "DR-EXTENSION-CUT" in codes(simulate(Store.open(root), "4.9.8"))
    first.unlink()
    assert "DR-EXTENSION-CUT" not in codes(simulate(Store.open(root), "4.9.8"))


@shows("DR-WRONG-TAGS")
@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
def test_tags_codes_of_units_and_of_extension_units(
    golden: Callable[[str], Golden], tmp_path: Path, release: str
) -> None:
    root = extended(golden, tmp_path / "store", release)
    patched(root / EXTENSION / f"{0:020d}", 8, b"\x77")
    found = simulate(Store.open(root), release)
    assert (found.verdict, found.already_damaged.messages) == (Verdict.DAMAGED, 1)
    assert of(found, "DR-WRONG-TAGS")[0].facts["start"] == 0


@shows("DR-EXTENSION-CUT")
@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
@pytest.mark.parametrize("damage", ["last file", "no last file", "address", "first address"])
def test_addresses_that_new_messages_get_again(
    golden: Callable[[str], Golden], tmp_path: Path, release: str, damage: str
) -> None:
    """Measured with both: a filter took other messages of the queue once 60 more had been put into it."""
    root = extended(golden, tmp_path / "store", release)
    last = root / EXTENSION / f"{2048:020d}"
    if damage == "last file":
        patched(last, 34, bytes(2))
    elif damage == "no last file":
        last.unlink()
    else:
        patched(root / QUEUE_0 / f"{0:020d}", 18 if damage == "first address" else 5 * 20 + 18, b"\x0c")
    found = simulate(Store.open(root), release)
    assert found.verdict is Verdict.UNSAFE
    (cut,) = of(found, "DR-EXTENSION-CUT")
    assert (cut.facts["topic"], cut.facts["queue_id"]) == ("TopicExt", 0)


@shows("DR-REFUSE-COMPACTION", "DR-COMPACTION-CUT", "DR-COMPACTION-LEFT-OUT", "DR-COMPACTION-DAMAGED")
def test_compaction_logs_that_are_damaged(golden: Callable[[str], Golden], tmp_path: Path) -> None:
    """What a real 5.3.3 did (`tests/interop/test_compaction_interop.py`); more in `test_compaction`."""
    log = "compaction/compactionLog/TopicCompact/0"
    queue = "compaction/compactionCq/TopicCompact/0"
    named = {"DR-REFUSE-COMPACTION": (log, Verdict.UNSAFE), "DR-COMPACTION-CUT": (queue, Verdict.UNSAFE)}
    named |= {"DR-COMPACTION-LEFT-OUT": (log, Verdict.UNSAFE)}
    named |= {"DR-COMPACTION-DAMAGED": (log, Verdict.DAMAGED)}
    for code, (path, verdict) in named.items():
        root = tmp_path / code
        shutil.copytree(golden("b533-compaction").path, root)
        file = root / path / f"{107640:020d}"
        if code in {"DR-REFUSE-COMPACTION", "DR-COMPACTION-CUT"}:
            file.unlink()
        elif code == "DR-COMPACTION-LEFT-OUT":
            file.write_bytes(file.read_bytes()[:-1])
        else:
            patched(file, 300, bytes(2000))
        found = simulate(Store.open(root), "5.3.3")
        assert {one for one in codes(found) if "COMPACTION" in one} == {code}
        assert found.verdict is verdict


def timer_store(golden: Callable[[str], Golden], root: Path, **times: int) -> int:
    """A store whose broker stopped so many ms ago; by how many its times are later than the golden's."""
    shutil.copytree(golden("b533-timer").path, root)
    return timers_moved(root, **times)


MINUTE, DAY = 60_000, 86_400_000


@shows("DR-TIMERS-PASSED")
def test_a_broker_was_down_for_longer_than_its_timer_wheel_looks_back(
    golden: Callable[[str], Golden], tmp_path: Path
) -> None:
    """A broker of 5.3.3 delivered 40 of 40 timers 6 days after its stop, and none 8 days after it."""
    for days, passed in ((6, []), (8, [11])):
        root = tmp_path / str(days)
        timer_store(golden, root, stopped_before=days * DAY)
        found = simulate(Store.open(root), "5.3.3")
        assert [one.facts["count"] for one in of(found, "DR-TIMERS-PASSED")] == passed
        assert found.verdict is (Verdict.UNSAFE if passed else Verdict.SAFE)


def test_a_timer_check_without_the_time_that_was_read_changes_nothing_of_that(
    golden: Callable[[str], Golden], tmp_path: Path
) -> None:
    timer_store(golden, tmp_path / "store", stopped_before=9 * DAY)
    check = tmp_path / "store/config/timercheck"
    data = check.read_bytes()
    fields = {**parse_timer_check(data), "last_read_time": 0}
    check.write_bytes(TimerCheck.build(fields) + data[TIMER_CHECK_SIZE:])
    found = simulate(Store.open(tmp_path / "store"), "5.3.3")
    assert of(found, "DR-TIMERS-PASSED")
    assert found.verdict is Verdict.UNSAFE


@shows("DR-TIMERS-LOST", "DR-TIMERS-AGAIN", "DR-UNCHECKED-TIMERS")
def test_timer_files_that_are_gone(golden: Callable[[str], Golden], tmp_path: Path) -> None:
    """`TimerMessageStore#recover`: only the last files of the timer log are read for a new wheel."""
    root = tmp_path / "whole"
    timer_store(golden, root)
    assert simulate(Store.open(root), "5.3.3").verdict is Verdict.SAFE
    wanted = {
        "timerlog": "DR-TIMERS-LOST",
        "timerwheel": "DR-TIMERS-LOST",
        "config/timercheck": "DR-TIMERS-AGAIN",
    }
    for name, code in wanted.items():
        root = tmp_path / code / name.rpartition("/")[2]
        timer_store(golden, root, undelivered=MINUTE)
        place = root / name
        shutil.rmtree(place) if place.is_dir() else place.unlink()
        found = simulate(Store.open(root), "5.3.3")
        assert {one for one in codes(found) if one.startswith("DR-TIMERS")} == {code}
        assert found.verdict is Verdict.UNSAFE
        assert simulate(Store.open(root), "4.9.8").verdict is Verdict.SAFE


@shows("DR-TIMERS-AGAIN")
def test_nothing_of_the_timer_log_came_along(golden: Callable[[str], Golden], tmp_path: Path) -> None:
    """The log of messages still holds delivered timers, and a new `config/timercheck` counts none of them."""
    root = tmp_path / "store"
    timer_store(golden, root)
    for name in ("timerlog", "timerwheel", "config/timercheck"):
        place = root / name
        shutil.rmtree(place) if place.is_dir() else place.unlink()
    found = simulate(Store.open(root), "5.3.3")
    assert {one for one in codes(found) if one.startswith("DR-TIMERS")} == {"DR-TIMERS-AGAIN"}
    assert found.verdict is Verdict.UNSAFE


@pytest.mark.parametrize(
    ("base", "code", "count"),
    [(0, None, 0), (520, None, 0), (2080, "DR-TIMERS-LOST", 4), (2600, "DR-TIMERS-AGAIN", 7)],
)
def test_a_file_of_the_timer_log_is_missing(
    base: int, code: str | None, count: int, golden: Callable[[str], Golden], tmp_path: Path
) -> None:
    """Ten timers wait from 2340 to 2860 when the broker stops; those of the first files are delivered."""
    root = tmp_path / "store"
    timer_store(golden, root)
    (root / f"timerlog/{base:020d}").unlink()
    found = simulate(Store.open(root), "5.3.3")
    harm = [one for one in found.consequences if one.code.startswith("DR-TIMERS")]
    named = (f"timerlog/{base:020d}",)
    assert [(one.code, one.facts["count"], one.paths) for one in harm] == (
        [(code, count, named)] if code else []
    )
    assert found.verdict is (Verdict.UNSAFE if code else Verdict.SAFE)


@shows("DR-TIMERS-LOST")
def test_the_first_file_of_the_timer_log_has_timers_that_wait(
    golden: Callable[[str], Golden], tmp_path: Path
) -> None:
    """Their messages are there, so that it has not expired."""
    root = tmp_path / "store"
    delta = timer_store(golden, root)
    (root / f"timerlog/{0:020d}").unlink()
    check = root / "config/timercheck"
    patched(check, 0, (1_795_253_527_000 + delta).to_bytes(8, "big"))
    (one,) = of(simulate(Store.open(root), "5.3.3"), "DR-TIMERS-LOST")
    assert (one.paths, one.facts["count"]) == ((f"timerlog/{0:020d}",), 5)


@shows("DR-TIMERS-AGAIN")
def test_what_is_no_timer_ends_the_timer_log(golden: Callable[[str], Golden], tmp_path: Path) -> None:
    """`TimerMessageStore#recoverAndRevise` cuts the log there, and reads the rest from the topic again."""
    root = tmp_path / "store"
    timer_store(golden, root)
    patched(root / f"timerlog/{2080:020d}", 104, bytes(52))
    found = simulate(Store.open(root), "5.3.3")
    (one,) = of(found, "DR-TIMERS-AGAIN")
    assert (one.paths, one.facts["count"]) == ((f"timerlog/{2080:020d}",), 15)
    assert found.verdict is Verdict.UNSAFE


@pytest.mark.parametrize(
    ("position", "value", "wanted"),
    [
        (0, 4_102_444_800_000, {"DR-TIMERS-LOST": 52}),
        (24, 40, {"DR-TIMERS-AGAIN": 12}),
        (24, 0, {"DR-TIMERS-AGAIN": 52}),
        (24, 99, {}),
    ],
    ids=["time to come", "master behind", "master at none", "master ahead"],
)
def test_a_timer_check_that_no_broker_writes(
    position: int, value: int, wanted: dict[str, int], golden: Callable[[str], Golden], tmp_path: Path
) -> None:
    """A broker of 5.3.3 delivered none of 40 timers with such a time, and each twice with such an offset."""
    root = tmp_path / "store"
    timer_store(golden, root)
    patched(root / "config/timercheck", position, value.to_bytes(8, "big"))
    found = simulate(Store.open(root), "5.3.3")
    harm = [one for one in found.consequences if one.code in {"DR-TIMERS-LOST", "DR-TIMERS-AGAIN"}]
    assert {one.code: one.facts["count"] for one in harm} == wanted
    store = Store.open(root)
    run = Verification(store, ReadOptions.of(store))
    said = {"CP-TIMERS-AHEAD": "DR-TIMERS-LOST", "CP-TIMERS-BEHIND": "DR-TIMERS-AGAIN"}
    assert {said[one.code]: one.expected for one in run.findings() if one.code in said} == wanted
    assert found.verdict is (Verdict.UNSAFE if wanted else Verdict.SAFE)


@shows("DR-TIMERS-AGAIN")
def test_a_timer_check_that_is_cut(golden: Callable[[str], Golden], tmp_path: Path) -> None:
    root = tmp_path / "store"
    timer_store(golden, root)
    os.truncate(root / "config/timercheck", 24)
    (one,) = of(simulate(Store.open(root), "5.3.3"), "DR-TIMERS-AGAIN")
    assert one.paths == ("config/timercheck",)


def test_counts_of_timers_that_cannot_be_parsed(golden: Callable[[str], Golden], tmp_path: Path) -> None:
    """`TimerMessageStore#load` fails with `TimerMetrics#load`; a broker of 5.3.3 ends with -3."""
    root = tmp_path / "store"
    timer_store(golden, root)
    counts = root / "config/timermetrics"
    counts.write_bytes(b'{"a":[1,')
    assert simulate(Store.open(root), "5.3.3").verdict is Verdict.SAFE
    counts.with_name("timermetrics.bak").write_bytes(b'{"a":[1,')
    found = simulate(Store.open(root), "5.3.3")
    assert found.refusal is not None
    assert (found.refusal.code, found.refusal.path) == ("config-unparsable", "config/timermetrics")
    assert simulate(Store.open(root), "4.9.8").verdict is Verdict.SAFE
    without = config_of({"timerWheelEnable": "false"})
    assert simulate(Store.open(root, config=without), "5.3.3").verdict is Verdict.SAFE
    assert [one.code for one in check_config(Store.open(root))] == ["CFG-REFUSED"]


def test_a_timer_log_of_another_length(golden: Callable[[str], Golden], tmp_path: Path) -> None:
    """`TimerMessageStore#load` fails by `MappedFileQueue#doLoad`, and with it the broker."""
    root = tmp_path / "store"
    timer_store(golden, root)
    with (root / "timerlog" / f"{520:020d}").open("r+b") as file:
        file.truncate(300)
    found = simulate(Store.open(root), "5.3.3")
    assert found.refusal is not None
    assert (found.refusal.code, found.refusal.path) == ("file-length", f"timerlog/{520:020d}")


@shows("DR-REFUSE-INDEX")
def test_a_directory_among_index_files_refuses_after_recovery(tmp_path: Path) -> None:
    root = write(tmp_path, filled())
    (root / "index" / "20260101000000000").mkdir(parents=True)
    (root / "commitlog" / f"{SEGMENT * 3:020d}").write_bytes(bytes(SEGMENT))
    found = start(root)
    assert {"DR-REFUSE-INDEX", "DR-REFUSED-LATE"} <= codes(found)
    assert of(found, "DR-REFUSED-LATE")[0].paths == (f"commitlog/{SEGMENT * 3:020d}",)
    assert "DR-REFUSE-INDEX" not in codes(start(root, "4.9.8"))


@shows("DR-REFUSE-TIMER-WHEEL")
def test_a_timer_wheel_of_another_length(tmp_path: Path) -> None:
    root = write(tmp_path, filled())
    (root / "timerwheel").write_bytes(bytes(64))
    assert "DR-REFUSE-TIMER-WHEEL" in codes(start(root))
    assert start(root).starts is False
    assert start(root, timerWheelEnable="false").starts is True
    assert start(root, "4.9.8").starts is True


@shows("DR-LMQ-SKIPPED", "DR-REFUSE-MULTI-DISPATCH", "DR-REFUSE-STUCK")
def test_lists_of_queues_that_do_not_fit(tmp_path: Path) -> None:
    log = filled(2)
    log.put("T", b"x", {"INNER_MULTI_DISPATCH": "%LMQ%b,plain", "INNER_MULTI_QUEUE_OFFSET": "4,"})
    on = {"enableMultiDispatch": "true", "enableLmq": "true"}
    (skipped,) = of(start(write(tmp_path, log), **on), "DR-LMQ-SKIPPED")
    assert skipped.facts == {"count": 1}
    log.put("T", b"x", {"INNER_MULTI_DISPATCH": "plain,%LMQ%a", "INNER_MULTI_QUEUE_OFFSET": ",4"})
    (tmp_path / "second").mkdir()
    assert "DR-REFUSE-MULTI-DISPATCH" in codes(start(write(tmp_path / "second", log), **on))
    assert "DR-REFUSE-STUCK" in codes(start(tmp_path / "second", "4.9.8", **on))


@shows("DR-POISON-HALF")
def test_half_messages_that_no_check_gets_past(tmp_path: Path) -> None:
    log = filled(2)
    half = "RMQ_SYS_TRANS_HALF_TOPIC"
    log.put(half, b"plain", {"REAL_TOPIC": "T", "REAL_QID": "0"})
    bad = log.put(half, b"no zlib", {"REAL_TOPIC": "T", "REAL_QID": "0"}, sys_flag=1)
    log.put(half, b"no topic", {"REAL_QID": "0"})
    (found,) = of(start(write(tmp_path, log)), "DR-POISON-HALF")
    assert found.facts == {"count": 2, "offset": bad.physical_offset}


@shows("DR-LOCALE-NAMES")
def test_names_in_other_digits_and_calendars(tmp_path: Path) -> None:
    root = write(tmp_path, filled(3))
    digits = str.maketrans("0123456789", "٠١٢٣٤٥٦٧٨٩")
    (root / "commitlog" / f"{0:020d}").rename(root / "commitlog" / f"{0:020d}".translate(digits))
    (root / "index").mkdir()
    (root / "index" / "25690101000000000").write_bytes(bytes(400))
    (found,) = of(start(root), "DR-LOCALE-NAMES")
    assert found.facts == {"count": 2}


@shows("DR-CONFIG-FORGIVEN")
def test_a_forgiven_configuration_file(tmp_path: Path) -> None:
    root = write(tmp_path, filled(3))
    (root / "config").mkdir()
    (root / "config" / "consumerOffset.json").write_bytes(b'\xef\xbb\xbf{"offsetTable":{"T@g":{"0":1}}}')
    assert of(start(root), "DR-CONFIG-FORGIVEN")[0].facts["path"] == "config/consumerOffset.json"


@shows("DR-OFFSETS-UNKNOWN")
def test_a_broker_that_ran_has_written_offsets(tmp_path: Path) -> None:
    root = write(tmp_path, filled(3))
    (root / "config").mkdir()
    (root / "config" / "consumerFilter.json").write_text("{}")
    assert "DR-OFFSETS-UNKNOWN" not in codes(start(root))
    (root / "config" / "topics.json").write_text('{"topicConfigTable":{},"dataVersion":{}}')
    (found,) = of(start(root), "DR-OFFSETS-UNKNOWN")
    assert (found.severity, found.paths) == ("note", ("config/consumerOffset.json",))
    (root / "config" / "lmqConsumerOffset.json.bak").write_text('{"offsetTable":{}}')
    assert "DR-OFFSETS-UNKNOWN" not in codes(start(root))


@shows("DR-DELAY-OFFSETS-UNKNOWN")
def test_delay_levels_without_offsets_begin_again(tmp_path: Path) -> None:
    log = filled(2)
    for number in range(3):
        log.put("SCHEDULE_TOPIC_XXXX", b"later", {"DELAY": "3", "REAL_TOPIC": "T", "REAL_QID": f"{number}"})
    root = write(tmp_path, log)
    (root / "config").mkdir()
    (root / "config" / "topics.json").write_text('{"topicConfigTable":{},"dataVersion":{}}')
    (found,) = of(start(root), "DR-DELAY-OFFSETS-UNKNOWN")
    assert (found.severity, found.facts["messages"]) == ("warning", 3)
    (root / "config" / "delayOffset.json.bak").write_text('{"offsetTable":{}}')
    assert "DR-DELAY-OFFSETS-UNKNOWN" not in codes(start(root))


def test_an_empty_table_counts_what_its_backup_would_have_had(tmp_path: Path) -> None:
    root = write(tmp_path, filled(3))
    (root / "config").mkdir()
    (root / "config" / "consumerOffset.json").write_text("null")
    (root / "config" / "consumerOffset.json.bak").write_text('{"offsetTable":{"T@g":{"0":1},"T@h":{"0":2}}}')
    (found,) = of(start(root), "DR-CONFIG-EMPTY")
    assert (found.facts["what"], found.facts["entries"], found.severity) == ("consumer offsets", 2, "error")


@shows("DR-LOG-GONE")
def test_a_log_that_is_gone_with_its_queues(tmp_path: Path) -> None:
    root = copy_base("v533-a-clean", tmp_path / "store")
    for name in ("commitlog", "consumequeue"):
        shutil.rmtree(root / name)
    outcome = simulate(Store.open(root), "5.3.3")
    (found,) = of(outcome, "DR-LOG-GONE")
    assert outcome.verdict is Verdict.UNSAFE
    assert found.facts["evidence"].startswith("checkpoint, index/")


@shows("DR-BLOCKED-DIRECTORY")
@pytest.mark.parametrize(
    "path", ["commitlog", "consumequeue", "consumequeue/Orders", "consumequeue/Orders/1"]
)
@pytest.mark.parametrize("link", [False, True])
def test_what_lies_in_the_place_of_a_directory(tmp_path: Path, path: str, link: bool) -> None:
    """4.9.8 refuses all messages after 30 s, 5.3.3 starts after 30 s and gives queue offsets again."""
    root = healthy_store().write(tmp_path / "store").root
    _replace(root / path, link=link)
    outcome = start(root)
    assert outcome.verdict is Verdict.UNSAFE
    assert of(outcome, "DR-BLOCKED-DIRECTORY")[0].facts["path"] == path


@pytest.mark.parametrize("path", ["timerlog", "batchconsumequeue"])
def test_what_only_brokers_of_5_need_a_directory_for(tmp_path: Path, path: str) -> None:
    """5.3.3 starts and takes messages with a delivery time, which are then never delivered."""
    root = healthy_store().write(tmp_path / "store").root
    shutil.rmtree(root / path, ignore_errors=True)
    (root / path).write_bytes(b"-")
    outcome = simulate(Store.open(root), "5.3.3")
    assert outcome.verdict is Verdict.UNSAFE
    assert of(outcome, "DR-BLOCKED-DIRECTORY")[0].paths == (path,)
    assert "DR-BLOCKED-DIRECTORY" not in codes(simulate(Store.open(root), "4.9.8"))


@shows("DR-BLOCKED")
def test_without_an_index_nothing_minds_what_lies_in_its_place(tmp_path: Path) -> None:
    root = healthy_store().write(tmp_path / "store").root
    _replace(root / "index", link=False)
    outcome = start(root, messageIndexEnable=False)
    assert of(outcome, "DR-BLOCKED")[0].facts["path"] == "index"
    assert outcome.verdict is Verdict.SAFE


@pytest.mark.parametrize("link", [False, True])
@pytest.mark.parametrize("release", ["4.9.8", "5.3.3"])
def test_what_lies_in_the_place_of_the_index_ends_all_dispatching(
    tmp_path: Path, release: str, link: bool
) -> None:
    """After a clean start the first message does; what the start itself dispatches ends it."""
    root = healthy_store().write(tmp_path / "store").root
    _replace(root / "index", link=link)
    outcome = simulate(Store.open(root), release)
    assert outcome.verdict is Verdict.UNSAFE
    assert of(outcome, "DR-BLOCKED-DIRECTORY")[0].facts["path"] == "index"
    assert outcome.starts
    (root / "abort").touch()
    again = simulate(Store.open(root), release)
    assert again.refusal is not None
    assert (again.refusal.code, again.refusal.path) == ("index-unopenable", "index")


def test_a_start_that_waits_for_dispatching_never_ends_without_an_index(tmp_path: Path) -> None:
    root = healthy_store().write(tmp_path / "store").root
    shutil.rmtree(root / "consumequeue")
    _replace(root / "index", link=False)
    refusal = simulate(Store.open(root), "4.9.8").refusal
    assert refusal is not None
    assert (refusal.code, refusal.path) == ("dispatch-stuck", "index")


@shows("DR-BLOCKED-FILE")
@pytest.mark.parametrize("suffix", ["", ".bak"])
@pytest.mark.parametrize(
    "table", ["consumerOffset.json", "topics.json", "subscriptionGroup.json", "delayOffset.json"]
)
def test_a_directory_in_the_place_of_a_table(tmp_path: Path, table: str, suffix: str) -> None:
    """4.9.7 and 5.3.3 start, and what they keep in it is forgotten with their stop."""
    root = healthy_store().write(tmp_path / "store").root
    (root / "config" / (table + suffix)).unlink(missing_ok=True)
    (root / "config" / (table + suffix)).mkdir()
    for release in ("4.9.8", "5.3.3"):
        outcome = simulate(Store.open(root), release)
        assert outcome.starts
        assert outcome.verdict is Verdict.UNSAFE
        assert of(outcome, "DR-BLOCKED-FILE")[0].paths == (f"config/{table}{suffix}",)
    assert "DIR-DIRECTORY" in {one.code for one in check_layout(Store.open(root))}


@shows("DR-BLOCKED-FILE")
@pytest.mark.parametrize("place", ["commitlog", "consumequeue/Orders/0"])
def test_a_directory_where_log_or_queue_will_grow(tmp_path: Path, place: str) -> None:
    """5.3.3 passes over it when it starts, and answers CREATE_MAPPED_FILE_FAILED when it comes there."""
    root = healthy_store().write(tmp_path / "store").root
    last = max((root / place).iterdir())
    path = f"{place}/{int(last.name) + last.stat().st_size:020}"
    (root / path).mkdir()
    outcome = simulate(Store.open(root), "5.3.3")
    assert outcome.verdict is Verdict.UNSAFE
    assert of(outcome, "DR-BLOCKED-FILE")[0].paths == (path,)


@shows("DR-BLOCKED-FILE")
def test_a_directory_where_the_timer_log_will_grow(golden: Callable[[str], Golden], tmp_path: Path) -> None:
    """5.3.3 starts, and delivers no timer from then on (30 of 30 that were sent)."""
    root = tmp_path / "store"
    timer_store(golden, root)
    last = max((root / "timerlog").iterdir())
    path = f"timerlog/{int(last.name) + last.stat().st_size:020}"
    (root / path).mkdir()
    outcome = simulate(Store.open(root), "5.3.3")
    assert outcome.verdict is Verdict.UNSAFE
    (found,) = of(outcome, "DR-BLOCKED-FILE")
    assert found.paths == (path,)
    assert "are never delivered" in found.message
    assert simulate(Store.open(root), "4.9.8").verdict is Verdict.SAFE


def test_a_directory_where_the_start_itself_makes_a_queue_file(tmp_path: Path) -> None:
    """5.3.3 tries for half a minute for every message that it dispatches."""
    root = healthy_store().write(tmp_path / "store").root
    (root / "abort").touch()
    last = max((root / "consumequeue/Orders/0").iterdir())
    last.unlink()
    last.mkdir()
    outcome = simulate(Store.open(root), "5.3.3")
    assert outcome.verdict is Verdict.UNSAFE
    assert of(outcome, "DR-BLOCKED-FILE")[0].paths == (f"consumequeue/Orders/0/{last.name}",)


@shows("DR-REFUSE-TIMER-FILE")
@pytest.mark.parametrize("path", ["config", "config/timercheck", "timerwheel"])
def test_no_place_for_a_file_of_the_timers(tmp_path: Path, path: str) -> None:
    """5.3.3 ends before it loads its store, so that nothing is lost; 4.9 has no such timers."""
    root = healthy_store().write(tmp_path / "store").root
    if path == "config":
        _replace(root / path, link=False)
    else:
        (root / path).mkdir(parents=True)
    outcome = simulate(Store.open(root), "5.3.3")
    assert of(outcome, "DR-REFUSE-TIMER-FILE")
    assert outcome.refusal is not None
    assert (outcome.refusal.code, outcome.refusal.path) == ("timer-file", path)
    assert not outcome.deletes
    assert not any(queue.lost for queue in outcome.queues)
    assert simulate(Store.open(root), "4.9.8").starts
    assert start(root, timerWheelEnable=False).starts


def test_a_directory_in_the_place_of_the_first_segment(tmp_path: Path) -> None:
    """What has expired leaves none: the messages of that segment are not there any more."""
    store = healthy_store().write(tmp_path / "store")
    first = min((store.root / "commitlog").iterdir())
    size = first.stat().st_size
    first.unlink()
    first.mkdir()
    outcome = simulate(Store.open(store.root), "5.3.3")
    assert outcome.verdict is Verdict.DAMAGED
    assert of(outcome, "DR-GAP")[0].facts == {"start": 0, "end": size}
    first.rmdir()
    assert simulate(Store.open(store.root), "5.3.3").verdict is Verdict.SAFE


def _replace(place: Path, *, link: bool) -> None:
    shutil.rmtree(place)
    if link:
        place.symlink_to(place.parent / "not-mounted")
    else:
        place.write_bytes(b"")


@shows("DR-LOCK-UNKNOWN")
def test_a_lock_that_cannot_be_known(tmp_path: Path) -> None:
    root = write(tmp_path, filled(3))
    unknown = LockState(None, None, "record lock cannot be probed")
    assert "DR-LOCK-UNKNOWN" in codes(start(root, lock=unknown))
    remote = LockState(False, None, "not locked, but locks of other hosts may be invisible on nfs4")
    assert "DR-LOCK-UNKNOWN" in codes(start(root, lock=remote))
    assert "DR-LOCK-UNKNOWN" not in codes(start(root))


@shows("DR-BATCH-AS-PLAIN")
def test_batch_queues_under_a_release_that_knows_none(tmp_path: Path) -> None:
    """A real 4.9.8 gave twelve batches of two the places 0 to 11 of a plain queue."""
    store = HandmadeStore()
    for _ in range(12):
        store.put_batch("Batches", [b"a", b"b"])
    store.write(tmp_path / "store")
    outcome = simulate(Store.open(store.root), "4.9.8")
    (found,) = of(outcome, "DR-BATCH-AS-PLAIN")
    assert (found.facts, found.paths) == ({"count": 1}, ("batchconsumequeue/Batches",))
    (twice,) = of(outcome, "DR-OFFSETS-TWICE")
    assert (twice.facts["start"], twice.facts["end"]) == (12, 22)
    assert "DR-BATCH-AS-PLAIN" not in codes(simulate(Store.open(store.root), "5.3.3"))


@shows("DR-BATCH-TOPICS-UNKNOWN")
def test_batch_queues_without_a_topic_table(tmp_path: Path) -> None:
    """5.x takes topics that it does not know for such with plain queues; `recover` makes a table."""
    store = HandmadeStore()
    for _ in range(3):
        store.put_batch("Batches", [b"a", b"b"])
        store.put("Orders", b"body")
    store.write(tmp_path / "store")
    outcome = simulate(Store.open(store.root), "5.3.3")
    (found,) = of(outcome, "DR-BATCH-TOPICS-UNKNOWN")
    assert (found.facts, found.paths) == ({"count": 1}, ("batchconsumequeue/Batches",))
    assert outcome.verdict is Verdict.UNSAFE
    assert "DR-BATCH-TOPICS-UNKNOWN" not in codes(simulate(Store.open(store.root), "4.9.8"))
    done = rmq("recover", store.root, "--as-version", "5.3.3", "--output", tmp_path / "out", "--apply")
    assert done.exit_code == 0, done.stdout + done.stderr
    table = json.loads((tmp_path / "out/config/topics.json").read_text())["topicConfigTable"]
    assert table["Batches"]["attributes"] == {"queue.type": "BatchCQ"}
    assert table["Orders"]["readQueueNums"] == 1
    assert simulate(Store.open(tmp_path / "out"), "5.3.3").verdict is Verdict.SAFE


@shows("DR-DELAYED-AT-ONCE")
def test_delayed_messages_that_recovery_dispatches(tmp_path: Path) -> None:
    """The real store of 4.9.8 writes the tags code 0 for them, that of 5.3.3 the time of delivery."""
    store = HandmadeStore()
    store.config["delayOffset"] = {"offsetTable": {3: 1}}
    store.put("Orders", b"body")
    for _ in range(3):
        store.put("SCHEDULE_TOPIC_XXXX", b"body", queue_id=2, properties={"DELAY": "3"})
    store.write(tmp_path / "store")
    shutil.rmtree(store.root / "consumequeue")
    assert "DR-DELAYED-AT-ONCE" not in codes(simulate(Store.open(store.root), "4.9.8"))
    (store.root / "abort").touch()
    (found,) = of(simulate(Store.open(store.root), "4.9.8"), "DR-DELAYED-AT-ONCE")
    facts = {"topic": "SCHEDULE_TOPIC_XXXX", "queue_id": 2, "count": 2, "start": 1}
    assert found.facts == facts
    assert "DR-DELAYED-AT-ONCE" not in codes(simulate(Store.open(store.root), "5.3.3"))


@shows("DR-END-DOUBTED")
def test_an_end_that_only_the_checkpoint_knows(tmp_path: Path) -> None:
    """A backup of the log that is older than the rest: brokers start and go on from there."""
    store = HandmadeStore()
    for _ in range(60):
        store.put("Orders", b"body")
    store.write(tmp_path / "store")
    shutil.rmtree(store.root / "index")
    assert simulate(Store.open(store.root), "5.3.3").verdict is Verdict.SAFE
    last, before = store.stored[-1], store.stored[-2]
    store.patch(*store.segment(last.offset), bytes(last.size))
    store.patch(*(last.unit or ("", 0)), bytes(20))
    for release in ("4.9.8", "5.3.3"):
        outcome = simulate(Store.open(store.root), release)
        (found,) = of(outcome, "DR-END-DOUBTED")
        assert found.facts == {"until": last.time, "latest": before.time, "end": last.offset}
        assert outcome.verdict is Verdict.DAMAGED
        assert outcome.already_damaged.paths == ("checkpoint",)


@shows("DR-HEAP")
def test_a_large_record_where_recovery_stops(tmp_path: Path) -> None:
    log = filled()
    place = log.records[20].physical_offset
    path = write(tmp_path, log) / "commitlog" / f"{place // SEGMENT * SEGMENT:020d}"
    raw = bytearray(path.read_bytes())
    raw[place % SEGMENT : place % SEGMENT + 4] = (512 << 20).to_bytes(4, "big")
    path.write_bytes(raw)
    assert "DR-HEAP" in codes(start(tmp_path, "4.9.8"))
    assert "DR-HEAP" not in codes(start(tmp_path))


@pytest.mark.parametrize("longer", [False, True])
@shows("DR-END-LOST")
def test_an_end_that_only_the_index_knows(longer: bool, tmp_path: Path) -> None:
    """400487: an index file that had become longer was not asked, and the start was called safe."""
    store = HandmadeStore()
    for number in range(60):
        store.put("Orders", b"body", keys=f"k{number}")
    store.write(tmp_path / "store")
    last = store.stored[-1]
    store.patch(*store.segment(last.offset), bytes(last.size))
    store.patch(*(last.unit or ("", 0)), bytes(20))
    if longer:
        with max((store.root / "index").iterdir()).open("ab") as file:
            file.write(b"\0")
    outcome = simulate(Store.open(store.root), "5.3.3")
    (found,) = of(outcome, "DR-END-LOST")
    assert found.facts == {"offset": last.offset, "end": last.offset}
    assert outcome.verdict is Verdict.DAMAGED
    assert outcome.already_damaged.bytes == 1
