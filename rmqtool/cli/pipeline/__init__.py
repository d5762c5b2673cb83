"""Commands of the group `pipeline`."""
