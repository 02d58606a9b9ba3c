"""`amem serve`: the memory server on stdio."""

import click

from amem.cli.context import Context
from amem.commands import flags
from amem.errors import UsageError
from amem.model.principal import is_principal


@click.command(epilog="Examples: claude mcp add memory -- amem serve --domain dom-me    codex mcp add memory -- amem serve --domain dom-me")
@flags.domain
@click.option("--principal", default="agent:stdio", show_default=True, metavar="P", help="Whom the grants know this session as.")
@click.pass_obj
def command(context: Context, domain: str | None, principal: str) -> int:
    """Serve the memory over MCP on stdin and stdout, for a harness that runs unconfined."""
    from amem.server.stdio import main

    if not is_principal(principal):
        raise UsageError(f"--principal {principal}: expected agent:<name> or human:<org>:<name>", hint="amem serve --help")
    return main(str(context.root.path), context.domain(domain), principal)
