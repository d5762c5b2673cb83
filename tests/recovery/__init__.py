"""Tests of the room that predicts starts."""
