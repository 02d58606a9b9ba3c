"""The command line: a lazy click group over one table. `--version` and the top `--help` import next to nothing."""
