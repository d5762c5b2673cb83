"""Timer wheel and timer log."""

from __future__ import annotations

from rmqtool.check.catalogue.entry import Code, Severity

ENTRIES = (
    Code(
        "TMR-UNREACHED",
        Severity.ERROR,
        "up to {expected} {expected:timer that waits is|timers that wait are} never delivered: what is here "
        "is gone or wrong, and no slot of the timer wheel leads to {expected:it|them}",
        "rmqtool recover STORE makes a timer log of those that wait",
    ),
)
