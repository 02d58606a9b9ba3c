"""What a sandbox shall contain: values, and the pure functions that help to fill them.

Owns the words `SandboxSpec`, `Bind` and `Limits`. Does no I/O: what the host looks like comes in as `plan.HostFacts`.
NamedTuples, because the launcher imports this before the stage may start.
"""

import posixpath

from amem.typed import Any, Mapping, NamedTuple

MIB = 1 << 20
GIB = 1 << 30

MOST_PORTS = 16
"""Ports of the host that one session may have."""
SOCKETS = 64
"""Connections to ports inside at one time."""

GIT_NAMES = (".git/hooks", ".git/config", ".git/config.worktree", ".git/info/attributes")
"""What the host's own git would run or obey."""

CONFIG_NAMES = (
    ".claude",
    ".codex",
    ".gemini",
    ".qwen",
    ".grok",
    ".opencode",
    ".pi",
    ".muse",
    ".agents",
    "opencode.json",
    ".mcp.json",
    ".cursor",
    ".vscode",
    ".idea",
    ".zed",
    ".windsurf",
    ".kiro",
    ".continue",
    ".aider.conf.yml",
    ".exrc",
    ".nvimrc",
    ".nvim.lua",
    ".dir-locals.el",
    ".dir-locals-2.el",
    ".helix",
    ".devcontainer",
    ".envrc",
    ".husky",
    ".jj/repo/config.toml",
)
"""By what a harness, an editor or a shell on the host configures itself. `--allow-config-writes` leaves these out."""

PROTECT = GIT_NAMES + CONFIG_NAMES
"""Names below a work tree that are read-only inside when they exist. One that does not is never made; `worktree.marks` sees it."""

HOME = "/home/agent"
"""The private home inside."""

PATH = "/opt/memory:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""The search path inside; `memory`, the hook program, is first."""

PASSED = (
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "FORCE_COLOR",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LC_TIME",
    "LC_COLLATE",
    "LC_NUMERIC",
    "LC_MONETARY",
    "LC_PAPER",
    "LC_NAME",
    "LC_ADDRESS",
    "LC_TELEPHONE",
    "LC_MEASUREMENT",
    "LC_IDENTIFICATION",
    "TZ",
    "COLUMNS",
    "LINES",
    "TERM_PROGRAM",
    "TERM_PROGRAM_VERSION",
)
"""The caller's variables that may come along. None can hold a secret, load code or point git at another configuration."""

CONFINED = {
    "npm_config_fetch_retries": "0",
    "pnpm_config_fetch_retries": "0",
    "PIP_RETRIES": "0",
    "UV_HTTP_RETRIES": "0",
    "POETRY_REQUESTS_MAX_RETRIES": "0",
    "CARGO_NET_RETRY": "0",
    "FAKEROOTDONTTRYCHOWN": "1",
}
"""What programs would find out by waiting: that there is no network (npm asks for more than a minute); or not at all: that an owner who
does not exist inside is EINVAL to chown(2), where fakeroot expects EPERM."""

CODE_LOADING = ("LD_", "GIT_", "BASH_ENV", "BASH_FUNC_", "PYTHONSTARTUP", "PERL5", "RUBYOPT", "SSH_", "DBUS_", "XDG_RUNTIME")
"""Beginnings of names that are refused even from the launcher, save for those of git below."""

GIT_IDENTITY_NAMES = (
    "GIT_AUTHOR_NAME",
    "GIT_AUTHOR_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_COMMITTER_EMAIL",
    "GIT_TERMINAL_PROMPT",
    "GIT_OPTIONAL_LOCKS",
    "GIT_EDITOR",
    "GIT_PAGER",
)


class Bind(NamedTuple):
    """A host path shown inside."""

    source: str
    """Host path; its symlinks are resolved by the kernel on the host."""
    target: str
    """Path inside."""
    writable: bool = False
    real: bool = False
    """`source` was checked with its links resolved: where a link has come into it since, it is refused."""


class Limits(NamedTuple):
    """Bounds of one session. Memory is per process (RLIMIT_DATA) unless a cgroup holds the whole."""

    processes: int = 512
    memory_bytes: int = 8 * GIB
    open_files: int = 4096
    file_size_bytes: int = 8 * GIB
    tmp_bytes: int = 2 * GIB


class Identity(NamedTuple):
    """Who git says wrote a commit inside. Never a credential."""

    name: str
    email: str


