"""Addresses of remote files: which words are some, and the file system behind them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from rmqtool.errors import MissingExtraError, StoreIOError, UsageError
from rmqtool.secrets import hide
from rmqtool.store.names import escape_name

if TYPE_CHECKING:
    import os

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):/")
VERSION = "?versionId="
"""what s3fs takes for the end of a key, whatever stands behind it"""
_EXTRAS = {"s3": "s3", "s3a": "s3"}


def is_remote(place: str | os.PathLike[str]) -> bool:
    """Whether a place is an address such as `s3://bucket/store`; `file:` addresses are paths.

    `Path` makes one slash of two, so `s3:/bucket/store` is the same. Paths of this machine inside of a store
    begin with a slash.
    """
    found = _SCHEME.match(str(place))
    return found is not None and found[1].lower() != "file"


def refuse_address(place: str | os.PathLike[str]) -> None:
    """Raises `UsageError` for an address where only a path of this machine is read or written.

    To the system `s3://bucket` is the relative path `s3:/bucket`, and something may lie there.
    """
    text = str(place)
    found = _SCHEME.match(text)
    if found is not None and text.startswith("/", found.end()):
        raise UsageError(
            f"{escape_name(hide(text))} is an address, and only pipeline commands read stores there; "
            "a path of this name begins with ./"
        )


def address_of(place: str | os.PathLike[str]) -> str:
    """The address with its two slashes, without one at the end."""
    text = str(place)
    scheme = text.partition(":")[0]
    return f"{scheme.lower()}://{text[len(scheme) + 1 :].strip('/')}"


def refuse_ambiguous(address: str) -> None:
    """Raises `UsageError` for an address that is not that of one directory, whoever reads it.

    Names "", "." and ".." are keys to one and ways to another; a user and a password would be shown.
    """
    _, _, place = address.partition("://")
    if hide(address) != address:
        raise UsageError(
            f"{escape_name(hide(address))}: an address must not contain a secret: give it in the environment"
        )
    if {"", ".", ".."} & set(place.split("/")) or VERSION in place:
        raise UsageError(f"{escape_name(address)} is not the address of one directory")


def file_system(address: str) -> Any:
    """The file system of an address, one for all addresses of its kind (fsspec keeps them).

    Raises `MissingExtraError` or `UsageError` where what it takes is not installed or unknown.
    """
    scheme = address.partition(":")[0]
    try:
        import fsspec
    except ImportError as error:
        raise MissingExtraError(f"{scheme}://", _EXTRAS.get(scheme, "s3")) from error
    try:
        return fsspec.filesystem(scheme)
    except ImportError as error:
        if scheme in _EXTRAS:
            raise MissingExtraError(f"{scheme}://", _EXTRAS[scheme]) from error
        raise UsageError(f"{scheme}:// needs a package: {error}") from error
    except ValueError as error:
        raise UsageError(f"{address}: {scheme}:// addresses cannot be read here") from error


def refused(address: str, error: Exception) -> StoreIOError:
    """What the far side said, as one line."""
    said = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return StoreIOError(f"{escape_name(address)}: {hide(' '.join(str(said).split()))[:300]}")


def failures() -> tuple[type[Exception], ...]:
    """What file systems raise when they cannot answer: their own errors, or those of the client below."""
    found: list[type[Exception]] = [OSError, ValueError, TimeoutError]
    try:
        from botocore.exceptions import BotoCoreError, ClientError
    except ImportError:
        return tuple(found)
    return (*found, BotoCoreError, ClientError)
