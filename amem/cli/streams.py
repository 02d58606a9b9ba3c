"""The standard streams: what stands in for one that cannot be used, closed or of an encoding that lacks our characters; text on stdin."""

import os
import sys

from amem.errors import UsageError


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


def given(text: str) -> str:
    """The text, or for `-` what comes on stdin. Raises UsageError."""
    if text != "-":
        return text
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise UsageError("stdin holds bytes that are not UTF-8: amem keeps text alone") from error