class Tree(NamedTuple):
    """What the work tree is to git; `worktree.look` finds it out and checks it."""

    kind: str = "none"
    """none, plain, linked, submodule, bare, or file (a `.git` file that is none of these)."""
    names: tuple[str, ...] = ()
    """Names below the work tree to protect besides the spec's."""
    pins: tuple[str, ...] = ()
    """Folders below the work tree that must stay where they are."""
    common: str | None = None
    """Host path of a git directory outside the work tree that it needs (checked to point back)."""
    common_names: tuple[str, ...] = ()
    """Names below `common` to protect."""
    warning: str = ""
    """Why git will not work inside; empty when it will."""

    @property
    def git_dirs(self) -> frozenset[str]:
        """The git directories below the work tree, itself a repository, by what is protected in them."""
        inner = (".git/modules/", ".git/worktrees/")
        modules = (name.removesuffix("/config") for name in self.names if name.startswith(inner) and name.endswith("/config"))
        return frozenset((".git", *modules)) if self.kind == "plain" else frozenset()


class SandboxSpec(NamedTuple):
    """Everything the launcher decides about one sandbox."""

    argv: tuple[str, ...]
    """Program and arguments, by their names inside; a program without a slash is looked up in the PATH of `env`."""
    env: tuple[tuple[str, str], ...]
    """The whole environment inside. Nothing is inherited."""
    workdir: str
    """Host path of the work tree, without a link in it; at the same path inside, writable but for `read_only`."""
    cwd: str
    """Inside path to start in: the work tree or below."""
    home: str
    """Host path of the private home."""
    port: int
    """127.0.0.1:port listens inside; the listening descriptor comes out."""
    home_inside: str = HOME
    memory_dir: str | None = None
    """Host directory shown read-only at /opt/memory; holds `memory`, the hook program."""
    binds: tuple[Bind, ...] = ()
    """The interpreter, the harness, what the owner adds."""
    interactive: bool = False
    limits: Limits = Limits()
    hostname: str = "amem"
    allow_ptrace: bool = False
    protect: tuple[str, ...] = PROTECT
    """Names below the work tree that are read-only where they exist. Nothing is created for one that does not."""
    added: tuple[tuple[str, str, str], ...] = ()
    """Folders below the work tree, each with a file that it shall have inside, where it is read-only and lacks it, and what is in that."""
    hidden: tuple[str, ...] = ()
    """Host paths that lie in the work tree or another bind and are covered inside: the root of amem, a folder of keys."""
    user_id: int = 1000
    """User and group id inside; never 0."""
    user_name: str = "agent"
    git: Identity | None = None
    ports: tuple[int, ...] = ()
    """Ports inside that the launcher connects to; with any, unconnected sockets of the inside come out."""
    host_ports: tuple[int, ...] = ()
    """Ports that listen inside, and whose listening descriptors come out, for services of the host."""
    read_only: bool = False
    """The work tree, its git directory and every bind are only shown."""
    listens: bool = True
    """The listener is made inside and comes out; without it, a relay inside binds the port."""
    image: str | None = None
    """Host path of an unpacked image, whose programs are shown in place of the host's."""
    moved: bool = False
    """A service manager puts the session into a cgroup of its own while it is made, whose place on the host is not shown inside."""


def plain(value: Any) -> Any:
    """A spec, or a part of one, with tuples for its values: what marshal can carry."""
    return tuple(map(plain, value)) if isinstance(value, tuple) else value


def restored(value: Any) -> SandboxSpec:
    """The spec that `plain` made this of."""
    spec = SandboxSpec(*value)
    git = Identity(*spec.git) if spec.git is not None else None
    return spec._replace(binds=tuple(Bind(*bind) for bind in spec.binds), limits=Limits(*spec.limits), git=git)


