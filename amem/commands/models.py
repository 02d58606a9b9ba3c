"""`amem models`: what a destination offers, asked for through the egress; nothing is spent."""

import click

from amem.cli.context import Context
from amem.cli.output import one_line, print_json
from amem.errors import UsageError


@click.command(epilog="Examples: amem models --auth gateway    amem models --auth key --provider anthropic    amem models --harness codex")
@click.option("--auth", metavar="MODE", help="key or gateway; default: SERVER_AUTH, else what serves the provider.")
@click.option("--provider", metavar="DEST", help="The destination in key mode; default: SERVER_PROVIDER.")
@click.option("--harness", metavar="NAME", help="The destination that this harness has.")
@click.pass_obj
def command(context: Context, auth: str | None, provider: str | None, harness: str | None) -> int:
    """List a destination's models. SERVER_AUTH and SERVER_PROVIDER (environment or credentials.env) are for amem's own calls."""
    import asyncio

    from amem.egress import own

    if harness is not None:
        auth, provider = _of_harness(harness, auth, provider)
    elif auth is None and provider is None:
        auth, provider = context.credentials.text("SERVER_AUTH"), context.credentials.text("SERVER_PROVIDER")
    way = own.way(auth, provider)
    domain = context.grants.default_domain or next(iter(context.grants.domains))  # a list has nothing of any domain

    async def ask() -> tuple[str, ...]:
        async with own.opened(context.root, context.grants, context.credentials, way, role=own.Role.RECOMMENDER, domain=domain) as client:
            return await client.models()

    found = asyncio.run(ask())
    if context.flags.json:
        print_json({"destination": way.destination, "models": list(found)})
    else:
        print("\n".join(map(one_line, found)) or f"{way.destination} offers no models")
    return 0


def _of_harness(name: str, auth: str | None, provider: str | None) -> tuple[str, str]:
    """The mode and destination of a harness, its login apart. Raises UsageError."""
    from amem.harnesses import registry
    from amem.harnesses.base import Auth, choose

    harness = registry.load(name)
    if auth is None:
        held = [mode for mode in harness.auth if mode is not Auth.SUBSCRIPTION and provider in (None, *harness.destinations[mode])]
        if not held:
            raise UsageError(f"{name}: has neither a key nor a gateway to list models on", hint="amem models --auth gateway")
        auth = held[0]
    choice = choose(harness, auth=auth, destination=provider)
    return choice.auth, choice.destination
