"""Messages that are there more than once, distinguished from copies that brokers make and from batches."""
