"""Record batches as rows of the contract: what is left out, bodies as asked, redaction."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from itertools import repeat
from typing import TYPE_CHECKING, Any

from rmqtool.output.columns import batch_columns, values

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pyarrow as pa

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

_HIDES = {
    "hosts": ("born_host", "store_host", "offset_msg_id", "uniq_key"),
    "keys": ("keys", "uniq_key"),
    "properties": ("properties", "tags", "keys", "uniq_key"),
}
_HIDES_PROPERTIES = {
    "hosts": ("UNIQ_KEY", "__BORNHOST", "ORIGIN_MESSAGE_ID", "DLQ_ORIGIN_MESSAGE_ID"),
    "keys": ("KEYS", "UNIQ_KEY"),
}


@dataclass(frozen=True)
class MessageShape:
    """What a row of a message holds.

    body: `auto`, `utf8`, `gbk`, `hex`, `base64` or `none`. redacted: some of `body`, `keys`, `hosts`,
    `properties`, whose values become null. one_body: for tables, the key `body` holds what `body_utf8`,
    `body_base64` and so on say together.
    """

    body: str = "none"
    body_sha256: bool = False
    redacted: frozenset[str] = frozenset()
    one_body: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns of the record table that the shape needs."""
        more: list[str] = []
        if not self.redacted & {"properties", "keys", "hosts"}:
            more += ["properties_raw", "properties_lost"]
        if self.shows_body:
            more += ["plain_body", "body"]
        if self.shows_digest:
            more += ["body_sha256", "plain_body_sha256"]
        return (*_PLAIN_COLUMNS, *more)

    @property
    def keys(self) -> tuple[str, ...]:
        """Every key that a row may have besides `type`."""
        made_of = {
            "properties_raw": ("properties_raw_hex",),
            "properties_lost": (),
            "plain_body": (),
            "body": ("body",) if self.one_body else body_keys(self.body),
        }
        return tuple(key for name in self.columns for key in made_of.get(name, (name,)))

    @property
    def shows_body(self) -> bool:
        """Are bodies part of the rows?"""
        return self.body != "none" and "body" not in self.redacted

    @property
    def shows_digest(self) -> bool:
        """Are digests of bodies part of the rows?"""
        return self.body_sha256 and "body" not in self.redacted

    @property
    def hidden_columns(self) -> frozenset[str]:
        """Columns whose values are null. Ids hold the addresses of hosts, properties hold keys."""
        return frozenset(name for what in self.redacted for name in _HIDES.get(what, ()))

    @property
    def hidden_properties(self) -> frozenset[str]:
        """Properties that are left out."""
        return frozenset(name for what in self.redacted for name in _HIDES_PROPERTIES.get(what, ()))

    def rows(self, batch: pa.RecordBatch) -> tuple[list[str], list[Iterable[Any]]]:
        """Names and columns for `Rows.write_columns` (with `OMIT_NULL`)."""
        made_here = {"properties_raw", "properties_lost", "plain_body", "body", "stored_physical_offset"}
        names, columns = batch_columns(batch, leave_out=made_here)
        table: dict[str, Iterable[Any]] = {"type": repeat("message", batch.num_rows)}
        table |= dict(zip(names, columns, strict=True))
        table["stored_physical_offset"] = _moved(batch)
        if "properties_raw" in batch.schema.names:
            table["properties_raw_hex"] = _lost(batch)
        if self.shows_body:
            bodies = _bodies(batch, self.body)
            table |= {"body": one_body(bodies)} if self.one_body else bodies
        for name in self.hidden_columns:
            table[name] = [None] * batch.num_rows
        if self.hidden_properties and "properties" not in self.hidden_columns:
            names_left_out = self.hidden_properties
            table["properties"] = [
                {key: value for key, value in one.items() if key not in names_left_out}
                for one in table["properties"]
            ]
        return list(table), list(table.values())


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
    lost = batch["properties_lost"].to_numpy(zero_copy_only=False).nonzero()[0].tolist()
    found: list[str | None] = [None] * batch.num_rows
    raw = batch["properties_raw"]
    for index in lost:
        found[index] = raw[index].as_py().hex()
    return found


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
