"""`amem models`: what a destination offers, asked for through the egress, and whether a model answers."""

import click

from amem.cli.context import Context
from amem.cli.output import one_line, print_json
from amem.errors import UsageError
from amem.typed import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amem.egress.answers import Spoken
    from amem.egress.own import Own
    from amem.settings.prices import Prices

PROMPT = "Answer with the one word: ready"
MOST_TOKENS = 1024
"""A model that thinks needs some before it says a word."""


@click.command(
    epilog="Examples: amem models --auth gateway    amem models --auth key --provider anthropic    amem models --harness codex    "
    "amem models --check qwen3.8-27b"
)
@click.option("--auth", metavar="MODE", help="key or gateway; default: SERVER_AUTH, else what serves the provider.")
@click.option("--provider", metavar="DEST", help="The destination in key mode; default: SERVER_PROVIDER.")
@click.option("--harness", metavar="NAME", help="The destination that this harness has.")
@click.option("--check", metavar="MODEL", help="Ask this model for one word; say what it answered, used and cost.")
@click.pass_obj
def command(context: Context, auth: str | None, provider: str | None, harness: str | None, check: str | None) -> int:
    """List a destination's models, for which nothing is spent.

    SERVER_AUTH and SERVER_PROVIDER (environment or credentials.env) are for amem's own calls.
    """
    import asyncio

    from amem.egress import own
    from amem.model.label import Label

    if harness is not None:
        auth, provider = _of_harness(harness, auth, provider)
    elif auth is None and provider is None:
        auth, provider = context.credentials.text("SERVER_AUTH"), context.credentials.text("SERVER_PROVIDER")
        if auth == own.NONE:
            raise UsageError("SERVER_AUTH none: amem is to make no calls of its own", hint="amem models --auth gateway")
    way = own.way(auth, provider)
    domain = context.grants.default_domain or next(iter(context.grants.domains))  # neither has anything of any domain

    async def ask() -> int:
        async with own.opened(
            context.root, context.grants, context.credentials, way, role=own.Role.RECOMMENDER, domain=domain, label=Label.PUBLIC
        ) as client:
            return await (_list(context, client) if check is None else _check(context, client, check))

    return asyncio.run(ask())


async def _list(context: Context, client: "Own") -> int:
    found = await client.models()
    if context.flags.json:
        print_json({"destination": client.destination, "models": list(found)})
    else:
        print("\n".join(map(one_line, found)) or f"{client.destination} offers no models")
    return 0


async def _check(context: Context, client: "Own", model: str) -> int:
    from amem.settings import prices

    table = prices.load(context.root.prices)
    spoken = await client.ask(PROMPT, model=model, max_tokens=MOST_TOKENS)
    told = _told(client.destination, spoken, table)
    if context.flags.json:
        print_json(told)
        return 0
    print(one_line(spoken.text) or f"(no word: {spoken.stop})")
    used = "did not say what it used"
    if spoken.usage is not None:
        used = f"{told['input']} tokens in, {told['output']} out"
        cached = spoken.usage.cache_read + spoken.usage.cache_write
        used += f", {cached} of a cache" if cached else ""
    price = f"{told['usd']:.6f} US dollars" if "usd" in told else "no price in prices.toml"
    print(f"{one_line(spoken.reported or spoken.model)} at {client.destination}: {used}; {price}; {spoken.ms} ms; {spoken.call}")
    return 0


def _told(destination: str, spoken: "Spoken", table: "Prices") -> dict[str, Any]:
    told: dict[str, Any] = {"destination": destination, "model": spoken.model, "answer": spoken.text, "stop": spoken.stop.value}
    told |= {"call": spoken.call, "ms": spoken.ms}
    if spoken.reported is not None:
        told["reported_model"] = spoken.reported
    if (usage := spoken.usage) is not None:
        used = usage._asdict()
        told |= {name: count for name, count in used.items() if count is not None}
        price = table.find(spoken.model)
        if price is not None and (cost := price.of(used)).unpriced == 0:
            told["usd"] = float(cost.usd)
    return told


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
