"""Messages by any number of keys in many stores: as a broadcast join, or as a shuffle join."""
