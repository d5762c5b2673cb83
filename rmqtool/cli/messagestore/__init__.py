"""`rmqtool store …`: the message store from the shell."""
