"""Showing results: rows as table, NDJSON, JSON or CSV, hex views, talk on stderr."""
