"""The real stores as judges: one JVM a release that opens store after store."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections import defaultdict
from typing import TYPE_CHECKING, Any, Self

from tests.interop.javastore import JavaError, JavaProcess
from tests.laws.asking import document, refused_by_excluded
from tests.laws.truth import in_rocksdb, strict_units

if TYPE_CHECKING:
    from pathlib import Path

    from fixtures.compound import Compound
    from tests.laws.asking import Asked


_LOADS = 10
"""stores that a JVM opens before it is replaced; none is shut down, which takes Java seconds of sleep"""


class Judge:
    """Opens stores with one release; a JVM that died or hangs is replaced."""

    def __init__(self, release: str, place: Path) -> None:
        self.release, self._place = release, place
        self._java: JavaProcess | None = None
        self._loads = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._java is not None:
            self._java.kill()
        self._java, self._loads = None, 0

    def _call(self, name: str, **arguments: Any) -> Any:
        if self._java is None or not self._java.alive:
            self._java = JavaProcess(self.release, self._place, f"judge-{self.release}")
        return self._java.call(name, **arguments)

    def start(self, root: Path, made: Compound, *, crashed: bool = False) -> list[str]:
        """What a start on `root` does wrong: it does not load, or does not serve a whole record."""
        if crashed:
            (root / "abort").touch()
            if (root / "checkpoint").is_file():
                rest = (root / "checkpoint").read_bytes()[24:]
                (root / "checkpoint").write_bytes(bytes(24) + rest)
        try:
            opened = self._open(root, made, start=True)
            if not opened["loaded"]:
                return ["does not load"]
            self._call("drain")
            wrong = self._served(made)
        except JavaError as error:
            self.__exit__()
            return [f"{error}"[:300]]
        self._opened()
        return wrong

    def load(self, root: Path, made: Compound) -> bool:
        """Only loads, which is where recovery cuts and deletes; the store is never shut down."""
        try:
            opened = self._open(root, made, start=False)
        except JavaError:
            opened = {"loaded": False}
        if opened["loaded"]:
            self._opened()
        else:
            self.__exit__()
        return bool(opened["loaded"])

    def _open(self, root: Path, made: Compound, *, start: bool) -> Any:
        return self._call("open", root=str(root), start=start, settings=usable(made), of_broker=True)

    def _opened(self) -> None:
        """One more store lies open in the JVM."""
        self._loads += 1
        if self._loads == _LOADS:
            self.__exit__()

    def _served(self, made: Compound) -> list[str]:
        queues: dict[tuple[str, int], list[list[Any]]] = defaultdict(list)
        compacted = compacted_topics(made)
        for (topic, queue_id, slot), entry in strict_units(made).items():
            one = made.intact.get(entry.offset)
            if one is not None and entry.size == one.size and topic not in compacted:
                digest = hashlib.sha256(one.raw).hexdigest()
                queues[topic, queue_id].append([slot, one.offset, digest])
        wrong = []
        for (topic, queue_id), wanted in sorted(queues.items()):
            bad = self._call("serve", topic=topic, queue_id=queue_id, wanted=wanted)
            wrong += [f"{topic}/{queue_id} {slot}: {why}" for slot, why in bad]
        return wrong


def compacted_topics(made: Compound) -> set[str]:
    """Topics that 5.x serves from other files, with other bytes (`CompactionStore#getMessage`)."""
    path = made.pristine / "config/topics.json"
    table = json.loads(path.read_text())["topicConfigTable"] if path.exists() else {}
    policies = {topic: one.get("attributes", {}).get("cleanup.policy") for topic, one in table.items()}
    return {topic for topic, policy in policies.items() if policy == "COMPACTION"}


def usable(made: Compound) -> dict[str, object]:
    """The settings that the driver can hand on to Java."""
    return {name: value for name, value in made.settings.items() if isinstance(value, (int, bool))}


def copied(root: Path, target: Path) -> Path:
    """A copy to open, with what links lead to in it."""
    shutil.copytree(root, target, symlinks=False)
    return target


def left_by(root: Path) -> dict[str, Any]:
    """Digests of the files of a store; of the index without names, which hold the broker's clock."""
    paths = [path for path in sorted(root.rglob("*")) if path.is_file()]
    found = {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    for name in ("lock", "checkpoint"):  # of the first nobody reads the bytes, the second a thread may write
        found.pop(name, None)
    for name in [name for name in found if name.startswith("moved/")]:  # links lead there
        del found[name]
    index = sorted(digest for name, digest in found.items() if name.startswith("index/"))
    return {name: digest for name, digest in found.items() if not name.startswith("index/")} | {
        "index": index
    }


def same_as_broker(asked: Asked, judge: Judge) -> None:
    """Law 3: what `recover --policy broker` makes is what the real store leaves after it has loaded."""
    made, planned = asked.made, asked.work / f"broker-{judge.release}"
    if not planned.exists():
        return
    real = copied(made.root, asked.work / "loaded")
    if judge.load(real, made):
        mine, its = left_by(planned), left_by(real)
        if len(its["index"]) < len(mine["index"]):  # two within a millisecond get one name, and are one file
            its["index"] = mine["index"]
        other = sorted(name for name in mine.keys() | its.keys() if mine.get(name) != its.get(name))
        if other:
            first = f"{other[0]} {mine.get(other[0])!s:.8} {its.get(other[0])!s:.8}"
            asked.breaks("java-broker", f"{judge.release}: {len(other)} files, {first}")
    shutil.rmtree(real)


def judge_with_java(asked: Asked, judges: dict[str, Judge]) -> None:
    """Laws 1 and 2 by the real stores; call it before the store itself is changed."""
    made, work = asked.made, asked.work
    kept = work / "kept"
    if in_rocksdb(made):
        return  # the driver does not open these queues
    for release, judge in judges.items():
        reported = document(asked.ask("doctor", made.root, "--json", "--as-version", release))
        wrong = judge.start(copied(made.root, work / f"real-{release}"), made)
        shutil.rmtree(work / f"real-{release}")
        by_config = "config" in str(reported.get("refusal"))  # which only a whole broker reads
        if not by_config:
            same_as_broker(asked, judge)
        if reported.get("verdict") == "safe" and wrong:
            asked.breaks("java-safe", f"{release}: {len(wrong)} not served, {wrong[0]}")
        elif reported.get("verdict") == "damaged":
            counted = reported["already_damaged"]["messages"]
            if counted is not None and counted < len(wrong):
                asked.breaks(
                    "java-damaged", f"{release}: {counted} counted, {len(wrong)} not served, {wrong[0]}"
                )
        refused = wrong == ["does not load"] or (len(wrong) == 1 and wrong[0].startswith("open:"))
        if reported.get("starts") is False and not refused and not by_config:
            asked.breaks("java-starts", f"{release}: starts, against {reported.get('refusal')}")
        if not kept.exists():
            continue
        healthy = document(asked.ask("doctor", made.pristine, "--json", "--as-version", release))
        for crashed in (False, True) if healthy.get("safe_to_start") else ():
            how = "crashed" if crashed else "normal"
            again = work / f"again-{release}-{how}"  # a JVM may write where the last one was
            wrong = judge.start(copied(kept, again), made, crashed=crashed)
            shutil.rmtree(again, ignore_errors=True)
            reported = document(asked.ask("doctor", kept, "--json", "--as-version", release)) if wrong else {}
            if wrong and not refused_by_excluded(asked, reported.get("refusal"), release):
                asked.breaks("java-keep", f"{release} {how}: {len(wrong)} not served, {wrong[0]}")
