"""`grants.toml` as frozen values: the owner, domains and their grants, destinations, gates, spend and limits.

Named tuples where nothing more is needed: every command reads this, and a frozen dataclass takes five times as long to define.
"""

import re
import time
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from amem.model import principal as principals
from amem.model.ids import is_id
from amem.model.label import Label
from amem.settings.toml import Table, read
from amem.typed import NamedTuple, TypeVar

T = TypeVar("T")
LANES = ("harness", "own", "curation")
"""Who calls at a destination: a harness, amem for somebody who waits, amem in bulk."""

IMPORTED_NS = time.time_ns()
"""Before any grants of this process were read: a file that has not changed since then is as they were read."""


class PrincipalGrant(NamedTuple):
    """What a principal may do in a domain."""

    read: Label
    """Handling: the highest label it may read."""
    write: bool = False
    capabilities: tuple[str, ...] = ()
    server_tools: tuple[str, ...] = ()


class DomainGrant(NamedTuple):
    """One domain: its default classification and who may do what in it."""

    default: Label = Label.INTERNAL
    admit_own: bool = False
    transcript_retention_days: int = 30
    contexts: bool = True
    transcripts: bool = True
    principals: Mapping[str, PrincipalGrant] = MappingProxyType({})
    """By pattern; the longest one that matches wins."""


class DestinationGrant(NamedTuple):
    """A destination the owner allows: how high a label it may receive, and where it is when not at its usual base."""

    ceiling: Label
    base_url: str | None = None
    concurrency: Mapping[str, int] = MappingProxyType({})
    require: Mapping[str, str] = MappingProxyType({})


class Gates(NamedTuple):
    """Bounds that hold a write or a completion for a person."""

    max_supersedes_per_session: int = 20
    instruction_files: str = "named"
    complete_requires: str = "handoff"


class Spend(NamedTuple):
    """Token limits of one destination; None is no limit."""

    session_tokens: int | None = None
    day_tokens: int | None = None


class LimitSettings(NamedTuple):
    """`[limits]`: what a session may use of the machine."""

    processes: int = 512
    memory_bytes: int = 8 << 30
    open_files: int = 4096
    file_size_bytes: int = 8 << 30
    tmp_bytes: int = 2 << 30
    wall_clock_s: float = 0.0
    """0 is no limit."""


class Notice(NamedTuple):
    """`[notice]`: how the owner is told of a task that needs a person; one of the two."""

    command: tuple[str, ...] = ()
    webhook: str | None = None


class Grants(NamedTuple):
    """The whole of `grants.toml`."""

    owner: str
    default_domain: str | None = None
    people: Mapping[str, tuple[str, ...]] = MappingProxyType({})
    """Other people who may act here, each with the OS users that may say so."""
    domains: Mapping[str, DomainGrant] = MappingProxyType({})
    destinations: Mapping[str, DestinationGrant] = MappingProxyType({})
    gates: Gates = Gates()
    spend: Mapping[str, Spend] = MappingProxyType({})
    spend_zone: str = "UTC"
    ledger_url: str | None = None
    """May hold a password."""
    ledger_space: str | None = None
    """Roots that name the same space share the tasks on a server; without one a root's tasks are its own."""
    limits: LimitSettings = LimitSettings()
    notice: Notice | None = None
    """None is to be told nothing. A webhook's address may be its secret."""

    def __repr__(self) -> str:
        """Without what may hold a password."""
        return f"Grants(owner={self.owner!r}, domains={sorted(self.domains)!r})"

    def grant(self, domain: str, principal: str) -> PrincipalGrant | None:
        """The grant of a principal in a domain: everything for the owner, else the longest matching pattern, else None."""
        found = self.domains.get(domain)
        if found is None:
            return None
        if principal in (self.owner, principals.SYSTEM):
            return PrincipalGrant(read=Label.RESTRICTED, write=True, capabilities=("code", "human"))
        matching = [pattern for pattern in found.principals if principals.matches(pattern, principal)]
        return found.principals[max(matching, key=len)] if matching else None


def load(path: Path) -> Grants:
    """Read and check `grants.toml`. Raises ConfigError: `file: key: why`."""
    top = read(path)
    owner = top.need("owner", str)
    if principals.kind(owner) != "human" or not principals.is_principal(owner):
        raise top.error("owner", f"expected human:<org>:<name>, found {owner!r}")
    people = {name: _person(top, name, table) for name, table in top.table("people").tables()}
    domains = {name: _domain(top, name, table) for name, table in top.table("grants").tables()}
    if not domains:
        raise top.error("grants", "names no domain")
    default_domain = top.take("default_domain", str)
    if default_domain is not None and default_domain not in domains:
        raise top.error("default_domain", f"{default_domain} has no [grants.{default_domain}]")
    destinations = {name: _destination(table) for name, table in top.table("destinations").tables()}
    gates = _gates(top.table("gates"))
    spend_table = top.table("spend")
    zone = spend_table.take("zone", str, "UTC") or "UTC"
    spend = {name: _spend(table) for name, table in spend_table.tables()}
    ledger = top.table("ledger")
    ledger_url = ledger.take("url", str)
    ledger_space = ledger.take("space", str)
    if ledger_space is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", ledger_space):
        raise ledger.error("space", f"expected letters, digits and . _ -, found {ledger_space!r}")
    ledger.finish()
    limits = _limits(top.table("limits"))
    if top.take("taps", dict) is not None:
        raise top.error("taps", "there are no taps yet, so nothing would heed it: leave it out")
    notice = _notice(top.table("notice"))
    top.finish()
    return Grants(
        owner=owner, default_domain=default_domain, people=people, domains=domains, destinations=destinations,
        gates=gates, spend=spend, spend_zone=zone, ledger_url=ledger_url, ledger_space=ledger_space, limits=limits,
        notice=notice,
    )  # fmt: skip


