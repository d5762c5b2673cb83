"""What does not belong among the files that a real store loads by name: doctor foresees what it does."""

from __future__ import annotations

import shutil
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.interop.broker import Broker
from tests.interop.conftest import require
from tests.interop.javastore import JavaError, JavaStore
from tests.repair.test_foreign_entries import CASES, KINDS, Entered, entered
from tests.tiers import sampled

if TYPE_CHECKING:
    from pathlib import Path

    from tests.interop.javastore import JavaProcess

pytestmark = pytest.mark.interop

OF_THE_STORE = [one for one in CASES if one[0] != "timerlog"]
"""the others are a broker's"""
DELIVERED_SECONDS = 8


def ends(release: str, made: Entered, root: Path, idle: list[JavaProcess]) -> dict[str, int] | None:
    """The queues of a real store that was started on a copy of `root`; None where it refuses."""
    copy = shutil.copytree(root, root.with_name(f"{root.name}-tried"))
    wanted = {name: _typed(value) for name, value in made.settings.items() if "Port" not in name}
    settings: dict[str, Any] = {
        name: value for name, value in wanted.items() if isinstance(value, (bool, int))
    }
    try:
        with JavaStore(release, copy, idle=idle, of_broker=True, **settings) as java:
            if not java.loaded:
                return None
            return {f"{one['topic']}/{one['queue']}": one["max"] for one in java.call("queues")}
    except JavaError:
        return None


def _typed(value: object) -> object:
    text = str(value)
    return text == "true" if text in ("true", "false") else int(text) if text.isdecimal() else text


@pytest.mark.share
@pytest.mark.parametrize(
    ("directory", "wanted", "kind"),
    sampled(OF_THE_STORE, kind=lambda one: one[0], unpack=True),
)
def test_a_real_store_does_what_doctor_says_and_starts_on_the_result(
    directory: str,
    wanted: str,
    kind: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    idle: dict[str, list[JavaProcess]],
) -> None:
    release = require(request.config, wanted)
    made = entered(directory, release, kind, tmp_path)
    starts = made.asked(made.root, release)["starts"]
    found = ends(release, made, made.root, idle[release])
    assert (found is not None) is starts
    out = made.recovered(release, tmp_path / "out")
    after = ends(release, made, out, idle[release])
    assert after is not None
    assert found in (None, after)


def broker_on(root: Path, directory: Path, made: Entered) -> Broker:
    others = ("storePath", "listenPort", "haListenPort", "broker")
    own = {name: value for name, value in made.settings.items() if not name.startswith(others)}
    directory.mkdir()
    return Broker("5.3.3", root, directory, **own)


@pytest.mark.full  # a broker takes a quarter of a minute to start
@pytest.mark.parametrize("kind", KINDS)
def test_a_broker_and_what_lies_in_its_timer_log(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest, idle: dict[str, list[JavaProcess]]
) -> None:
    """It ends, or delivers no timer when the next file cannot be made; on the result of `recover` it does."""
    require(request.config, "5.3.3", "broker")
    made = entered("timerlog", "5.3.3", kind, tmp_path)
    reported = made.asked(made.root, "5.3.3")
    out = made.recovered("5.3.3", tmp_path / "out")
    older = require(request.config, "4.9.8")
    assert ends(older, made, out, idle[older]) is not None
    if reported["starts"]:
        assert delivers(made, made.root, tmp_path / "before") is reported["safe_to_start"]
    else:
        with pytest.raises(RuntimeError, match="ended"):
            broker_on(made.root, tmp_path / "before", made)
    assert delivers(made, out, tmp_path / "after")


def delivers(made: Entered, root: Path, directory: Path) -> bool:
    """Whether a broker on the store delivers timers, more than the last file of its log has room for."""
    with broker_on(root, directory, made) as broker:
        for number in range(30):
            broker.send("TimedNew", b"%d" % number, TIMER_DELAY_MS=1000)
        time.sleep(DELIVERED_SECONDS)
    return any(path.read_bytes().strip(b"\0") for path in (root / "consumequeue").glob("TimedNew/*/*"))
