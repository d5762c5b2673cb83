"""Speed as ratios: each figure is taken beside its anchor, in the same run, on the same warm files."""
