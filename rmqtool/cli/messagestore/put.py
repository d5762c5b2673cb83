"""`rmqtool store put`: one message, or many from standard input, acknowledged in their order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from rmqtool.cli.context import Context
from rmqtool.cli.messagestore.engine import DirPositional, EngineOptions, Stop, open_engine, read_settings
from rmqtool.cli.options import OutputOptions, VersionOptions
from rmqtool.cli.parse import INT32_MAX, named, parse_int, parse_text
from rmqtool.cli.verb import verb
from rmqtool.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rmqtool.cli.messagestore.acks import Acks
    from rmqtool.cli.messagestore.line_input import Line
    from rmqtool.messagestore.lines import CsvHeader
    from rmqtool.messagestore.messages import Ack, Message
    from rmqtool.messagestore.store import MessageStore

_FLUSH = {"sync": "SYNC_FLUSH", "async": "ASYNC_FLUSH"}
_WIDEST = 6
"""characters of JSON that a byte of a body may take: `\\u0000`"""
_BESIDE_BODY = 1 << 20
"""bytes of a line for all that is not the body"""
_PANEL = "Message"


def _option(flag: str, metavar: str, help_text: str) -> Any:
    return typer.Option(flag, metavar=metavar, help=help_text, show_default=False, rich_help_panel=_PANEL)


@dataclass(frozen=True)
class Way:
    """How messages are put: at once, delayed by a level, or as half messages of a producer group."""

    level: int | None = None
    half: bool = False
    group: str | None = None

    def put(self, store: MessageStore, messages: list[Message]) -> Sequence[Ack]:
        """Puts them in their order."""
        if self.level is not None:
            return [store.send_delayed(one, self.level) for one in messages]
        if self.half:
            more = {} if self.group is None else {"group": self.group}
            return [store.prepare_transaction(one, **more) for one in messages]
        return store.put_many(messages)


@dataclass(frozen=True)
class MessageOptions:
    """The one message of a put."""

    body: Annotated[
        str | None, _option("--body", "TEXT|@FILE", "Body: a text, or the content of a file.")
    ] = None
    tags: Annotated[str | None, _option("--tags", "TAGS", "Its tag.")] = None
    keys: Annotated[
        list[str] | None,
        _option("--keys", "KEY", "A key, for the index, or several with spaces between; repeatable."),
    ] = None
    properties: Annotated[
        list[str] | None, _option("--property", "NAME=VALUE", "A further property; repeatable.")
    ] = None
    queue: Annotated[
        str | None, _option("--queue", "N", "Its queue; by default the write queues in turn.")
    ] = None

    delay: Annotated[
        str | None, _option("--delay", "LEVEL", "Deliver it when the delay of this level is over, 1 to 18.")
    ] = None
    transaction: Annotated[
        bool, typer.Option("--transaction", help="A half message, until commit.", rich_help_panel=_PANEL)
    ] = False
    group: Annotated[
        str | None, _option("--producer-group", "NAME", "Whose transaction it is; default rmqtool.")
    ] = None

    def way(self) -> Way:
        """How messages are put. Raises `UsageError`."""
        if self.delay is not None and self.transaction:
            raise UsageError("--delay and --transaction cannot be combined")
        if self.group is not None and not self.transaction:
            raise UsageError("--producer-group goes with --transaction")
        if self.delay is None:
            return Way(half=self.transaction, group=self.group)
        with named("--delay"):
            return Way(level=parse_int(self.delay, minimum=1, maximum=INT32_MAX))

    def build(self, topic: str | None, longest: int) -> Message | None:
        """The message, None where standard input has them. longest: bytes that a body may have."""
        if topic is None or topic == "-":
            given = (self.body, self.tags, self.keys, self.properties, self.queue)
            if any(one is not None for one in given):
                raise UsageError("--body, --tags, --keys, --property and --queue need a TOPIC")
            return None
        from rmqtool.messagestore.lines import LineError, message_of

        if self.body is None:
            raise UsageError("--body is missing: a text, or @FILE")
        row: dict[str, Any] = {"topic": topic, "tags": self.tags, "keys": self.keys, "properties": {}}
        for name, text in (("TOPIC", topic), ("--tags", self.tags)):
            with named(name):
                parse_text("x" if text is None else text)
        for one in self.properties or ():
            name, equals, value = one.partition("=")
            if not name or not equals:
                raise UsageError(f"--property: '{one}' is not NAME=VALUE")
            row["properties"][name] = value
        if self.queue is not None:
            with named("--queue"):
                row["queue_id"] = parse_int(self.queue, minimum=0, maximum=INT32_MAX)
        try:
            return message_of(row, _content(self.body, longest))
        except LineError as error:
            raise UsageError(str(error)) from None


@verb(
    examples=[
        "rmqtool store put /data/store OrderTopic --body hello --tags TagA --keys order-4711",
        "rmqtool store put /data/store OrderTopic --body @order.json --property REGION=eu --queue 0",
        "rmqtool store put /data/store OrderTopic --body later --delay 3",
        "rmqtool store put /data/store OrderTopic --body maybe --transaction",
        "rmqtool store put /data/store --flush sync --format ndjson - < messages.ndjson",
        "rmqtool store put /data/store --input csv --format ndjson - < messages.csv",
    ]
)
def command(
    path: DirPositional,
    topic: Annotated[
        str | None,
        typer.Argument(
            metavar="TOPIC",
            help="Topic of a single message; if omitted or '-', messages are read from standard input.",
            show_default=False,
        ),
    ] = None,
    flush: Annotated[
        Literal["sync", "async"] | None,
        typer.Option(
            "--flush",
            help="sync: answer when it is on the medium; default: flushDiskType of --store-config, or async.",
            show_default=False,
        ),
    ] = None,
    lines: Annotated[
        Literal["ndjson", "csv"] | None,
        typer.Option("--input", help="Form of standard input; default ndjson.", show_default=False),
    ] = None,
    *,
    message: MessageOptions,
    engine: EngineOptions,
    version: VersionOptions,
    output: OutputOptions,
) -> ExitCode:
    """Put one message, or many from standard input, and report where each is stored.

    A line of NDJSON is an object with topic, one of body_utf8, body_base64 and body_hex, and perhaps
    queue_id, flag, tags, keys (a list), uniq_key, properties (an object), born_timestamp, born_host. CSV has
    the same names as its header, properties as JSON. A key with spaces is several keys, as with
    Message#setKeys. Answers come in the order of the lines; a line that is not a message is answered
    MESSAGE_ILLEGAL, and the others are put. Lines that arrive together share a flush. A delayed
    message is delivered by whoever has the store open when it is due: a broker, an application, store get
    --group. A half message waits for store commit or store rollback with its transaction_id. Exit code 1:
    some were refused; 4: the system did not write.
    """
    from rmqtool.cli.messagestore.acks import COLUMNS, CSV_COLUMNS, HALF_COLUMNS, SCHEMA, Acks
    from rmqtool.cli.messagestore.line_input import LineInput
    from rmqtool.output.rows import cut_short
    from rmqtool.store.coverage import Incomplete

    context = Context(output)
    config = read_settings(engine, {} if flush is None else {"flushDiskType": _FLUSH[flush]})
    one = message.build(topic, config.max_message_size)
    if one is not None and lines is not None:
        raise UsageError("--input is for messages from standard input, not for one TOPIC")
    way = message.way()
    acks = Acks(halves=way.half)
    csv_columns = (*CSV_COLUMNS, "transaction_id") if way.half else CSV_COLUMNS
    with (
        Stop() as stop,
        open_engine(context, path, engine, release=version.release, config=config) as store,
        context.rows(SCHEMA, HALF_COLUMNS if way.half else COLUMNS, csv_columns=csv_columns) as rows,
    ):
        stop.defer()
        if one is not None:
            (ack,) = [store.put(one)] if way == Way() else way.put(store, [one])
            rows.write_rows([acks.row(ack, None, len(one.body))])
            rows.finish({**acks.summary(), "complete": True})
            _note_memory(context, store)
            return acks.exit_code()
        csv = lines == "csv"
        source = LineInput(stop, store.config.max_message_size * _WIDEST + _BESIDE_BODY, quoted=csv)
        putter = _Putter(store, way, acks, csv=csv)
        with context.progress("putting", source.size) as progress:
            for batch in source.batches():
                rows.write_rows(putter.put(batch))
                rows.flush()
                progress.reach(source.read)
        _note_memory(context, store)
        if stop.asked:
            left = [{"path": "stdin", "position": source.read, "reason": Incomplete.INTERRUPTED.value}]
            rows.finish(cut_short(acks.summary(), Incomplete.INTERRUPTED, left))
            return ExitCode.INTERRUPTED
        rows.finish({**acks.summary(), "complete": True})
    return acks.exit_code()


def _note_memory(context: Context, store: MessageStore) -> None:
    """What was acknowledged and does not last."""
    count = store.memory.messages
    if count:
        what = "1 message of a topic" if count == 1 else f"{count} messages of topics"
        context.console.note(f"{what} in memory: gone when this command ends")


class _Putter:
    """Puts what lines say. The first line of CSV is the header."""

    def __init__(self, store: MessageStore, way: Way, acks: Acks, *, csv: bool) -> None:
        self._way = way
        self._store, self._acks, self._csv = store, acks, csv
        self._header: CsvHeader | None = None

    def put(self, lines: list[Line]) -> list[dict[str, Any]]:
        """Rows for these lines, in their order."""
        from rmqtool.messagestore.lines import LineError

        answers: list[dict[str, Any] | None] = []
        numbers: list[int] = []
        messages: list[Message] = []
        for number, line in lines:
            if line is not None and not line.strip():
                continue
            try:
                message = self._message(line)
            except LineError as error:
                answers.append(self._acks.bad_line(number, str(error)))
                continue
            if message is not None:
                answers.append(None)
                messages.append(message)
                numbers.append(number)
        given = zip(self._way.put(self._store, messages), numbers, messages, strict=True)
        stored = (self._acks.row(ack, number, len(message.body)) for ack, number, message in given)
        return [next(stored) if answer is None else answer for answer in answers]

    def _message(self, line: bytes | None) -> Message | None:
        """None for the header of CSV."""
        from rmqtool.messagestore.lines import CsvHeader, LineError, message_of_json

        if line is None:
            raise LineError("the line is longer than a message can be")
        if not self._csv:
            return message_of_json(line)
        if self._header is None:
            self._header = CsvHeader(line)
            return None
        return self._header.message(line)


def _content(body: str, longest: int) -> bytes:
    """What `--body` means. Of a file or pipe, which may have no end, little more is read than is taken."""
    if not body.startswith("@"):
        return body.encode("utf-8", "surrogateescape")
    from rmqtool.store.access import open_stream, refused
    from rmqtool.store.names import escape_name
    from rmqtool.store.remote.address import refuse_address

    refuse_address(body[1:])
    shown = f"--body: {escape_name(body[1:])}"
    most = max(longest, 0)
    try:
        with open_stream(body[1:], shown, pipes=True) as file:
            found = file.read(most + 1)
    except OSError as error:
        raise refused(error, shown) from error
    if len(found) > most:
        raise UsageError(f"{shown} is longer than maxMessageSize, {longest} bytes")
    return found
