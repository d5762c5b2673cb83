"""The message store beside other embedded stores, on the user's own disk: `rmqtool store bench`."""
