"""The kernels compiled ahead: what they are, how they are built, and when they are used."""
