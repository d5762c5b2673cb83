"""Is this store right? Record table and files to findings; nothing here changes or prints anything."""

from __future__ import annotations
