"""The incident record: the log drawn segment by segment, and one document of all that the others found."""
