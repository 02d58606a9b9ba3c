"""One module per noun: parse, call one service, print. `--json` prints the same rows."""
