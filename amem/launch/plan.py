"""What was asked, checked against the root's settings: every refusal of a launch stands here, before anything starts."""

import os
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from amem.egress import routes, way
from amem.egress.routes import Route
from amem.errors import ConfigError, UnavailableError, UsageError
from amem.harnesses import registry
from amem.harnesses.base import Auth, Choice, Harness, choose, newer, outdated
from amem.launch import backends, shown, trees
from amem.launch.backends import Backend
from amem.launch.care import Place, place, protected
from amem.model.call import Dialect
from amem.model.label import Label
from amem.sandbox.spec import Bind, Limits, is_below
from amem.settings.credentials import Credentials, Secret
from amem.settings.grants import Grants, LimitSettings, size_text
from amem.settings.root import Root
from amem.typed import NamedTuple

LEAST = (
    ("processes", 4, "--max-procs"),
    ("memory_bytes", 32 << 20, "--max-memory"),
    ("open_files", 16, "--max-files"),
    ("file_size_bytes", 1, "--max-file-size"),
    ("tmp_bytes", 1 << 20, "--max-tmp"),
)
"""What a limit may not be below, and the flag that sets it."""
PORT = 7431
"""The loopback port inside every sandbox; each has a network namespace of its own, so one number serves all."""


class Asked(NamedTuple):
    """One `amem launch`, as typed. None and empty mean: not said."""

    harness: str | None
    auth: str | None = None
    provider: str | None = None
    server_auth: str | None = None
    server_provider: str | None = None
    """The credential and destination of amem's own calls, where they do not follow the harness's."""
    model: str | None = None
    prompt: str | None = None
    args: tuple[str, ...] = ()
    subagents: str = "harness"
    no_handoff: bool = False
    backend: str = "auto"
    dry_run: bool = False
    """Nothing will be started, so a backend that this machine lacks may be asked what it would run."""
    domain: str | None = None
    label: Label | None = None
    workdir: str = "."
    read_only: tuple[str, ...] = ()
    read_write: tuple[str, ...] = ()
    ports: tuple[int, ...] = ()
    """Ports inside that are reached on the host's loopback."""
    host_ports: tuple[int, ...] = ()
    """Ports of the host's loopback that are reached inside."""
    timeout_s: float = 0.0
    limits: Mapping[str, int] = MappingProxyType({})
    session_id: str | None = None
    git_config_writable: bool = False
    config_writable: bool = False
    """A session may write what harnesses and editors configure themselves by."""
    traces: bool = False
    """Programs of the session may trace each other."""
    snapshot: bool = False
    """Keep the tree from before and after the session."""
    only_shown: bool = False
    """The session may write nothing but its home."""
    interactive: bool = False
    """A person's terminal is on stdin and stdout, and there is no prompt."""


class Plan(NamedTuple):
    """A launch that may start."""

    harness: Harness
    backend: Backend
    image: str | None
    """Host path of the image whose programs are shown."""
    program: registry.Program
    auth: Auth
    destination: str
    routes: Mapping[Dialect, Route]
    credential: Secret | None
    own: way.Way | None
    """Where amem's own calls of this session go; None where it makes none."""
    unserved: str
    """Why no model call of this session is let out; empty where they are."""
    model: str | None
    args: tuple[str, ...]
    """What follows the harness's own arguments."""
    domain: str
    principal: str
    label: Label
    ceiling: Label
    handling: Label
    server_tools: tuple[str, ...]
    """What the grant lets the provider do for the harness."""
    place: Place
    """The work tree, and where in it the harness starts."""
    binds: tuple[Bind, ...]
    interpreter: tuple[Bind, ...]
    """What runs the hooks, where that is this machine's Python."""
    limits: Limits
    timeout_s: float

    @property
    def shown(self) -> tuple[str, ...]:
        """The host's paths of the owner's that it sees, whole."""
        return (self.place.workdir, *(bind.source for bind in self.binds))

    @property
    def read(self) -> tuple[str, ...]:
        """The host's paths of the owner's, beside the work tree, that it sees and cannot write."""
        sources = (bind.source for bind in self.binds if not bind.writable)
        return tuple(path for path in sources if not is_below(path, self.place.workdir))

    @property
    def writable(self) -> tuple[str, ...]:
        """The host paths a session may write, its home apart."""
        return (self.place.workdir, *(bind.source for bind in self.binds if bind.writable))

    @property
    def workdir(self) -> Path:
        """The work tree."""
        return Path(self.place.workdir)


