"""Evidence before done: the check commands of a task, run by the launcher once the harness has ended.

Each command has a sandbox of its own, on the tree as it was left, with a fresh home and no way out at all: what a harness put beside
itself (a home, a process, a service) takes no part, and no command can answer for another. The exit codes come from PID 1.
"""

import os
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from amem.launch.leftover import Tail
from amem.sandbox.reader import remove
from amem.sandbox.surroundings import behind
from amem.typed import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from amem.sandbox.child import Stage
    from amem.sandbox.run import Running
    from amem.sandbox.spec import SandboxSpec

TIMEOUT_S = 1800.0
"""For all commands of a task together, where the launch has no limit of its own."""
OUTPUT_BYTES = 16 << 10


class Evidence(NamedTuple):
    """What came of the checks."""

    state: str
    """`verified`, `failed` or `unchecked` (they could not be run to an end)."""
    exits: tuple[int, ...]
    """Of the commands that ran, in order; after one that failed none is run."""
    what: str
    """The command that failed and how, or why they were not run; empty when they succeeded."""
    output: str
    """The end of what that command printed."""


def examine(
    commands: Sequence[str], spec: "SandboxSpec", stage: "Callable[[], Stage]", *, timeout_s: float,
    attending: "Callable[[Running], AbstractContextManager[None]]", ended: Callable[[], bool],
) -> Evidence:  # fmt: skip
    """Run the commands in the sandbox that `spec` describes, but for its program, home and ports. Raises SandboxError.

    `attending` is entered with each running sandbox, so that whoever ends the session ends it; `ended` says whether somebody did.
    """
    until = time.monotonic() + (timeout_s or TIMEOUT_S)
    exits: list[int] = []
    for command in commands:
        tail = Tail(OUTPUT_BYTES)
        left_s = until - time.monotonic()
        if ended() or left_s <= 0:
            return Evidence("unchecked", tuple(exits), f"`{command}` was not run: the session was to end", "")
        home = tempfile.mkdtemp(prefix="check-", dir=os.path.dirname(spec.home))
        try:
            running = stage().start(_sandbox(command, spec, home))
            os.close(running.listener_fd)  # nothing answers in there
            with attending(running):
                code = running.wait(lambda _, data, tail=tail: tail.add(data), left_s)  # type: ignore[misc]
        finally:
            remove(home)
        if ended():
            return Evidence("unchecked", tuple(exits), f"`{command}` was ended with the session", tail.text())
        exits.append(code)
        if code != 0:
            how = "did not end in time" if time.monotonic() >= until else f"exited with {code}"
            return Evidence("failed", tuple(exits), f"`{command}` {how}", tail.text())
    return Evidence("verified", tuple(exits), "", "")


def _sandbox(command: str, spec: "SandboxSpec", home: str) -> "SandboxSpec":
    """The sandbox of one command: the harness's, with another home, and no program of the system replaced by one of the tree."""
    written = (spec.workdir, *(bind.target for bind in spec.binds if bind.writable))
    env = tuple((name, behind(value, written) if name == "PATH" else value) for name, value in spec.env)
    return spec._replace(env=env, argv=("/bin/sh", "-c", command), home=home, ports=(), host_ports=(), interactive=False)
