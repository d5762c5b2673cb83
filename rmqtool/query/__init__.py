"""Questions to a store: which messages are meant, and finding them."""
