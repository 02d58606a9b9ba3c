"""The command lines of a session in WSL containers, as values. Pure.

Not proven: nobody has run these where WSL 2.9.3 or later is. Two containers share a volume that holds the egress's Unix socket: the
egress container has the record and the only way out, the harness container has no network, the private home and the work tree, and reaches
the socket through the relay that its image holds. No value of an environment stands in an argument: the name alone makes `wslc` pass on
its own. `amem launch --backend wslc --dry-run` prints what is built here; nothing starts it yet.
"""

from amem.sandbox.spec import SandboxSpec
from amem.typed import Iterable

PROGRAM = "wslc"
SHARED = "/run/amem"
RECORD = "/amem"
"""Where the egress container has the root."""
LOGINS = (".claude", ".codex", ".gemini")
"""Folders of the owner's home with a harness's login: read-only, and in the egress container only."""
HOME = "/root"
"""Where the egress container has them."""


def before(session: str) -> tuple[tuple[str, ...], ...]:
    """What is made first: the volume that both share."""
    return ((PROGRAM, "volume", "create", _name(session)),)


def egress(session: str, image: str, root: str, home: str, keys: Iterable[str], argv: tuple[str, ...]) -> tuple[str, ...]:
    """The egress container, which runs `argv`, with the keys of these names."""
    logins = [part for name in LOGINS for part in ("--volume", f"{home}/{name}:{HOME}/{name}:ro")]
    named = [part for name in keys for part in ("--env", name)]
    return (
        PROGRAM, "run", "--rm", "--detach", "--name", f"{_name(session)}-egress", "--volume", f"{_name(session)}:{SHARED}",
        "--volume", f"{root}:{RECORD}", *logins, *named, image, *argv,
    )  # fmt: skip


def harness(session: str, image: str, spec: SandboxSpec) -> tuple[str, ...]:
    """The harness container. `spec.argv` starts behind the relay; its environment has to be that of the `wslc` that is run."""
    binds = [(bind.source, bind.target, "" if bind.writable else ":ro") for bind in spec.binds]
    shown = [(spec.home, spec.home_inside, ""), (spec.workdir, spec.workdir, ""), *binds]
    volumes = [part for source, target, mode in shown for part in ("--volume", f"{source}:{target}{mode}")]
    names = [part for name, _ in spec.env for part in ("--env", name)]
    terminal = ("--interactive", "--tty") if spec.interactive else ()
    return (
        PROGRAM, "run", "--rm", *terminal, "--name", _name(session), "--network", "none", "--user", str(spec.user_id),
        "--workdir", spec.cwd, "--volume", f"{_name(session)}:{SHARED}:ro", *volumes, *names, image, *spec.argv,
    )  # fmt: skip


def after(session: str) -> tuple[tuple[str, ...], ...]:
    """What is removed at the end, however it ended."""
    name = _name(session)
    return ((PROGRAM, "remove", "-f", name, f"{name}-egress"), (PROGRAM, "volume", "remove", name))


def _name(session: str) -> str:
    return f"amem-{session}"