def named(asked: Asked) -> Harness:
    """The harness that was named. There is no default, so that a launch never starts the wrong one. Raises UsageError."""
    if not asked.harness:
        raise UsageError(f"which harness? --harness takes {', '.join(registry.names())}", hint="add --harness claude")
    return registry.load(asked.harness)


def plan(asked: Asked, root: Root, grants: Grants, credentials: Credentials, environment: Mapping[str, str], domain: str) -> Plan:
    """Resolve what was asked. Raises UsageError, ConfigError or UnavailableError, each with the sentence that helps."""
    harness = named(asked)
    choice = choose(harness, auth=asked.auth, destination=asked.provider)
    principal = f"agent:{harness.name}"
    grant = grants.grant(domain, principal)
    if grant is None:
        raise ConfigError(f"{root.grants}: grants.{domain}: no pattern covers {principal}: no access", hint="amem doctor --config")
    backend, image, program = _backend(harness, asked, root, environment)
    table = routes.table(choice.destination, choice.auth, grants, credentials)
    credential, unserved = _credential(harness, asked, choice, credentials)
    where = place_of(asked.workdir, root, environment)
    binds = _extras(asked, where, root, environment)
    _check_ports(asked)
    return Plan(
        harness=harness,
        backend=backend,
        image=image,
        program=program,
        auth=choice.auth,
        destination=choice.destination,
        routes={} if unserved else table,
        credential=credential,
        own=_own(asked, choice, grants, credentials, served=not unserved),
        unserved=unserved,
        model=asked.model,
        args=() if harness.name == "command" else asked.args,
        domain=domain,
        principal=principal,
        label=trees.label(root, (where.workdir, *(bind.source for bind in binds)), floor=asked.label or Label.PUBLIC),
        ceiling=grants.destinations[choice.destination].ceiling,
        handling=grant.read,
        server_tools=grant.server_tools,
        place=where,
        binds=binds,
        interpreter=shown.interpreter(root, environment) if backend.confined and not backend.image else (),
        limits=_limits(grants.limits, asked.limits),
        timeout_s=asked.timeout_s or grants.limits.wall_clock_s,
    )


def tree(asked: str, root: Root, environment: Mapping[str, str]) -> Path:
    """The work tree, absolute. Refused where writing to it would open the root, the home or the machine."""
    path = Path(os.path.realpath(os.path.expanduser(asked)))
    if not path.is_dir():
        raise UsageError(f"--workdir {asked}: there is no such directory", hint="amem launch --help")
    if not os.access(path, os.R_OK | os.X_OK):
        raise UsageError(f"--workdir {asked}: you may not look into it", hint=f"ls -ld {path}")
    shown.check_writable(path, "--workdir", root, environment)
    return path


def place_of(asked: str, root: Root, environment: Mapping[str, str]) -> Place:
    """The work tree for `--workdir`: the repository around it where a session may write that (not a home that is one), else it alone.

    Raises UsageError for a directory that no session may write.
    """
    path = tree(asked, root, environment)
    found = place(str(path))
    if found.workdir == str(path):
        return found
    try:
        shown.check_writable(Path(found.workdir), "--workdir", root, environment)
    except UsageError:
        return Place(str(path), str(path))
    return found


