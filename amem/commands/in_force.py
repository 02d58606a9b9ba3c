"""`amem doctor --config`: every setting of `grants.toml` by its key there, the value in force, and whether the file says it.

What may hold a secret (a server's password, a webhook's path, the arguments of a command) is not shown.
"""

import re
import tomllib
from collections.abc import Callable, Iterator, Mapping

from amem.settings.grants import Grants, Notice
from amem.settings.root import Root
from amem.typed import Any, NamedTuple

_UNIT = re.compile(r"_(?:bytes|s)$")
"""A field names its unit, the file's key does not: `memory_bytes` is `memory = "8G"`."""


class Setting(NamedTuple):
    """One setting: its dotted key, the value in force as text, and the file it stands in or `default`."""

    key: str
    value: str
    source: str


def settings(root: Root, grants: Grants) -> list[Setting]:
    """Every setting in force, in the order of the tables; what is not set and has no default is left out."""
    written = tomllib.loads(root.grants.read_text(encoding="utf-8"))
    tables = {
        "owner": grants.owner,
        "default_domain": grants.default_domain,
        "people": {name: {"os_users": users} for name, users in grants.people.items()},
        "grants": grants.domains,
        "destinations": grants.destinations,
        "gates": grants.gates,
        "spend": {"zone": grants.spend_zone, **grants.spend},
        "ledger": {"url": _host_alone(grants.ledger_url), "space": grants.ledger_space},
        "limits": grants.limits,
        "notice": grants.notice and Notice(_program_alone(grants.notice.command), _host_alone(grants.notice.webhook)),
    }
    return [Setting(".".join(path), text, root.grants.name if _stands(written, path) else "default") for path, text in _leaves((), tables)]


def _leaves(path: tuple[str, ...], value: Any) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, Mapping):
        for name, inner in value.items():
            yield from _leaves((*path, name), inner)
    elif hasattr(value, "_asdict"):
        for name, inner in value._asdict().items():
            yield from _leaves((*path, _UNIT.sub("", name)), _size(inner) if name.endswith("_bytes") else inner)
    elif value is not None:
        yield path, _TEXTS.get(type(value), str)(value)


def _size(count: int) -> str:
    at = max((at for at in range(5) if count % (1 << 10 * at) == 0), default=0)
    return f"{count >> 10 * at}{' KMGT'[at].strip()}"


_TEXTS: Mapping[type, Callable[[Any], str]] = {
    bool: lambda value: str(value).lower(),
    float: lambda value: f"{value:g}",
    tuple: lambda value: ", ".join(value) or "none",
}


def _stands(written: Any, path: tuple[str, ...]) -> bool:
    for name in path:
        if not isinstance(written, Mapping) or name not in written:
            return False
        written = written[name]
    return True


def _host_alone(address: str | None) -> str | None:
    if address is None:
        return None
    found = re.fullmatch(r"(\w+://)(?:[^/?#]*@)?([^/?#@]+)(?:[/?#][^@]*)?", address)  # an @ behind the host may end a password
    return f"{found[1]}{found[2]}/…" if found else "…"


def _program_alone(command: tuple[str, ...]) -> tuple[str, ...]:
    return (command[0], "…") if len(command) > 1 else command
