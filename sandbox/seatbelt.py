"""The profile and the command line of a session under macOS's Seatbelt, as values. Pure.

Not proven: nobody has run these on a Mac. Seatbelt has no namespaces, so a session there is weaker than on Linux: it sees the names of the
host's processes, and its egress listens on the host's loopback behind the session's bearer. `amem launch --backend seatbelt --dry-run`
prints what is built here; nothing starts it yet.
"""

from amem.sandbox.spec import SandboxSpec
from amem.typed import Iterable

PROGRAM = "/usr/bin/sandbox-exec"

READABLE = (
    "/System",
    "/Library/Apple",
    "/usr",
    "/bin",
    "/sbin",
    "/opt/homebrew",
    "/private/etc/ssl",
    "/private/var/db/timezone",
    "/private/var/select",
)
"""The system's programs and what they need to start."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/tty")


def profile(spec: SandboxSpec, port: int) -> str:
    """What a session may do, in SBPL: everything is denied that is not named; later rules win, so the protected names come last."""
    readable = [*READABLE, *((spec.memory_dir,) if spec.memory_dir is not None else ()), *(bind.source for bind in spec.binds)]
    writable = [spec.workdir, spec.home, *(bind.source for bind in spec.binds if bind.writable)]
    protected = [f"{spec.workdir}/{name}" for name in spec.protect]
    lines = [
        "(version 1)",
        "(deny default)",
        "(allow process-fork)",
        "(allow process-exec)",
        "(allow process-info* (target same-sandbox))",
        "(allow signal (target same-sandbox))",
        "(allow sysctl-read)",
        "(allow mach-lookup)",
        "(allow ipc-posix-shm)",
        "(allow file-read-metadata)",
        *_rule("allow", "file-read*", readable),
        *_rule("allow", "file-read* file-write*", writable),
        *_rule("allow", "file-read* file-write* file-ioctl", DEVICES, kind="literal"),
        *_rule("deny", "file-write*", protected),
        # Not moved away either, which would leave the names below it to be made anew.
        *_rule("deny", "file-write*", [f"{spec.workdir}/.git"], kind="literal"),
        *_rule("deny", "file-read* file-write*", spec.hidden),
        "(deny network*)",
        f'(allow network-outbound (remote ip "localhost:{port}"))',
    ]
    return "\n".join(lines) + "\n"


def command(spec: SandboxSpec, profile_path: str) -> tuple[str, ...]:
    """What starts the harness. Its environment is handed to the kernel beside it: an argument would show the bearer to every user."""
    return (PROGRAM, "-f", profile_path, *spec.argv)


def _rule(verdict: str, what: str, paths: Iterable[str], kind: str = "subpath") -> list[str]:
    named = [f"  ({kind} {_quoted(path)})" for path in dict.fromkeys(paths)]
    return [f"({verdict} {what}", *named, ")"] if named else []


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
