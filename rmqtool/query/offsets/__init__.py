"""Stored offsets of consumer groups and delay levels, against their queues and against other tables."""
