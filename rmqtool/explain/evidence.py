"""What a store shows about the values of a line: the record at an offset, the file of a name, the queue."""

from __future__ import annotations

from typing import TYPE_CHECKING

from formats.java import java_parse_int
from rmqtool.errors import RmqtoolError
from rmqtool.query.locate import What, look_at
from rmqtool.query.one_record import read_record
from rmqtool.query.queue_ends import file_ends
from rmqtool.store.kinds import FileKind
from rmqtool.store.lock import probe
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rmqtool.explain.tally import Cause
    from rmqtool.query.locate import Place
    from rmqtool.store.layout import Queue, Store

_OFFSETS = ("physical_offset", "from_offset")
_FILES = ("path", "other_path")
_MOST_QUEUES = 8


class StoreEvidence:
    """Looks up the samples of a cause in one store. Nothing is written; what cannot be read is said."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._told: dict[tuple[str, str], list[str]] = {}

    def __call__(self, cause: Cause) -> list[str]:
        """One line for each fact, each once."""
        asked = [question for values in cause.samples for question in _questions(values)]
        if cause.entry.id == "start.lock-failed":
            asked.append(("lock", ""))
        return [line for question in dict.fromkeys(asked) for line in self._answer(question)]

    def _answer(self, question: tuple[str, str]) -> list[str]:
        if question not in self._told:
            kind, value = question
            look = {
                "offset": self._offset, "file": self._file, "queue": self._queues, "lock": self._lock,
            }[kind]  # fmt: skip
            try:
                self._told[question] = list(look(value))
            except RmqtoolError as error:
                self._told[question] = [f"cannot be read: {error}"]
        return self._told[question]

    def _offset(self, value: str) -> Iterator[str]:
        offset = java_parse_int(value, 64)
        if offset is None or offset < 0:
            return
        place = look_at(self._store.segments, offset)
        yield f"offset {offset}: {_what(place)}"
        if place.what in {What.DAMAGED, What.GARBAGE, What.ZERO} and place.after is not None:
            yield f"behind it the next record begins at {place.after}"

    def _file(self, value: str) -> Iterator[str]:
        parts = [part for part in value.replace("\\", "/").split("/") if part]
        ends = ["/".join(parts[-count:]) for count in range(min(4, len(parts)), 0, -1)]
        known = next((file for end in ends if (file := self._store.file(end))), None)
        if known is not None:
            sizes = f"{known.size} bytes, {known.disk_bytes} on disk"
            yield f"{known.display_path} is there: {known.kind}, {sizes}"
        elif len(parts) > 1:
            yield f"{escape_name(ends[-2])} is not in the store now"

    def _queues(self, value: str) -> Iterator[str]:
        topic, _, number = value.partition("\0")
        kinds = (FileKind.CONSUMEQUEUE, FileKind.BATCHCONSUMEQUEUE)
        queues = [queue for kind in kinds for queue in self._store.queues(kind) if queue.topic == topic]
        if number:
            queues = [queue for queue in queues if queue.queue_id == java_parse_int(number)]
        shown = escape_name(topic)
        if not queues:
            configured = "" if topic in self._store.topics else ", and topics.json does not know the topic"
            yield f"no queue files of {shown}{'/' + number if number else ''}{configured}"
        for queue in queues[:_MOST_QUEUES]:
            yield f"queue {shown}/{queue.queue_id}: {_range(queue)}"
        if len(queues) > _MOST_QUEUES:
            yield f"{len(queues) - _MOST_QUEUES} more queues of {shown}"

    def _lock(self, _: str) -> Iterator[str]:
        state = probe(self._store.lock_path)
        yield f"the lock is held by process {state.pid}" if state.held else "nobody holds the lock now"


def _questions(values: dict[str, str]) -> Iterator[tuple[str, str]]:
    for name in _OFFSETS:
        if name in values:
            yield "offset", values[name]
    for name in _FILES:
        if name in values:
            yield "file", values[name].rstrip(",")
    if "topic" in values:
        yield "queue", f"{values['topic']}\0{values.get('queue_id', '')}"


def _what(place: Place) -> str:
    where = "" if place.segment is None else f"{place.segment.file.display_path} position {place.position}"
    if place.what is What.NO_FILE:
        return "no commit log file holds it"
    if place.is_record:
        return f"{where}, {_record(place)}"
    if place.what is What.ZERO:
        return f"{where}, zeros"
    reason = f" ({place.reason})" if place.reason else ""
    length = f", {place.length} bytes from position {place.start} on" if place.length else ""
    return f"{where}, {place.what}{reason}{length}"


def _record(place: Place) -> str:
    record = read_record(place)
    values = record.values
    inside = "inside a record" if place.what is What.INSIDE else "a record"
    reported = (
        f"{inside} of {escape_name(record.topic)}/{values['queue_id']}, queue offset {values['queue_offset']}"
    )
    return f"{reported}, behind the end of the living log" if place.leftover else reported


def _range(queue: Queue) -> str:
    if not queue.files:
        return "an empty directory"
    first, last = file_ends(queue.files[0]), file_ends(queue.files[-1])
    return f"offsets {first.min_offset} to {last.max_offset} (not included), {len(queue.files)} files"
