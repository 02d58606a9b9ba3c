"""`amem launch`: one harness in the sandbox.

Without click: a plain command line goes from `FLAGS` to `run`, and `launch_line` makes of the same table what click reads and explains.
"""

import codecs
import sys

from amem.cli.context import Context
from amem.cli.output import note, print_json, visible
from amem.cli.plain import DOMAIN, Flag
from amem.cli.streams import given
from amem.errors import UsageError
from amem.launch import backends
from amem.model import clock
from amem.model.ids import is_id
from amem.model.label import Label
from amem.settings.grants import size_bytes
from amem.typed import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amem.launch.attend import Outcome
    from amem.launch.plan import Asked
    from amem.launch.run import Prepared, Settings

FLAGS = (
    Flag("--harness", "claude, codex, command, … (required; there is no default)", "NAME"),
    Flag("--auth", "subscription, key or gateway; default: the harness's first.", "MODE"),
    Flag("--provider", "The destination in key mode.", "DEST"),
    Flag("--server-auth", "key, gateway or none, for amem's own calls; default: SERVER_AUTH, else as --auth.", "MODE"),
    Flag("--server-provider", "Their destination with a key; default: SERVER_PROVIDER.", "DEST"),
    Flag("--model", "The model, in the harness's own flag; required with gateway.", "NAME"),
    Flag("--prompt", "Run headless on this prompt; - reads it from stdin.", "TEXT"),
    Flag(
        "--subagents",
        "Subagents run in the harness, or become tasks of the board.",
        choices=("board", "harness"),
        default="harness",
        shows_default=True,
    ),
    Flag("--no-handoff", "Do not exit 4 when the session left no handoff.", switch=True),
    Flag("--backend", "How the session is confined.", choices=backends.ASKED, default="auto", shows_default=True),
    Flag("--unconfined", "Without any sandbox: the harness has all your rights. Short for --backend unconfined.", switch=True),
    DOMAIN,
    Flag("--label", "A floor for the session's label.", choices=tuple(each.value for each in Label)),
    Flag("--workdir", "The work tree, the only place a session writes.", "PATH", ".", shows_default=True),
    Flag("--ro", "Another path, read-only.", "PATH", many=True),
    Flag("--rw", "Another path, read-write.", "PATH", many=True),
    Flag(
        "--git-config", "Whether it may write the repository's git configuration.", choices=("ro", "rw"), default="ro", shows_default=True
    ),
    Flag("--allow-config-writes", "Let it write .claude/, .vscode/, .mcp.json and their like in the tree.", switch=True),
    Flag("--snapshot", "Keep the tree from before the session, for amem session diff and undo.", switch=True, off="--no-snapshot"),
    Flag("--allow-ptrace", "Let its programs trace each other: gdb, strace, LeakSanitizer.", switch=True),
    Flag("--port", "Reach this port inside on the host.", "N", into="ports", numbers=(1, 65535), many=True),
    Flag("--host-port", "Reach this port of the host inside.", "N", into="host_ports", numbers=(1, 65535), many=True),
    Flag("--timeout", "End the session after this long: 90s, 15m, 2h.", "DUR", 0.0, kind="duration", parse=clock.duration_s),
    Flag("--max-procs", "Processes and threads of the session.", "N", numbers=(1, None)),
    Flag("--max-memory", "Memory of each process, and of all together.", "SIZE", kind="size", parse=size_bytes),
    Flag("--max-files", "Files that a process may have open.", "N", numbers=(16, None)),
    Flag("--max-file-size", "What one file may hold.", "SIZE", kind="size", parse=size_bytes),
    Flag("--max-tmp", "/tmp inside; /var/tmp and /dev/shm have a quarter of it.", "SIZE", kind="size", parse=size_bytes),
    Flag("--session-id", metavar="ID", hidden=True),
    Flag("--dry-run", "Print environment names, arguments, files and sandbox steps; start nothing.", switch=True),
)
REST = "args"
"""What stands behind `--`: the harness's own arguments."""

LIMITS = {
    "max_procs": "processes",
    "max_memory": "memory_bytes",
    "max_files": "open_files",
    "max_file_size": "file_size_bytes",
    "max_tmp": "tmp_bytes",
}
"""Flag → the limit it sets."""

_DECODERS = {stream: codecs.getincrementaldecoder("utf-8")("replace") for stream in (1, 2)}
"""What came of a character so far, by output stream."""


def run(context: Context, options: dict[str, Any]) -> int:
    """Launch what these options ask for. Returns the exit code, as `launch_line.command` says it."""
    from amem.launch import run as launching
    from amem.sandbox.child import fork_stage

    wanted = asked(options)
    found = settings(context, wanted)
    if options["dry_run"]:
        return show(launching.prepare(wanted, found), found, context)
    # The entry point forked the stage before anything was loaded; a caller that is no command line has none yet.
    stage = context.stage or fork_stage()
    quiet = context.flags.json
    outcome = launching.launch(wanted, found, stage, to_stderr if quiet else pass_on, note)
    for sentence in outcome.notes:
        note(sentence)
    if quiet:
        print_json(document(outcome, context))
    elif wanted.prompt is not None and outcome.handoffs:
        note(f"handoff {', '.join(outcome.handoffs)}; read it with: amem handoff show")
    for held in outcome.held:
        note(f"a write is held in the quarantine: {held}")
    return outcome.exit


