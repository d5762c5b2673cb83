"""`rmqtool config …`: the JSON tables of a store and their `.bak`."""
