"""`rmqtool offsets …`: stored offsets of consumer groups and delay levels."""
