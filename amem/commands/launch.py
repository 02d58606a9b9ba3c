"""`amem launch`: one harness in the sandbox."""

import codecs
import sys

import click

from amem.cli.context import Context
from amem.cli.output import note, print_json, visible
from amem.commands import flags
from amem.errors import UsageError
from amem.launch import backends
from amem.model.ids import is_id
from amem.model.label import Label
from amem.typed import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amem.launch.attend import Outcome
    from amem.launch.plan import Asked
    from amem.launch.run import Prepared, Settings

EPILOG = """\b
Examples:
  amem launch --harness claude --auth key
  amem launch --harness codex --auth key --prompt 'load T0 and summarise'
  amem launch --harness claude --auth gateway --model qwen3.8-27b
  amem launch --harness claude --auth subscription --server-auth gateway
  amem launch --harness command -- python3 agent.py"""


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


@click.command(epilog=EPILOG, context_settings={"ignore_unknown_options": False})
@click.option("--harness", metavar="NAME", help="claude, codex, command, … (required; there is no default)")
@click.option("--auth", metavar="MODE", help="subscription, key or gateway; default: the harness's first.")
@click.option("--provider", metavar="DEST", help="The destination in key mode.")
@click.option("--server-auth", metavar="MODE", help="key, gateway or none, for amem's own calls; default: SERVER_AUTH, else as --auth.")
@click.option("--server-provider", metavar="DEST", help="Their destination with a key; default: SERVER_PROVIDER.")
@click.option("--model", metavar="NAME", help="The model, in the harness's own flag; required with gateway.")
@click.option("--prompt", metavar="TEXT", help="Run headless on this prompt; - reads it from stdin.")
@click.option("--subagents", type=click.Choice(["board", "harness"]), default="harness", show_default=True)
@click.option("--no-handoff", is_flag=True, help="Do not exit 4 when the session left no handoff.")
@click.option("--backend", type=click.Choice(backends.ASKED), default="auto", show_default=True, help="How the session is confined.")
@click.option("--unconfined", is_flag=True, help="Without any sandbox: the harness has all your rights. Short for --backend unconfined.")
@flags.domain
@click.option("--label", type=flags.LABELS, help="A floor for the session's label.")
@click.option("--workdir", default=".", show_default=True, metavar="PATH", help="The work tree, the only place a session writes.")
@click.option("--ro", multiple=True, metavar="PATH", help="Another path, read-only.")
@click.option("--rw", multiple=True, metavar="PATH", help="Another path, read-write.")
@click.option("--git-config", type=click.Choice(["ro", "rw"]), default="ro", show_default=True)
@click.option("--allow-config-writes", is_flag=True, help="Let it write .claude/, .vscode/, .mcp.json and their like in the tree.")
@click.option("--snapshot/--no-snapshot", default=False, help="Keep the tree from before the session, for amem session diff and undo.")
@click.option("--port", "ports", multiple=True, type=click.IntRange(1, 65535), help="Reach this port inside on the host.")
@click.option("--host-port", "host_ports", multiple=True, type=click.IntRange(1, 65535), help="Reach this port of the host inside.")
@click.option("--timeout", type=flags.DURATION, default=0.0, metavar="DUR", help="End the session after this long: 90s, 15m, 2h.")
@click.option("--max-procs", type=click.IntRange(1), metavar="N", help="Processes and threads of the session.")
@click.option("--max-memory", type=flags.SIZE, metavar="SIZE", help="Memory of each process, and of all together.")
@click.option("--max-files", type=click.IntRange(16), metavar="N", help="Files that a process may have open.")
@click.option("--max-file-size", type=flags.SIZE, metavar="SIZE", help="What one file may hold.")
@click.option("--max-tmp", type=flags.SIZE, metavar="SIZE", help="/tmp inside; /var/tmp and /dev/shm have a quarter of it.")
@click.option("--session-id", metavar="ID", hidden=True)
@click.option("--dry-run", is_flag=True, help="Print environment names, arguments, files and sandbox steps; start nothing.")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def command(context: Context, /, **options: Any) -> int:
    """Run a harness in the sandbox: its model calls through the egress, its memory over MCP.

    Exits with the harness's own code; 4 when a prompted launch left no handoff; 124 on --timeout; 125 when the sandbox
    could not be set up.
    """
    from amem.launch import run
    from amem.sandbox.child import fork_stage

    wanted = asked(options)
    found = settings(context, wanted)
    if options["dry_run"]:
        return show(run.prepare(wanted, found), found, context)
    # The entry point forked the stage before anything was loaded; a caller that is no command line has none yet.
    stage = context.stage or fork_stage()
    quiet = context.flags.json
    outcome = run.launch(wanted, found, stage, to_stderr if quiet else pass_on, note)
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
    from amem.launch import run
    from amem.launch.plan import named

    named(wanted)
    return run.Settings(
        root=context.root,
        grants=context.grants,
        credentials=context.credentials,
        environment=context.environment,
        domain=context.domain(wanted.domain),
    )


def asked(options: dict[str, Any]) -> "Asked":
    """The launch that these options ask for. Raises UsageError."""
    from amem.launch.plan import Asked

    prompt = flags.given(options["prompt"]) if options["prompt"] is not None else None
    if prompt is not None and not prompt.strip():
        raise UsageError("--prompt is empty; leave it out for an interactive session", hint="amem launch --help")
    backend = options["backend"]
    if options["unconfined"]:
        if backend not in ("auto", "unconfined"):
            raise UsageError(f"--unconfined and --backend {backend} exclude each other", hint="amem launch --help")
        backend = "unconfined"
    session_id = options["session_id"]
    if session_id is not None and not is_id("session", session_id):
        raise UsageError(f"--session-id {session_id}: expected ses- and eight letters or digits", hint="amem launch --help")
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
    from amem.egress import meter

    usage = meter.report(context.root, session=outcome.session)
    found = {
        **meter.sessions(context.root, session=outcome.session)[0],
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
    from amem.launch.run import described

    document = {
        "session": ready.id,
        "backend": ready.plan.backend.name,
        "destination": ready.plan.destination,
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
