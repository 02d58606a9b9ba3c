"""What was asked, checked against the root's settings: every refusal of a launch stands here, before anything starts."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from amem.egress import destinations
from amem.errors import ConfigError, UnavailableError, UsageError
from amem.harnesses import registry
from amem.harnesses.base import Auth, Harness
from amem.model.label import Label, highest
from amem.sandbox.spec import SYSTEM_PLACES, Bind, Limits
from amem.settings.credentials import Credentials, Secret
from amem.settings.grants import Grants, LimitSettings
from amem.settings.root import Root, near

PORT = 7431
"""The loopback port inside every sandbox; each has a network namespace of its own, so one number serves all."""

GATEWAY = "llmao"


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One `amem launch`, as typed. None and empty mean: not said."""

    harness: str | None
    auth: str | None = None
    provider: str | None = None
    model: str | None = None
    prompt: str | None = None
    args: tuple[str, ...] = ()
    subagents: str = "harness"
    no_handoff: bool = False
    backend: str = "auto"
    domain: str | None = None
    label: Label | None = None
    workdir: str = "."
    read_only: tuple[str, ...] = ()
    read_write: tuple[str, ...] = ()
    timeout_s: float = 0.0
    limits: Mapping[str, int] | None = None
    session_id: str | None = None
    git_config_writable: bool = False
    config_writes: bool = False
    interactive: bool = False
    """A person's terminal is on stdin and stdout, and there is no prompt."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A launch that may start."""

    harness: Harness
    binary: str
    auth: Auth
    destination: str
    base_url: str
    credential: Secret | None
    model: str | None
    domain: str
    principal: str
    label: Label
    ceiling: Label
    handling: Label
    workdir: Path
    binds: tuple[Bind, ...]
    limits: Limits
    timeout_s: float


def plan(asked: Asked, root: Root, grants: Grants, credentials: Credentials, environment: Mapping[str, str], domain: str) -> Plan:
    """Resolve what was asked. Raises UsageError, ConfigError or UnavailableError, each with the sentence that helps."""
    harness = _harness(asked)
    auth = _auth(asked, harness)
    destination = _destination(asked, harness, auth)
    if auth is Auth.GATEWAY and asked.model is None and harness.name != "command":
        raise UsageError("--auth gateway needs --model: a gateway serves the models it was given", hint="amem launch --help")
    granted = grants.destinations.get(destination)
    if granted is None:
        close = near(destination, tuple(grants.destinations))
        raise ConfigError(f"{root.grants}: destinations: {destination} is not named, so nothing may be sent there{close}",
                          hint=f"add [destinations.{destination}] with a ceiling")  # fmt: skip
    principal = f"agent:{harness.name}"
    grant = grants.grant(domain, principal)
    if grant is None:
        raise ConfigError(f"{root.grants}: grants.{domain}: no pattern covers {principal}: no access", hint="amem doctor --config")
    workdir = tree(asked.workdir, root, environment)
    limit = asked.limits or {}
    return Plan(
        harness=harness,
        auth=auth,
        destination=destination,
        base_url=_base_url(destination, granted.base_url, credentials),
        credential=_credential(destination, auth, credentials, root),
        binary=_binary(harness, asked, environment),
        model=asked.model,
        domain=domain,
        principal=principal,
        label=highest([asked.label or Label.PUBLIC]),
        ceiling=granted.ceiling,
        handling=grant.read,
        workdir=workdir,
        binds=tuple(_extra(path, root, environment, writable=False) for path in asked.read_only)
        + tuple(_extra(path, root, environment, writable=True) for path in asked.read_write),
        limits=_limits(grants.limits, limit),
        timeout_s=asked.timeout_s or grants.limits.wall_clock_s,
    )


def tree(asked: str, root: Root, environment: Mapping[str, str]) -> Path:
    """The work tree, absolute. Refused where writing to it would open the root, the home or the machine."""
    path = Path(os.path.realpath(os.path.expanduser(asked)))
    if not path.is_dir():
        raise UsageError(f"--workdir {asked}: there is no such directory", hint="amem launch --help")
    _open_to_writing(path, "--workdir", root, environment)
    return path


