"""Two logs against each other: by bytes, then by records where the bytes differ, then by messages."""
