"""What follows from a start, each with a stable `DR-` code: from the outcome and what was seen."""
