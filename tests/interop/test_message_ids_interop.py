"""Unique client ids: when Java's clients say that an id was made, on any day of a month."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from formats.message_id import UniqueClientId
from tests.interop.jars import jars

pytestmark = pytest.mark.interop

DAY = 86_400_000
CHILD = """
import json, sys
import jpype
jpype.startJVM("-Xmx128m", "-Xshare:auto", "-Duser.timezone=UTC", classpath=json.loads(sys.argv[1]))
ids = jpype.JClass("org.apache.rocketmq.common.message.MessageClientIDSetter")
system = jpype.JClass("java.lang.System")
asked = json.load(sys.stdin)
answers = [(int(system.currentTimeMillis()), int(ids.getNearlyTimeFromID(text).getTime())) for text in asked]
made = [str(ids.createUniqID()) for _ in range(3)]
json.dump({"answers": answers, "made": made, "now": int(system.currentTimeMillis())}, sys.stdout)
"""


def test_times_of_ids(release: str) -> None:
    asked = [UniqueClientId(bytes(4), 1, 2, day * DAY + 12_345, 3).build() for day in range(31)]
    paths = json.dumps([str(path) for path in jars(release)])
    run = [sys.executable, "-c", CHILD, paths]
    done = subprocess.run(
        run, input=json.dumps(asked), capture_output=True, text=True, check=True, timeout=120
    )
    said = json.loads(done.stdout)
    for text, (now, answer) in zip(asked, said["answers"], strict=True):
        assert UniqueClientId.decode(text).nearly_time(now) == answer
    for text in said["made"]:
        assert abs(UniqueClientId.decode(text).created_near(said["now"]) - said["now"]) < 60_000
