"""What counts as a secret of a broker or of who reads its store: shown as `***`, whatever it is.

The only list of such names. Files of keys and ACLs (`plain_acl.yml`, TLS) are named and never opened.
"""

from __future__ import annotations

import re
from typing import Any

HIDDEN = "***"
_ENDINGS = (
    "password", "passwd", "passphrase", "secret", "secretkey", "accesskey", "accesskeyid", "securitytoken",
    "sessiontoken", "privatekey", "credentials", "initauthenticationuser",
)  # fmt: skip
"""of names in any case and without `.`, `_` and `-`: `tls.server.keyPassword`, `aws_secret_access_key`. The
last is a user with a password (`AuthConfig`)"""
_BETWEEN = re.compile("[._-]")
_NAMED = re.compile(
    "((?:" + "|".join("[._-]?".join(one) for one in sorted(_ENDINGS, key=len, reverse=True)) + ")"
    r"[\"']?[ \t]{0,3}(?:=|:(?!//)|=>)[ \t]{0,3})(\"[^\"]*\"?|'[^']*'?|\{[^}]*\}?|[^\s,;&)\]}\"']+)",
    re.IGNORECASE,
)
_PATH = re.compile(r"[\"'(\[]?(?:~|\.{1,2})?/[^\s\"'?&=]*\Z")
_LONGEST_PATH = 4096
_IN_ADDRESS = re.compile(r"//[^/@\s:]*:[^/@\s]+@")
_KEY_ID = re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b")


def is_secret(name: str) -> bool:
    """Whether what is kept under a name is a secret."""
    return _BETWEEN.sub("", name).lower().endswith(_ENDINGS)


def without_secrets(content: Any) -> Any:
    """The same table of JSON without values of secrets, also in texts (`hide`)."""
    if isinstance(content, dict):
        return {
            key: HIDDEN if is_secret(str(key)) and value is not None else without_secrets(value)
            for key, value in content.items()
        }
    if isinstance(content, list):
        return [without_secrets(one) for one in content]
    return hide(content) if isinstance(content, str) else content


def hide(text: str) -> str:
    """The same text without what stands behind the name of a secret (`secretKey=…`, `"password": "…"`).

    Nor has it passwords in addresses or key ids of AWS.
    """
    text = _NAMED.sub(lambda found: found[0] if _is_path(found) else f"{found[1]}{HIDDEN}", text)
    return _KEY_ID.sub(HIDDEN, _IN_ADDRESS.sub(f"//{HIDDEN}@", text))


def _is_path(found: re.Match[str]) -> bool:
    """Whether the name is the end of a path, and a reason follows (`/etc/passwd: Permission denied`)."""
    if not found[1].endswith((": ", ":\t")):
        return False
    before = found.string[max(found.start() - _LONGEST_PATH, 0) : found.start()]
    word = before[-1:] and not before[-1].isspace() and before.split()[-1]
    return bool(word) and _PATH.match(str(word)) is not None
