"""Messages that are there more than once, told apart from copies that brokers make and from batches."""
