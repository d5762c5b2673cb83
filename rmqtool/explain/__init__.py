"""What a broker's log lines mean: a table of lines as data, and reading logs against it."""
