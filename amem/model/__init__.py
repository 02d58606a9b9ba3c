"""The values that everything else speaks in. Pure: no I/O, no settings."""
