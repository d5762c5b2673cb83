"""Tests of the room with the rules of a broker."""
