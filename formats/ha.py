"""Frames of replication between brokers, default HA service (not that of a controller).

docs/format/replication.md; `DefaultHAConnection`, `DefaultHAClient`.
"""

from __future__ import annotations

import construct as cs

from formats.primitives import Schema

SlaveReport = Schema(cs.Struct("max_offset" / cs.Int64sb))
"""What a slave sends: the physical offset behind what it has; of several only the last one counts."""

TransferHeader = Schema(cs.Struct("physical_offset" / cs.Int64sb, "size" / cs.Int32sb))
"""What a master sends in front of `size` bytes of its commit log; a heartbeat without any."""

MAX_FRAME = 4 << 20
"""bytes of a frame, header included, that a slave takes (`DefaultHAClient`: its read buffer)"""
