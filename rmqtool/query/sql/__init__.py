"""A store as tables of a database, read only where a query needs it."""
