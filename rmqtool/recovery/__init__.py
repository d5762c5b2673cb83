"""What a broker of a given release does to a store when it starts, computed without changing a byte."""

from __future__ import annotations