def size_bytes(text: str) -> int:
    """Read `512M`, `2G` or a bare number of bytes. Raises ValueError."""
    match = re.fullmatch(r"(\d+)([KMGT]?)", text.strip())
    if match is None:
        raise ValueError(f"expected a size such as 512M or 2G, found {text!r}")
    size = int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30, "T": 40}[match[2]]
    if size >= 1 << 63:
        raise ValueError(f"{text[:40]} is more than a machine counts: leave it out for no limit")
    return size


def size_text(size: int) -> str:
    """Write bytes as `size_bytes` reads them, in the largest unit that is exact."""
    unit = max((unit for unit in range(5) if size % (1 << 10 * unit) == 0), default=0) if size else 0
    return f"{size >> 10 * unit}{' KMGT'[unit].strip()}"


def label(text: str) -> Label:
    """Read a label. Raises ValueError that names the three."""
    try:
        return Label(text)
    except ValueError:
        raise ValueError(f"expected public, internal or restricted, found {text!r}") from None


def _person(top: Table, name: str, table: Table) -> tuple[str, ...]:
    if principals.kind(name) != "human" or not principals.is_principal(name):
        raise top.error(f"people.{name}", "expected human:<org>:<name>")
    users = table.strings("os_users")
    table.finish()
    return users


def _domain(top: Table, name: str, table: Table) -> DomainGrant:
    if not is_id("domain", name):
        raise top.error(f"grants.{name}", "expected dom-<letters, digits, hyphens>")
    granted = {pattern: _principal(found) for pattern, found in table.table("principals").tables()}
    grant = DomainGrant(
        default=table.read("default", label, Label.INTERNAL),
        admit_own=table.take("admit_own", bool, False) or False,
        transcript_retention_days=_or(table.take("transcript_retention_days", int), 30),
        contexts=_or(table.take("contexts", bool), True),
        transcripts=_or(table.take("transcripts", bool), True),
        principals=granted,
    )
    table.finish()
    return grant


def _principal(table: Table) -> PrincipalGrant:
    capabilities = table.strings("capabilities")
    if "human" in capabilities:
        raise table.error("capabilities", "'human' is what a person has; it cannot be granted")
    grant = PrincipalGrant(
        read=table.read("read", label, Label.PUBLIC),
        write=table.take("write", bool, False) or False,
        capabilities=capabilities,
        server_tools=table.strings("server_tools"),
    )
    table.finish()
    return grant


def _destination(table: Table) -> DestinationGrant:
    text = table.need("ceiling", str)
    try:
        ceiling = label(text)
    except ValueError as error:
        raise table.error("ceiling", str(error)) from error
    base_url = table.take("base_url", str)
    if base_url is not None and not re.fullmatch(r"https?://[^\s/?#@]+(/[^\s?#]*)?", base_url):
        raise table.error("base_url", f"expected http(s)://host[/path] without user, query or fragment, found {base_url!r}")
    grant = DestinationGrant(
        ceiling=ceiling,
        base_url=base_url.rstrip("/") if base_url else None,
        concurrency=_concurrency(table),
        require={key: str(value) for key, value in (table.take("require", dict) or {}).items()},
    )
    table.finish()
    return grant


def _concurrency(table: Table) -> dict[str, int]:
    values = table.take("concurrency", dict) or {}
    for name, value in values.items():
        if name not in LANES:
            raise table.error(f"concurrency.{name}", f"expected {', '.join(LANES)}")
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            raise table.error(f"concurrency.{name}", f"expected a whole number from 1, found {value!r}")
    return values


def _notice(table: Table) -> Notice | None:
    command, webhook = table.strings("command"), table.take("webhook", str)
    table.finish()
    if command and webhook:
        raise table.error("webhook", "a command is named as well: choose one")
    if webhook is not None and not re.fullmatch(r"https?://[^\s/?#@]+(/[^\s#]*)?", webhook):
        raise table.error("webhook", "expected http(s)://host/path without user or fragment")
    return Notice(command, webhook) if command or webhook else None


def _gates(table: Table) -> Gates:
    gates = Gates(
        max_supersedes_per_session=_or(table.take("max_supersedes_per_session", int), 20),
        instruction_files=_one_of(table, "instruction_files", ("named", "approved")),
        complete_requires=_one_of(table, "complete_requires", ("handoff", "check")),
    )
    table.finish()
    return gates


def _spend(table: Table) -> Spend:
    spend = Spend(session_tokens=table.take("session_tokens", int), day_tokens=table.take("day_tokens", int))
    table.finish()
    return spend


def _limits(table: Table) -> LimitSettings:
    from amem.model.clock import duration_s

    usual = LimitSettings()
    limits = LimitSettings(
        processes=_or(table.take("processes", int), usual.processes),
        memory_bytes=table.read("memory", size_bytes, usual.memory_bytes),
        open_files=_or(table.take("open_files", int), usual.open_files),
        file_size_bytes=table.read("file_size", size_bytes, usual.file_size_bytes),
        tmp_bytes=table.read("tmp", size_bytes, usual.tmp_bytes),
        wall_clock_s=table.read("wall_clock", duration_s, usual.wall_clock_s),
    )
    table.finish()
    return limits


def _one_of(table: Table, key: str, words: tuple[str, ...]) -> str:
    value = table.take(key, str, words[0])
    if value not in words:
        raise table.error(key, f"expected {' or '.join(words)}, found {value!r}")
    return value


def _or(value: T | None, default: T) -> T:
    return default if value is None else value
