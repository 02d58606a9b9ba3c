"""`amem completion`: the script that a shell sources."""

import click
from click.shell_completion import BashComplete, FishComplete, ZshComplete

_SHELLS = {"bash": BashComplete, "zsh": ZshComplete, "fish": FishComplete}


@click.command(epilog='Example: eval "$(amem completion bash)"')
@click.argument("shell", type=click.Choice(list(_SHELLS)))
@click.pass_context
def command(ctx: click.Context, shell: str) -> int:
    """Print the completion script of a shell."""
    found = _SHELLS[shell](ctx.find_root().command, {}, "amem", "_AMEM_COMPLETE")
    click.echo(found.source())
    return 0