def _backend(harness: Harness, asked: Asked, root: Root, environment: Mapping[str, str]) -> tuple[Backend, str | None, registry.Program]:
    """The backend asked for, or by itself the image where one was unpacked that has the harness, else this machine's programs."""
    image = backends.image(root) if asked.backend in ("auto", "image") else None
    backend = backends.BACKENDS.get(asked.backend) or backends.BACKENDS["namespaces"]
    if not asked.dry_run:
        backends.start(backend)
    if asked.only_shown and not backend.confined:
        raise UsageError("a session that may only look needs a sandbox", hint="amem work --help")
    if (asked.ports or asked.host_ports) and backend.door != backends.INSIDE:
        raise UsageError(f"--port and --host-port: not with --backend {backend.name}, which passes no sockets", hint="amem launch --help")
    if asked.backend == "image" and image is None:
        raise UnavailableError(f"--backend image: no harness image was unpacked under {root.path}", hint="make image unpack")
    if image is not None:
        from amem.launch.images import find_program

        found = _command(asked) if harness.name == "command" else find_program(image, harness)
        if found is not None:
            return backends.BACKENDS["image"], image, found
        if asked.backend == "image":
            raise UnavailableError(f"--backend image: the image has no {harness.name}", hint=f"make image HARNESS={harness.name}")
    if backend.image:  # the container's own
        return (
            backend,
            None,
            _command(asked) if harness.name == "command" else registry.Program(argv=(harness.binary,), roots=(), pinned=None),
        )
    return backend, None, _program(harness, asked, root, environment)


def _command(asked: Asked) -> registry.Program:
    if not asked.args:
        raise UsageError("--harness command runs a program: name it after --", hint="amem launch --harness command -- python3 agent.py")
    return registry.Program(argv=asked.args, roots=(), pinned=None)


def _program(harness: Harness, asked: Asked, root: Root, environment: Mapping[str, str]) -> registry.Program:
    if harness.name == "command":
        return _command(asked)
    found = find_program(harness, environment)
    if found is None:
        raise UnavailableError(f"{harness.name} is not installed: no {harness.binary} on PATH or in amem's cache", hint=harness.install)
    if (why := outdated(harness, version_of(found))) is not None:
        found = find_program(harness, {**environment, "PATH": ""})
        if found is None:
            raise UnavailableError(why, hint=harness.install)
    for folder in map(Path, found.roots):
        shown.check_program(folder, found.argv[-1], harness.install, root, environment)
    return found


def find_program(harness: Harness, environment: Mapping[str, str]) -> registry.Program | None:
    """The harness on this machine: on PATH, else in the folder that `make harnesses` installs into."""
    cache = os.path.join(environment.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "amem", "harnesses")
    return registry.find(harness, path=environment.get("PATH", ""), cache=cache, machine=os.uname().machine, resolve=_resolve)


def version_of(program: registry.Program) -> str:
    """The version of a program, by its package or by its own file's name; empty where neither tells it. Nothing is run."""
    if program.pinned is not None:
        return program.pinned
    path = registry.manifest(program.argv[-1])
    if path is None:
        name = os.path.basename(program.argv[-1])
        return name if name[:1].isdigit() else ""
    try:
        import json

        with open(path, encoding="utf-8") as file:
            return str(json.load(file)["version"])
    except (OSError, ValueError, LookupError, TypeError):
        return ""


def beyond(harness: Harness, version: str) -> str | None:
    """What to say of a program that is newer than amem knows; None when it is not."""
    pin = registry.pins().get(harness.name)
    return newer(harness, version, pin.version) if pin is not None else None


def _resolve(path: str) -> str | None:
    """The real path of a program, or of a script that Node runs.

    A link that leads out of the tree that it lies in is none: a session can have put it there, to have the next one shown what it leads to.
    """
    real = os.path.realpath(path)
    if not os.path.isfile(real) or ((tree := _tree_around(os.path.dirname(path))) is not None and not is_below(real, tree)):
        return None
    return real if os.access(real, os.X_OK) or real.endswith((".js", ".mjs", ".cjs")) else None


