"""Tests of the room that foretells starts."""
