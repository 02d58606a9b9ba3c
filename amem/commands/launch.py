"""`amem launch`: one harness in the sandbox."""

import sys

import click

from amem.cli.context import Context
from amem.errors import UsageError
from amem.model.clock import duration_s
from amem.model.ids import is_id
from amem.model.label import Label
from amem.settings.grants import size_bytes

EPILOG = """\b
Examples:
  amem launch --harness claude --auth key
  amem launch --harness codex --auth key --prompt 'load T0 and summarise'
  amem launch --harness claude --auth gateway --model qwen3.8-27b
  amem launch --harness command -- python3 agent.py"""


class _Parsed(click.ParamType):
    """A value read by a function whose ValueError is the reason."""

    def __init__(self, name: str, parse: object) -> None:
        self.name = name
        self._parse = parse

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        """Read the value."""
        if not isinstance(value, str):
            return value
        try:
            return self._parse(value)  # type: ignore[operator]
        except ValueError as error:
            self.fail(str(error), param, ctx)


DURATION = _Parsed("duration", duration_s)
SIZE = _Parsed("size", size_bytes)

LIMITS = {
    "max_procs": "processes",
    "max_memory": "memory_bytes",
    "max_files": "open_files",
    "max_file_size": "file_size_bytes",
    "max_tmp": "tmp_bytes",
}
"""Flag → the limit it sets."""


@click.command(epilog=EPILOG, context_settings={"ignore_unknown_options": False})
@click.option("--harness", metavar="NAME", help="claude, codex, command, … (required; there is no default)")
@click.option("--auth", metavar="MODE", help="subscription, key or gateway; default: the harness's first.")
@click.option("--provider", metavar="DEST", help="The destination in key mode.")
@click.option("--model", metavar="NAME", help="The model, in the harness's own flag; required with gateway.")
@click.option("--prompt", metavar="TEXT", help="Run headless on this prompt; - reads it from stdin.")
@click.option("--subagents", type=click.Choice(["board", "harness"]), default="harness", show_default=True)
@click.option("--no-handoff", is_flag=True, help="Do not exit 4 when the session left no handoff.")
@click.option("--backend", type=click.Choice(["auto", "namespaces"]), default="auto", show_default=True)
@click.option("--domain", metavar="DOM")
@click.option("--label", type=click.Choice([*Label]), help="A floor for the session's label.")
@click.option("--workdir", default=".", show_default=True, metavar="PATH", help="The work tree, the only place a session writes.")
@click.option("--ro", multiple=True, metavar="PATH", help="Another path, read-only.")
@click.option("--rw", multiple=True, metavar="PATH", help="Another path, read-write.")
@click.option("--git-config", type=click.Choice(["ro", "rw"]), default="ro", show_default=True)
@click.option("--timeout", type=DURATION, default=0.0, metavar="DUR", help="End the session after this long: 90s, 15m, 2h.")
@click.option("--max-procs", type=int, metavar="N")
@click.option("--max-memory", type=SIZE, metavar="SIZE")
@click.option("--max-files", type=int, metavar="N")
@click.option("--max-file-size", type=SIZE, metavar="SIZE")
@click.option("--max-tmp", type=SIZE, metavar="SIZE")
@click.option("--session-id", metavar="ID", hidden=True)
@click.option("--dry-run", is_flag=True, help="Print environment names, arguments, files and sandbox steps; start nothing.")
@click.argument("args", nargs=-1, type=click.UNPROCESSED)
@click.pass_obj
def command(context: Context, **options: object) -> int:
    """Run a harness in the sandbox: its model calls through the egress, its memory over MCP.

    Exits with the harness's own code; 4 when a prompted launch left no handoff; 124 on --timeout; 125 when the sandbox
    could not be set up.
    """
    from amem.launch.plan import Asked
    from amem.launch.run import launch

    prompt = options["prompt"]
    if prompt == "-":
        prompt = sys.stdin.read()
    if prompt is not None and not str(prompt).strip():
        raise UsageError("--prompt is empty; leave it out for an interactive session", hint="amem launch --help")
    session_id = options["session_id"]
    if session_id is not None and not is_id("session", str(session_id)):
        raise UsageError(f"--session-id {session_id}: expected ses- and eight letters or digits", hint="amem launch --help")
    limits = {field: options[flag] for flag, field in LIMITS.items() if options[flag] is not None}
    asked = Asked(
        harness=_text(options["harness"]), auth=_text(options["auth"]), provider=_text(options["provider"]),
        model=_text(options["model"]), prompt=_text(prompt), args=tuple(options["args"]),  # type: ignore[arg-type]
        subagents=str(options["subagents"]), no_handoff=bool(options["no_handoff"]), backend=str(options["backend"]),
        domain=_text(options["domain"]), label=Label(str(options["label"])) if options["label"] else None,
        workdir=str(options["workdir"]), read_only=tuple(options["ro"]), read_write=tuple(options["rw"]),  # type: ignore[arg-type]
        timeout_s=float(options["timeout"]), limits=limits,  # type: ignore[arg-type]
        session_id=_text(session_id), git_config_writable=options["git_config"] == "rw",
        interactive=prompt is None and sys.stdin.isatty() and sys.stdout.isatty(),
    )  # fmt: skip
    return launch(context, asked, dry_run=bool(options["dry_run"]))


def _text(value: object) -> str | None:
    return None if value is None else str(value)
