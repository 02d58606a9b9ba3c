"""The only way out of a session: every model call is decided, sent, streamed back and metered here."""
