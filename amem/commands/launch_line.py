"""`amem launch` for click: its help, its completion, and the command lines that are not plain."""

import click

from amem.cli.context import Context
from amem.commands import flags, launch
from amem.typed import Any

EPILOG = """\b
Examples:
  amem launch --harness claude --auth key
  amem launch --harness codex --auth key --prompt 'load T0 and summarise'
  amem launch --harness claude --auth gateway --model qwen3.8-27b
  amem launch --harness claude --auth subscription --server-auth gateway
  amem launch --harness command -- python3 agent.py"""


@click.command(epilog=EPILOG)
@flags.from_table(launch.FLAGS)
@click.argument(launch.REST, nargs=-1, type=click.UNPROCESSED, metavar="[-- ARGS…]")
@click.pass_obj
def command(context: Context, /, **options: Any) -> int:
    """Run a harness in the sandbox: its model calls through the egress, its memory over MCP.

    Exits with the harness's own code; 4 when a prompted launch left no handoff; 124 on --timeout; 125 when the sandbox
    could not be set up.
    """
    return launch.run(context, options)
