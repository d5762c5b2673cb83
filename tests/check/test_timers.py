"""What `verify` says of the timer wheel, and that it says where it does not look at it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from fixtures import open_golden
from tests.helpers import rmq

if TYPE_CHECKING:
    from pathlib import Path


def test_the_wheel_is_named_where_nothing_tells_which_timers_wait(tmp_path: Path) -> None:
    golden = open_golden("b533-timer", tmp_path)
    check = golden.path / "config/timercheck"
    for read_time, named in ((None, ["timer log"]), (0, ["timer wheel", "timer log"])):
        if read_time is not None:
            check.write_bytes(read_time.to_bytes(8, "big") + check.read_bytes()[8:])
        done = rmq("verify", golden.path, "--json", "--store-config", golden.config_path)
        said = json.loads(done.stdout)["summary"]["not_looked_at"]
        assert [one for one in said if one.startswith("timer")] == named