def settings(context: Context, wanted: "Asked") -> "Settings":
    """What a launch works with, from the root and the environment.

    A harness that was not named, or is none, is told before a root that is not there.
    """
    from amem.launch.plan import named
    from amem.launch.run import Settings

    named(wanted)
    return Settings(
        root=context.root,
        grants=context.grants,
        credentials=context.credentials,
        environment=context.environment,
        domain=context.domain(wanted.domain),
    )


def asked(options: dict[str, Any]) -> "Asked":
    """The launch that these options ask for. Raises UsageError."""
    from amem.launch.plan import Asked

    prompt = given(options["prompt"]) if options["prompt"] is not None else None
    if prompt is not None and not prompt.strip():
        raise UsageError("--prompt is empty; leave it out for an interactive session", hint="amem launch --help")
    backend = options["backend"]
    if options["unconfined"]:
        if backend not in ("auto", "unconfined"):
            raise UsageError(f"--unconfined and --backend {backend} exclude each other", hint="amem launch --help")
        backend = "unconfined"
    session_id = options["session_id"]
    if session_id is not None and not is_id("session", session_id):
        raise UsageError(
            f"--session-id {session_id}: expected ses- and eight digits or small letters, none of them i, l, o or u",
            hint="amem launch --help",
        )
    return Asked(
        **{name: options[name] for name in ("harness", "auth", "provider", "model", "args", "subagents", "no_handoff", "dry_run")},
        **{name: options[name] for name in ("server_auth", "server_provider", "domain", "workdir", "session_id")},
        backend=backend,
        prompt=prompt,
        label=Label(options["label"]) if options["label"] else None,
        read_only=options["ro"],
        read_write=options["rw"],
        timeout_s=options["timeout"],
        limits={field: options[flag] for flag, field in LIMITS.items() if options[flag] is not None},
        git_config_writable=options["git_config"] == "rw",
        config_writable=options["allow_config_writes"],
        traces=options["allow_ptrace"],
        snapshot=options["snapshot"],
        ports=options["ports"],
        host_ports=options["host_ports"],
        interactive=prompt is None and sys.stdin.isatty() and sys.stdout.isatty(),
    )


def pass_on(stream: int, data: bytes) -> None:
    """The harness's output is ours: byte for byte into a file or a pipe; on a terminal, with its control characters visible."""
    out = sys.stdout if stream == 1 else sys.stderr
    if out.isatty():
        data = visible(_DECODERS[stream].decode(data).replace("\r\n", "\n")).encode()
    out.buffer.write(data)
    out.buffer.flush()


def to_stderr(stream: int, data: bytes) -> None:
    """With --json stdout has one document and nothing else."""
    pass_on(2, data)


def document(outcome: "Outcome", context: Context) -> dict[str, Any]:
    """Session + what came of it."""
    from amem.egress import reading

    usage = reading.report(context.root, session=outcome.session)
    found = {
        **reading.sessions(context.root, session=outcome.session)[0],
        "answer": outcome.answer,
        "harness_exit": outcome.harness_exit,
        "handoffs": list(outcome.handoffs),
        "entries": list(outcome.entries),
        "held": list(outcome.held),
        "plan_window": dict(outcome.plan_window) or None,
        "changed": [change._asdict() for change in outcome.changed] or None,
        "usage": usage,
    }
    return {key: value for key, value in found.items() if value is not None}


def show(ready: "Prepared", found: "Settings", context: Context) -> int:
    """What a launch would do: names of the environment, never its values; argv; files; sandbox."""
    from amem.launch.description import described

    document = {
        "session": ready.id,
        "backend": ready.plan.backend.name,
        "destination": "none" if ready.plan.unserved else ready.plan.destination,
        "own_calls": f"{ready.plan.own.destination} ({ready.plan.own.auth})" if ready.plan.own else "none",
        "label": ready.plan.label,
        "ceiling": ready.plan.ceiling,
        "handling": ready.plan.handling,
        "workdir": ready.spec.workdir,
        "argv": list(ready.spec.argv),
        "environment": [name for name, _ in ready.spec.env],
        "files": list(ready.launch.files),
        "binds": [f"{bind.source}{' (rw)' if bind.writable else ''}" for bind in ready.spec.binds],
        **described(ready, found),
    }
    if context.flags.json:
        print_json(document)
        return 0
    from shlex import join

    for key, value in document.items():
        if key in ("profile", "commands"):
            print(f"{key}:", *(f"  {visible(row if isinstance(row, str) else join(row))}" for row in value), sep="\n")
        else:
            print(f"{key}: {visible(', '.join(value) if isinstance(value, list) else str(value))}")
    return 0
