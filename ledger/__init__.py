"""The task ledger: events, their projection, rank, and the two databases that hold them."""
