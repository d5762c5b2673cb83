"""Carving intact records out of arbitrary files, and a new store made of them."""