def problems(spec: SandboxSpec) -> tuple[str, ...]:
    """Say what is wrong with a spec, in sentences; an empty tuple when nothing is."""
    found: list[str] = []
    paths = {"workdir": spec.workdir, "cwd": spec.cwd, "home": spec.home, "home_inside": spec.home_inside}
    if spec.memory_dir is not None:
        paths["memory_dir"] = spec.memory_dir
    for bind in spec.binds:
        paths[f"bind source {bind.source!r}"] = bind.source
        paths[f"bind target {bind.target!r}"] = bind.target
    if spec.image is not None:
        paths["image"] = spec.image
    for hidden in spec.hidden:
        paths[f"hidden {hidden!r}"] = hidden
    found += [f"{name} must be an absolute path without '..' or a doubled slash" for name, path in paths.items() if not _is_plain(path)]
    if not spec.argv or not spec.argv[0]:
        found.append("argv names no program")
    if any("\0" in text for text in (*spec.argv, *(part for pair in spec.env for part in pair))):
        found.append("a NUL byte in argv or env")
    found += [f"env name {name!r} is not allowed" for name, _ in spec.env if not name or "=" in name or _loads_code(name)]
    if not 0 < spec.port < 65536:
        found.append("port must be 1..65535")
    opened = (spec.port, *spec.ports, *spec.host_ports)
    if len(set(opened)) < len(opened) or any(not 0 < port < 65536 for port in opened):
        found.append(f"a port must be 1..65535, named once, and not {spec.port}, where the session's own egress is")
    if len(spec.host_ports) > MOST_PORTS:
        found.append(f"more than {MOST_PORTS} ports of the host")
    if not 0 < spec.user_id < 2**31:
        found.append("user_id must be above 0")
    if not spec.user_name.isidentifier() or not spec.user_name.isascii():
        found.append("user_name must be one plain word")
    if not spec.hostname.replace("-", "").isalnum() or not spec.hostname.isascii() or len(spec.hostname) > 63:
        found.append("hostname must be letters, digits and dashes")
    if not is_below(spec.cwd, spec.workdir):
        found.append("cwd must be the work tree or below it")
    writable = [("workdir", spec.workdir), ("home_inside", spec.home_inside)]
    writable += [(f"bind target {bind.target!r}", bind.target) for bind in spec.binds if bind.writable]
    for where, path in writable:
        if path == "/" or any(is_below(path, place) or is_below(place, path) for place in SYSTEM_PLACES):
            found.append(f"{where} may not be {path!r}: the sandbox has its own")
    for bind in spec.binds:
        if bind.target == "/" or any(is_below(bind.target, place) for place in MADE_PLACES):
            found.append(f"bind target may not be {bind.target!r}: the sandbox makes that itself")
    for name in (*spec.protect, *(f"{folder}/{file}" for folder, file, _ in spec.added)):
        if not name or name.startswith("/") or not _is_plain("/" + name):
            found.append(f"protected name {name!r} must lie below the work tree")
    if any(number <= 0 for number in spec.limits):
        found.append("limits must be above 0")
    if spec.git is not None and any(not part.isprintable() or any(mark in part for mark in '"\\<>') for part in spec.git):
        found.append("the git identity has characters git would not keep")
    return tuple(found)


SYSTEM_PLACES = (
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/proc",
    "/sys",
    "/dev",
    "/boot",
    "/opt/memory",
    "/nix",
)
"""Nothing writable may lie at, above or below these."""

MADE_PLACES = ("/proc", "/sys", "/dev", "/etc", "/opt/memory")
"""The sandbox makes these; no bind may lie in them."""


def is_below(path: str, folder: str) -> bool:
    """Is `path` the folder itself or inside it? By name only."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def interpreter_binds(executable: str, *prefixes: str) -> tuple[Bind, ...]:
    """The read-only binds that let `executable`, installed below these prefixes, run inside at its own path.

    RPATH and pyvenv.cfg hold absolute names, so source and target are equal. What /usr already holds needs no bind; a folder inside
    another one of the list is covered by it. `executable` may be a link out of its prefix; its folder is bound only when none holds it.
    """
    folders = [path for path in prefixes if not is_below(path, "/usr") and not is_below(path, "/nix/store")]
    here = posixpath.dirname(executable)
    if not any(is_below(here, path) for path in (*folders, "/usr", "/bin", "/nix/store")):
        folders.append(here)
    kept = [path for path in dict.fromkeys(folders) if path != "/" and not any(is_below(path, other) for other in folders if other != path)]
    return tuple(Bind(path, path) for path in kept)


def own_paths(tree: str, *own: str) -> tuple[Bind, ...]:
    """Read-only binds for the parts of amem itself that lie in a writable tree, so that nothing inside can rewrite it.

    `own` are the folders that amem runs from, with their links resolved: its package, what the package links to, the environment it is
    installed in.
    """
    folders = [path for path in dict.fromkeys(own) if is_below(path, tree) and path != tree]
    kept = [path for path in folders if not any(is_below(path, other) for other in folders if other != path)]
    return tuple(Bind(path, path) for path in kept)


def base_env(caller: Mapping[str, str], spec_home: str, user_name: str, path: str = PATH, shell: str = "/bin/bash") -> dict[str, str]:
    """The start of an environment for inside: the few names of the caller that may pass, and what every program expects."""
    made = {name: caller[name] for name in PASSED if name in caller}
    made.setdefault("LANG", "C.UTF-8")
    made.setdefault("TERM", "dumb")
    return made | {
        "HOME": spec_home,
        "PATH": path,
        "USER": user_name,
        "LOGNAME": user_name,
        "SHELL": shell,
        "TMPDIR": "/tmp",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_OPTIONAL_LOCKS": "0",  # a `git status` is no reason to write into the tree
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
    }


def _loads_code(name: str) -> bool:
    return name not in GIT_IDENTITY_NAMES and name.startswith(CODE_LOADING)


def _is_plain(path: str) -> bool:
    return path.startswith("/") and not path.startswith("//") and "\0" not in path and posixpath.normpath(path) == path