def _open_to_writing(path: Path, flag: str, root: Root, environment: Mapping[str, str]) -> None:
    """Refuse a writable path that holds, or lies in, what a session must not write."""
    root_path = Path(os.path.realpath(root.path))
    if path == Path("/"):
        raise UsageError(f"{flag} /: a session may not write the whole machine", hint="cd into a project first")
    if root_path.is_relative_to(path) or path.is_relative_to(root_path):
        raise UsageError(f"{flag} {path}: it holds or lies in the root {root_path}; a session could write the record and the keys",
                         hint="cd into a project first")  # fmt: skip
    home = environment.get("HOME")
    if home and Path(os.path.realpath(home)).is_relative_to(path):
        raise UsageError(f"{flag} {path}: it holds your home, with your keys and logins", hint="cd into a project first")
    for system in SYSTEM_PLACES:
        if path.is_relative_to(os.path.realpath(system)):
            raise UsageError(f"{flag} {path}: it lies in {system}, which stays read-only or hidden", hint="cd into a project first")


def _extra(asked: str, root: Root, environment: Mapping[str, str], *, writable: bool) -> Bind:
    path = Path(os.path.realpath(os.path.expanduser(asked)))
    flag = "--rw" if writable else "--ro"
    if not path.exists():
        raise UsageError(f"{flag} {asked}: there is no such path", hint="amem launch --help")
    if writable:
        _open_to_writing(path, flag, root, environment)
    elif Path(os.path.realpath(root.path)).is_relative_to(path) or path.is_relative_to(os.path.realpath(root.path)):
        raise UsageError(f"--ro {path}: it would show the root, with its keys, to the session", hint="amem launch --help")
    return Bind(str(path), str(path), writable)


def _harness(asked: Asked) -> Harness:
    if not asked.harness:
        raise UsageError(f"which harness? --harness takes {', '.join(registry.names())}", hint="make launch HARNESS=claude")
    return registry.load(asked.harness)


def _auth(asked: Asked, harness: Harness) -> Auth:
    if asked.auth is None:
        return harness.auth[0]
    if asked.auth not in harness.auth:
        modes = ", ".join(harness.auth)
        what = f"{harness.name} cannot use --auth {asked.auth}" if asked.auth in list(Auth) else f"--auth {asked.auth}: no such mode"
        raise UsageError(f"{what}; {harness.name} takes {modes}", hint=f"amem launch --harness {harness.name} --auth {harness.auth[0]}")
    return Auth(asked.auth)


def _destination(asked: Asked, harness: Harness, auth: Auth) -> str:
    if auth is Auth.GATEWAY:
        if asked.provider not in (None, GATEWAY):
            raise UsageError(f"--provider {asked.provider}: with --auth gateway the destination is {GATEWAY}", hint="leave --provider out")
        return GATEWAY
    known = harness.destinations
    if asked.provider is None:
        return known[0]
    if asked.provider not in destinations.DESTINATIONS:
        close = near(asked.provider, tuple(destinations.DESTINATIONS))
        raise UsageError(f"--provider {asked.provider}: no such destination{close}", hint="amem launch --help")
    if asked.provider not in known:
        raise UsageError(f"{harness.name} cannot speak to {asked.provider}; it takes {', '.join(known)}", hint="amem launch --help")
    return asked.provider


def _base_url(destination: str, granted: str | None, credentials: Credentials) -> str:
    row = destinations.DESTINATIONS[destination]
    named = credentials.text(row.base_url_env) if row.base_url_env else None
    base = granted or named or row.base_url
    if base is None:
        raise ConfigError(f"destinations.{destination}: base_url: is required; it has none of its own", hint="amem doctor --config")
    return base.rstrip("/")


def _credential(destination: str, auth: Auth, credentials: Credentials, root: Root) -> Secret | None:
    if auth is Auth.SUBSCRIPTION:
        return None
    row = destinations.DESTINATIONS[destination]
    found = credentials.find(row.key_env)
    if found is None:
        raise UnavailableError(f"no key for {destination}: {row.key_env} is neither in the environment nor in {root.credentials}",
                               hint=f"echo {row.key_env}=… >> {root.credentials}")  # fmt: skip
    return found


def _binary(harness: Harness, asked: Asked, environment: Mapping[str, str]) -> str:
    found = registry.find_binary(harness, environment, asked.args)
    if found is None:
        program = harness.binary or "program"
        raise UnavailableError(f"{harness.name} is not installed: no {program} on PATH or in amem's cache", hint=harness.install_hint)
    return found


def _limits(usual: LimitSettings, asked: Mapping[str, int]) -> Limits:
    limits = Limits(usual.processes, usual.memory_bytes, usual.open_files, usual.file_size_bytes, usual.tmp_bytes)
    return limits._replace(**asked)


def at_label(found: Plan, label: Label) -> Plan:
    """The same plan with the session starting at `label` or higher."""
    return replace(found, label=highest([found.label, label]))
