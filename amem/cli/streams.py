"""What stands in for a standard stream that cannot be used: closed by whoever started us, or of an encoding that lacks our characters."""

import os
import sys


def mend(as_json: bool) -> None:
    """Give each closed stream `/dev/null`, and let output hold any character: JSON is UTF-8, a table shows escapes."""
    # No file of ours may get one of the three numbers: what a library prints would land in it.
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(descriptor, True)
    os.close(descriptor)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 (for as long as the process)
    for name, descriptor in (("stdout", 1), ("stderr", 2)):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(descriptor, "w", encoding="utf-8", closefd=False))  # noqa: SIM115
        elif stream.encoding.lower() != "utf-8":
            stream.reconfigure(encoding="utf-8" if as_json else stream.encoding, errors="backslashreplace")
