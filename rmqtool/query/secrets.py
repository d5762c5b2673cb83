"""Values of secrets in the JSON tables of a broker: listed as `***`, whatever they are."""

from __future__ import annotations

from typing import Any

_NAMES = ("password", "passwd", "secretkey", "accesskey", "securitytoken", "privatekey", "credentials")
HIDDEN = "***"


def without_secrets(content: Any) -> Any:
    """The same table; values under keys that end in one of the names, in any case, are `***`."""
    if isinstance(content, dict):
        return {
            key: HIDDEN if str(key).lower().endswith(_NAMES) and value is not None else without_secrets(value)
            for key, value in content.items()
        }
    if isinstance(content, list):
        return [without_secrets(one) for one in content]
    return content
