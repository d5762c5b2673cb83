"""The one exception of this package."""

from __future__ import annotations


class FormatError(ValueError):
    """Bytes that do not fit a format, or values that a format cannot hold.

    `path` is the dotted name of the field concerned (`born_host.port`, `messages.3.body`), empty when the
    whole value is meant. `reason` says what is wrong with it.
    """

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.reason = reason
        self.path = path

    def under(self, parent: str) -> FormatError:
        """The same error seen from an enclosing value, whose name is put in front of the path."""
        return FormatError(self.reason, f"{parent}.{self.path}" if self.path else parent)
