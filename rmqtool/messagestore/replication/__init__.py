"""Replication: a master that sends its log to slaves, and a slave that follows a master, also of RocketMQ.

The default HA service (`DefaultHAService`): bytes of the log as they lie, by physical offset.
"""
