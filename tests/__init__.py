"""The tests of rmqtool; one folder a room."""
