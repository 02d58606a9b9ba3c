"""The compatibility table of docs/harnesses.md, written from the tables that launches use: `python -m amem.harnesses.compat`."""

import tomllib
from collections.abc import Iterable
from pathlib import Path

from amem.harnesses import registry
from amem.harnesses.base import Auth, Harness, HookKind
from amem.typed import Any

SHOWN = Path(__file__).with_name("shown.toml")
INTRODUCTION = """\
# Harnesses

Written by `python -m amem.harnesses.compat` from the tables that launches use; a test fails when it is stale.

`real`: the program itself was run, headless and on a terminal, in the sandbox, against the scripted provider. `golden`: its arguments,
environment and files are compared whole with what was measured of the program. `not proven here`: written from public reports.
"""

FAULTS = ("400", "401", "403", "404", "429", "500", "529", "refused", "silent")
"""What may come of a model call: a status, a connection that is refused, an answer that falls silent half way."""
FAILING = """\
Model calls until a headless run has ended, on the real program, the title of a session among them. Each ends with a code that is not 0,
says why, and leaves a handoff. After two silent answers the egress refuses the next call, which ends those that would ask on.
"""
OLDEST = """\
A program on the host's PATH that is older gives way to the pinned one, and is refused where there is none. One that is a major version
beyond the pinned one runs, and the launch says so. Nothing is run to find out: a version is read from the package or the file's name.
"""


def shown() -> dict[str, dict[str, Any]]:
    """How each harness was shown to work, by AUTH mode."""
    return tomllib.loads(SHOWN.read_text(encoding="utf-8"))


def document() -> str:
    """The whole of docs/harnesses.md."""
    harnesses = [registry.load(name) for name in registry.names()]
    proofs = shown()
    parts = [
        INTRODUCTION,
        "## How each was shown\n",
        _table(["harness", "version", *Auth], (_proof(harness, proofs[harness.name]) for harness in harnesses)),
        "## Where model calls go\n",
        _table(["harness", "key", "subscription", "tunnel, unmetered"], map(_ways, harnesses)),
        "## Memory and hooks\n",
        _table(["harness", "tool", *(f"`{kind}`" for kind in HookKind), "own token count"], map(_hooks, harnesses)),
        "## When the provider fails\n",
        FAILING,
        _table(["harness", *FAULTS], (_tries(harness, proofs[harness.name]) for harness in harnesses if "tries" in proofs[harness.name])),
        "## Oldest versions\n",
        OLDEST,
        _table(["harness", "oldest", "because"], (_oldest(harness) for harness in harnesses if harness.version is not None)),
        "## Known to be missing\n",
        "\n".join(f"- **{harness.title}**: {note}." for harness in harnesses for note in proofs[harness.name].get("notes", [])) + "\n",
        "## Modes that are refused\n",
        "\n".join(f"- **{harness.title}**, {mode}: {why}." for harness in harnesses for mode, why in harness.refusals.items()) + "\n",
    ]
    return "\n".join(parts)


def _proof(harness: Harness, proof: dict[str, Any]) -> list[str]:
    pin = registry.pins().get(harness.name)
    return [f"`{harness.name}` {harness.title}", pin.version if pin else "-", *(proof.get(mode, "-") for mode in Auth)]


def _ways(harness: Harness) -> list[str]:
    return [
        f"`{harness.name}`",
        ", ".join(harness.destinations.get(Auth.KEY, ())) or "-",
        ", ".join(harness.destinations.get(Auth.SUBSCRIPTION, ())) or "-",
        ", ".join(host.removesuffix(":443") for host in harness.tunnel_hosts) or "-",
    ]


def _tries(harness: Harness, proof: dict[str, Any]) -> list[str]:
    return [f"`{harness.name}`", *(str(proof["tries"][fault]) for fault in FAULTS)]


def _oldest(harness: Harness) -> list[str]:
    assert harness.version is not None
    return [f"`{harness.name}`", ".".join(map(str, harness.version.floor)), harness.version.reason]


def _hooks(harness: Harness) -> list[str]:
    events = [", ".join(f"`{hook.event}`" for hook in harness.hooks if hook.kind is kind) or "-" for kind in HookKind]
    tool = "-" if harness.mcp_tool is None else f"`{harness.mcp_tool.format(tool='t0')}`"
    return [f"`{harness.name}`", tool, *events, "yes" if harness.usage else "no"]


def _table(head: list[str], rows: Iterable[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


if __name__ == "__main__":
    print(document(), end="")
