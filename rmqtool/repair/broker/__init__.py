"""The files as a broker leaves them when it has loaded a store: the policy `broker` of `recover`."""

from __future__ import annotations
