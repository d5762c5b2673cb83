"""Record batches as rows of the contract: what is left out, bodies as asked, redaction."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any

from rmqtool.output.columns import batch_columns, values
from rmqtool.output.redaction import NEEDED, REDACTED, Redaction

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

    from rmqtool.output.redaction import RecordRedaction

OMIT_NULL = frozenset(
    {
        "topic_hex",
        "stored_physical_offset",
        "properties_raw_hex",
        "body_utf8",
        "body_gbk",
        "body_hex",
        "body_base64",
        "body_error",
    }
)
"""keys that a row has only when they say something"""

_PLAIN_COLUMNS = (
    "path",
    "segment",
    "position",
    "physical_offset",
    "stored_physical_offset",
    "store_size",
    "magic",
    "body_crc",
    "crc",
    "topic",
    "topic_hex",
    "queue_id",
    "queue_offset",
    "flag",
    "sys_flag",
    "compression",
    "transaction",
    "born_timestamp",
    "born_host",
    "store_timestamp",
    "store_host",
    "reconsume_times",
    "prepared_transaction_offset",
    "offset_msg_id",
    "tags",
    "keys",
    "uniq_key",
    "properties",
    "body_length",
    "plain_length",
)

_MADE_HERE = frozenset({"lost_properties", "properties_lost", "plain_body", "body", "stored_physical_offset"})
_DIGESTS = ("body_sha256", "plain_body_sha256")


@dataclass(frozen=True)
class MessageShape:
    """What a row of a message holds.

    body: `auto`, `utf8`, `gbk`, `hex`, `base64` or `none`. redacted: some of `body`, `keys`, `hosts`,
    `properties`, hidden as `redaction` says. one_body: for tables, the key `body` holds what `body_utf8`,
    `body_base64` and so on say together.
    """

    body: str = "none"
    body_sha256: bool = False
    redacted: frozenset[str] = frozenset()
    one_body: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the record table that the shape needs."""
        more = ["properties_lost" if self.redacted else "lost_properties"]
        if self.shows_body:
            more += ["plain_body", "body"]
        elif self.shows_digest and self.redacted:
            more += ["plain_body"]
        if self.shows_digest:
            more += _DIGESTS
        return (*_PLAIN_COLUMNS, *more)

    @property
    def keys(self) -> tuple[str, ...]:
        """Every key that a row may have besides `type`."""
        more = () if self.redacted else ("properties_raw_hex",)
        body = () if self.body == "none" else ("body",) if self.one_body else body_keys(self.body)
        digests = _DIGESTS if self.body_sha256 else ()
        return (*_PLAIN_COLUMNS, *more, *body, *digests, *(("redacted",) if self.redacted else ()))

    @property
    def shows_body(self) -> bool:
        """Are bodies part of the rows?"""
        return self.body != "none" and "body" not in self.redacted

    @property
    def shows_digest(self) -> bool:
        """Are digests of bodies part of the rows?"""
        return self.body_sha256 and "body" not in self.redacted

    @property
    def redaction(self) -> Redaction:
        """The rule by which values are hidden."""
        return Redaction(self.redacted)

    def rows(self, batch: pa.RecordBatch) -> tuple[list[str], list[Iterable[Any]]]:
        """Names and columns for `Rows.write_columns` (with `OMIT_NULL`)."""
        names, columns = batch_columns(batch, leave_out=_MADE_HERE)
        table: dict[str, Iterable[Any]] = {"type": repeat("message", batch.num_rows)}
        table |= dict(zip(names, columns, strict=True))
        table["stored_physical_offset"] = _moved(batch)
        if "lost_properties" in batch.schema.names:
            table["properties_raw_hex"] = _lost(batch)
        if self.shows_body:
            bodies = _bodies(batch, self.body)
            table |= {"body": one_body(bodies)} if self.one_body else bodies
        if self.redacted:
            self._hide(table, batch)
        return list(table), list(table.values())

    def _hide(self, table: dict[str, Any], batch: pa.RecordBatch) -> None:
        """Puts marks in the place of what is hidden, row by row, and a column that names it."""
        lost = batch["properties_lost"].to_pylist()
        known = "plain_body" in self.columns
        hidden: list[dict[str, Any]] = []
        for index, row in enumerate(zip(*(table[name] for name in NEEDED), strict=True)):
            values = dict(zip(NEEDED, row, strict=True))
            plain = batch["plain_body"][index].as_py() if known else None
            one = self.hidden(values, self.redaction.record(values), plain, known=known)
            if lost[index]:
                one["redacted"].append("properties_raw_hex")
            hidden.append(one)
        for name in dict.fromkeys(name for one in hidden for name in one):
            before = table.get(name, [None] * batch.num_rows)
            table[name] = [one.get(name, value) for one, value in zip(hidden, before, strict=True)]

    def hidden(
        self, row: dict[str, Any], rule: RecordRedaction, plain: bytes | None, *, known: bool
    ) -> dict[str, Any]:
        """What to show in the place of values of the row that are hidden; `redacted` names them.

        plain: the decompressed body, None when that fails. known: False when no body was read.
        """
        found = rule.changes(row)
        names = list(found)
        if rule.hides_body(row["sys_flag"], plain, known=known):
            found["body_crc"] = None
            found |= dict.fromkeys(_DIGESTS if self.body_sha256 else (), REDACTED)
            names += ["body", *(name for name in found if name not in names)]
            if self.body != "none":
                found |= {"body": REDACTED} if self.one_body else dict.fromkeys(body_keys(self.body))
        return {**found, "redacted": names}


