"""`memory relay`: join a loopback port to the egress's Unix socket, for a harness that is started behind it.

The port listens before the harness runs, so its first call finds it. The harness keeps this process, with its terminal and its place under
PID 1; the relay goes on in a child of a session of its own, which Ctrl-C does not reach. It holds nothing that the harness may not have.
"""

import os
import signal
import sys

from amem.sandbox.relay import Relay, listen


def run(port: int, path: str, program: list[str]) -> int:
    """Relay; with a program, in a child, and become the program. Returns only where there is none, or it cannot be run (126, 127)."""
    listener = listen(port)
    if not program:
        Relay(listener, path).serve()
        return 0
    if os.fork() == 0:
        _serve_alone(Relay(listener, path))
    listener.close()
    for ignored in (signal.SIGPIPE, signal.SIGXFSZ):  # by Python, and an exec would pass it on
        signal.signal(ignored, signal.SIG_DFL)
    try:
        os.execvp(program[0], program)
    except OSError as error:
        sys.stderr.write(f"amem: {program[0]}: {error.strerror}\n")
        return 127 if isinstance(error, FileNotFoundError | NotADirectoryError) else 126


def _serve_alone(relay: Relay) -> None:
    """Never returns."""
    try:
        os.setsid()
        null = os.open(os.devnull, os.O_RDWR)
        for descriptor in (0, 1, 2):
            os.dup2(null, descriptor)
        relay.serve()
    finally:
        os._exit(1)
