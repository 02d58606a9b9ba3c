"""`amem init`: make a root whose templates pass their own check. Never overwrites."""

from pathlib import Path

import click

from amem.cli.context import Context
from amem.cli.output import note, print_json, visible
from amem.errors import ConflictError, UsageError
from amem.model import principal as principals
from amem.model.ids import is_id
from amem.model.label import Label
from amem.record.store import write_new
from amem.settings import grants
from amem.settings.root import INIT

_GRANTS = """\
# Who may do what in this root. `amem doctor --config` prints what is in force. An unknown key is an error.
owner = "{owner}"
default_domain = "{domain}"

# A domain: a part of the record that sessions write to, and the grants on it.
[grants.{domain}]
default = "{label}"                  # classification of what is written without one: public, internal or restricted
admit_own = true                       # a task that a session files from a task it holds starts as admitted
transcript_retention_days = 30
contexts = true                        # keep what each model call sent and got
transcripts = true                     # keep the harness's own account of each session

# The longest matching pattern wins; where none matches there is no access.
[grants.{domain}.principals."agent:*"]
read = "internal"                      # the highest label a session may read
write = true
capabilities = ["code"]
server_tools = []                      # tools that would run at the provider, outside the sandbox

# Where model calls may go, and the highest label each may receive. What is not named here is refused.
{destinations}
[gates]
max_supersedes_per_session = 20        # this many replacements go through; the next is held for you
instruction_files = "named"            # or "approved"
complete_requires = "handoff"          # or "check"

# [spend.anthropic]                    # limits in tokens, in and out
# session_tokens = 2_000_000
# day_tokens = 10_000_000

# [notice]                             # be told when a task needs a person
# command = ["notify-send", "amem", "a task needs you"]      # gets their ids as JSON on stdin
# webhook = "https://hooks.example.org/…"                    # or: gets the same by POST

[limits]
processes = 512
memory = "8G"
open_files = 4096
file_size = "8G"
tmp = "2G"
wall_clock = "0"                       # no limit; "2h" ends a session after two hours
"""

_DESTINATION = """\
[destinations.{name}]
ceiling = "internal"
"""

_PRICES = """\
# US dollars per million tokens, by model. The exact name wins, else the longest name that the model's name starts with.
# [models."claude-sonnet-5"]
# input = 3.00
# output = 15.00
# cache_read = 0.30
# cache_write = 3.75
"""

_CREDENTIALS = """\
# NAME=value, one a line; only you may read this file. The environment wins over it.
# ANTHROPIC_API_KEY=
# OPENAI_API_KEY=
"""

DESTINATIONS = ("anthropic", "openai", "google", "xai", "dashscope", "meta", "github-copilot", "llmao")


@click.command(epilog="Example: amem init --owner human:asf:you --domain dom-me")
@click.option("--owner", required=True, metavar="PRINCIPAL", help="Who owns the root: human:<org>:<name>.")
@click.option("--domain", default="dom-me", show_default=True, help="The first domain of the record.")
@click.option(
    "--default-label",
    type=click.Choice([each.value for each in Label]),
    default="internal",
    show_default=True,
    help="For writes that name none.",
)
@click.pass_obj
def command(context: Context, owner: str, domain: str, default_label: str) -> int:
    """Make a root: record, grants, prices and a place for keys. Nothing that is there is overwritten."""
    if not principals.is_principal(owner) or principals.kind(owner) != "human":
        raise UsageError(f"--owner {owner}: expected human:<org>:<name>", hint=f"amem {INIT}")
    if not is_id("domain", domain):
        raise UsageError(f"--domain {domain}: expected dom- and letters, digits or hyphens", hint="amem init --help")
    root = context.where
    if root.grants.exists():
        raise ConflictError(f"{root.path} is a root already; nothing was changed", hint=root.command("doctor --config"))
    created: list[Path] = []
    for directory in (root.path, root.record, root.record / domain, root.state, root.quarantine, root.homes, root.policy):
        if not directory.is_dir():
            directory.mkdir(mode=0o700, parents=True)
            created.append(directory)
    destinations = "\n".join(_DESTINATION.format(name=name) for name in DESTINATIONS)
    # grants.toml is written last: a root without it is not a root yet, and `init` may be run again.
    for path, text in (
        (root.prices, _PRICES),
        (root.credentials, _CREDENTIALS),
        (root.grants, _GRANTS.format(owner=owner, domain=domain, label=default_label, destinations=destinations)),
    ):
        if _create(path, text):
            created.append(path)
        elif path == root.grants:
            raise ConflictError(f"{root.path} was made a root by somebody else meanwhile", hint=root.command("doctor --config"))
    grants.load(root.grants)
    if context.flags.json:
        print_json({"root": str(root.path), "created": [str(path) for path in created]})
    else:
        print(f"made the root {visible(str(root.path))} for {owner}, with the domain {domain}")
        note("next: put a key into credentials.env or the environment, then amem doctor")
    return 0


def _create(path: Path, text: str) -> bool:
    """Whether the file was made by us: whole, so that nobody reads half of it."""
    try:
        write_new(path, text.encode())
    except FileExistsError:
        return False
    return True
