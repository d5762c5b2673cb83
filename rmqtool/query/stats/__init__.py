"""What a log holds, summed up by columns: groups, duplicates, what retention frees."""