def _tree_around(folder: str) -> str | None:
    """The repository around a folder of the search path, else the environment or the packages that it is the folder of programs of."""
    holder = None
    while folder.strip("/"):
        if os.path.lexists(f"{folder}/.git"):
            return os.path.realpath(folder)
        above = os.path.dirname(folder)
        if holder is None and os.path.basename(folder) == "node_modules":
            holder = above
        elif holder is None and os.path.lexists(f"{folder}/pyvenv.cfg"):
            holder = folder
        folder = above
    return None if holder is None else os.path.realpath(holder)


def _credential(harness: Harness, asked: Asked, choice: Choice, credentials: Credentials) -> tuple[Secret | None, str]:
    """The key of the harness's calls, and why it has no destination for any. Raises UnavailableError where it wants one."""
    try:
        return routes.credential(choice.destination, choice.auth, credentials), ""
    except UnavailableError as missing:
        if not harness.keyless or (asked.auth, asked.provider, asked.model) != (None, None, None):
            raise
        return None, missing.message


def _own(asked: Asked, choice: Choice, grants: Grants, credentials: Credentials, *, served: bool) -> way.Way | None:
    """The way of amem's own calls, which are refused here rather than in the middle of a session."""
    server_auth = asked.server_auth or (credentials.text("SERVER_AUTH") if asked.server_provider is None else None)
    server_provider = asked.server_provider or (credentials.text("SERVER_PROVIDER") if asked.server_auth is None else None)
    found = way.of_session(server_auth, server_provider, auth=choice.auth, destination=choice.destination)
    if not served and not (server_auth or server_provider):
        return None
    if found is not None and (not served or found != (choice.destination, choice.auth)):
        routes.table(found.destination, found.auth, grants, credentials)
        routes.credential(found.destination, found.auth, credentials)
    return found


def _extras(asked: Asked, where: Place, root: Root, environment: Mapping[str, str]) -> tuple[Bind, ...]:
    """The paths of `--ro` and `--rw`, each once. Raises UsageError."""
    found: dict[str, Bind] = {}
    for flag, paths in (("--ro", asked.read_only), ("--rw", asked.read_write)):
        for path in paths:
            if os.path.realpath(os.path.expanduser(path)) == where.workdir:
                raise UsageError(f"{flag} {path}: it is the work tree, which the session may write", hint=f"leave {flag} {path} out")
            bind = shown.extra(path, root, environment, writable=flag == "--rw")
            for name in protected(where, git_config=True, config=asked.config_writable) if bind.writable else ():
                if is_below(bind.target, f"{where.workdir}/{name}"):
                    raise UsageError(f"--rw {path}: {name} of the work tree is read-only inside", hint="--allow-config-writes")
            if found.setdefault(bind.target, bind) != bind:
                raise UsageError(f"--rw {path}: --ro names it too", hint="amem launch --help")
    return tuple(found.values())


def _check_ports(asked: Asked) -> None:
    """Raises UsageError: a port inside is one thing, the session's, this machine's or the egress's."""
    taken = {PORT: "the session's own egress is there"}
    for flag, ports in (("--port", asked.ports), ("--host-port", asked.host_ports)):
        for port in ports:
            if port in taken:
                raise UsageError(f"{flag} {port}: {taken[port]}", hint=f"leave {flag} {port} out")
            taken[port] = f"{flag} names it already"


def _limits(usual: LimitSettings, asked: Mapping[str, int]) -> Limits:
    """The limits of this launch. Raises UsageError for one that no program could live in."""
    found = Limits(usual.processes, usual.memory_bytes, usual.open_files, usual.file_size_bytes, usual.tmp_bytes)._replace(**asked)
    for name, least, flag in LEAST:
        if getattr(found, name) < least:
            key = name.removesuffix("_bytes")
            given, needed = (size_text(amount) if key != name else str(amount) for amount in (getattr(found, name), least))
            raise UsageError(f"{flag} {given}: no program starts with less than {needed} ([limits] {key})", hint=f"{flag} {needed}")
    return found
