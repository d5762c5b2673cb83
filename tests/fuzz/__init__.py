"""Hostile input by seed: compiled kernels on guard pages, and commands on mutated stores."""
