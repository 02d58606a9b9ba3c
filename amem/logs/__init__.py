"""Append-only event logs: one JSON line per event, hash-linked, never a body or a secret."""
