"""Messages written into files of several forms."""
