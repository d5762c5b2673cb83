"""Messages that wait or were moved on: delayed, half, retried, dead; and one message over its copies."""