def body_keys(form: str) -> tuple[str, ...]:
    """Keys under which a row may have a body that is asked for in this form."""
    first = f"body_{'utf8' if form == 'auto' else form}"
    return tuple(dict.fromkeys((first, "body_base64", "body_error")))


def one_body(bodies: dict[str, list[str | None]]) -> list[str | None]:
    """The columns of `body_keys` as one: the text, else base64 marked as such, with the error if any."""
    forms = [name for name in bodies if name not in {"body_base64", "body_error"}]
    errors = bodies["body_error"]
    based = bodies["body_base64"]
    marked = [
        text and "".join(("base64:" if forms else "", text, f" ({error})" if error else ""))
        for text, error in zip(based, errors, strict=True)
    ]
    if not forms:
        return marked
    return [other if text is None else text for text, other in zip(bodies[forms[0]], marked, strict=True)]


def _moved(batch: pa.RecordBatch) -> list[int | None]:
    """The stored physical offset where it is not the place of the record."""
    places, stored = batch["physical_offset"].to_numpy(), batch["stored_physical_offset"].to_numpy()
    found: list[int | None] = [None] * batch.num_rows
    for index in (places != stored).nonzero()[0].tolist():
        found[index] = stored[index].item()
    return found


def _lost(batch: pa.RecordBatch) -> list[str | None]:
    """The stored bytes of properties in hex where decoding lost something."""
    lost = batch["lost_properties"]
    if lost.null_count == batch.num_rows:
        return [None] * batch.num_rows
    return [None if raw is None else raw.hex() for raw in lost.to_pylist()]


def _bodies(batch: pa.RecordBatch, form: str) -> dict[str, list[str | None]]:
    """Body columns in the form asked for.

    Base64 where that would lose something; the stored bytes where inflating fails.
    """
    wanted = "utf8" if form == "auto" else form
    texts = _whole_column_of_text(batch["plain_body"]) if wanted == "utf8" else None
    if texts is not None:
        nothing: list[str | None] = [None] * batch.num_rows
        return {"body_utf8": texts, "body_base64": nothing, "body_error": nothing}
    plain: list[bytes | None] = batch["plain_body"].to_pylist()
    shown: list[str | None] = []
    other: list[str | None] = []
    errors: list[str | None] = []
    for index, body in enumerate(plain):
        text = None if body is None else encode_body(body, wanted)
        failed = body is None
        kept: bytes = batch["body"][index].as_py() if body is None else body
        shown.append(text)
        other.append(base64.b64encode(kept).decode() if text is None else None)
        errors.append("cannot be decompressed, as stored" if failed else None)
    if wanted == "base64":
        return {
            "body_base64": [s if s is not None else o for s, o in zip(shown, other, strict=True)],
            "body_error": errors,
        }
    return {f"body_{wanted}": shown, "body_base64": other, "body_error": errors}


def _whole_column_of_text(bodies: pa.Array) -> list[str | None] | None:
    """All bodies as text when every one of them is UTF-8: one check and one conversion for all."""
    import pyarrow as pa

    if bodies.null_count:
        return None
    try:
        return values(bodies.cast(pa.string()))
    except pa.ArrowInvalid:
        return None


def encode_body(body: bytes, form: str) -> str | None:
    """The body in one form; None when that form cannot hold it without loss."""
    if form == "hex":
        return body.hex()
    if form == "base64":
        return base64.b64encode(body).decode()
    try:
        text = body.decode("utf-8" if form == "utf8" else "gbk")
    except UnicodeDecodeError:
        return None
    return text if form == "utf8" or text.encode("gbk") == body else None
