"""The shape of a harness table, and what a launch of it needs and gives.

Owns `Harness`, `LaunchFacts`, `Launch` and the two decisions common to all: which AUTH and destination a launch runs
on, and whether the facts fit the table. It does no I/O and knows no harness by name. A real credential never stands
in a `LaunchFacts`: what a harness holds inside is a placeholder, and the egress puts the key on the outgoing copy.
"""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum
from posixpath import dirname
from types import MappingProxyType

from amem.errors import UsageError
from amem.model.call import Auth as Auth
from amem.model.call import Dialect
from amem.typed import NamedTuple

DEMO = "demo"
"""The scripted provider of `make demo`; it speaks every dialect, so every harness may name it in key mode."""
GATEWAY = "llmao"
"""The one destination of gateway mode."""
MAX_PROMPT_BYTES = 120 * 1024
"""Linux takes at most 128 KiB in one argument (MAX_ARG_STRLEN); the rest is left for what a harness adds."""


class HookKind(StrEnum):
    """What the hook program is asked to do: its second argument."""

    PRE_TOOL = "pre-tool"
    PRE_COMPACT = "pre-compact"
    SESSION_END = "session-end"


class AnswerKind(StrEnum):
    """How the final text of a headless run stands in its stdout; `answer.read` knows each."""

    TEXT = "text"
    CLAUDE = "claude"
    CODEX = "codex"
    GEMINI = "gemini"
    QWEN = "qwen"
    GROK = "grok"
    OPENCODE = "opencode"
    MUSE = "muse"
    AGY = "agy"


class Hook(NamedTuple):
    """One of the harness's own events, bound to a kind."""

    event: str
    kind: HookKind
    timeout_s: int
    """How long the harness waits. Longer than the hook program's own deadline, since a harness lets a late hook's tool run."""
    matcher: str | None = None
    """The tools it fires for; None where the event has no matcher."""


class Told(NamedTuple):
    """Where the host says whose a login is."""

    name: str
    """As the destination's `Identity` has it."""
    file: str
    """Relative to the home."""
    path: tuple[str, ...]
    """The members that lead to it; within a web token, its claim."""


class Login(NamedTuple):
    """A login that a subscription launch carries in, and brings home when the harness refreshed it."""

    file: str
    """Relative to the home, the same on the host and inside."""
    command: str
    """What the owner runs on the host to log in."""
    rewritten: bool
    """Whether the harness rewrites the file when it refreshes the login."""
    expiry: tuple[str, ...] = ()
    """Where the file says when its token ends, in milliseconds since 1970. Only of a login whose calls the egress forwards: those are held
    to the token that went in, and to those of which the provider says that they are the same account's."""
    token: tuple[str, ...] = ()
    """Where the file has the token that calls carry; with `account` only."""
    account: tuple[Told, ...] = ()
    """Whose it is, so that a token which was refreshed inside can be told from another account's (B14)."""
    same: tuple[tuple[str, ...], ...] = ()
    """Members that no refresh changes."""
    part: str | None = None
    """The one member of the file that goes in, where the others are keys for other providers."""
    variables: tuple[str, ...] = ()
    """Variables of the host that hold the login in place of the file; inside it stands under the first name."""


class Version(NamedTuple):
    """The oldest version that does what a launch needs."""

    floor: tuple[int, ...]
    reason: str


class LaunchFacts(NamedTuple):
    """All that an adapter may know of one launch."""

    auth: Auth
    destination: str
    program: tuple[str, ...]
    """What starts the harness inside: its binary, or the interpreter and its script."""
    egress_url: str
    """`http://127.0.0.1:PORT`, without a path."""
    session: str
    """amem's id of the session."""
    workdir: str
    """The work tree, as it is called inside."""
    placeholder: str
    """What stands where a key would; worth nothing outside this session."""
    home: str = "/home/agent"
    hook: tuple[str, ...] = ("/opt/memory/memory",)
    model: str | None = None
    prompt: str | None = None
    """None is the interactive form."""
    args: tuple[str, ...] = ()
    """What the user wrote after `--`; last, so that it wins."""
    token: str | None = None
    """The bearer that names the session, only where the egress port is on the host."""
    server_tools: tuple[str, ...] = ()
    """What the grant lets the provider do for this harness (`web_search`, …); an adapter switches off what is not in here."""

    @property
    def headless(self) -> bool:
        """Say whether nobody is there to answer the harness."""
        return self.prompt is not None

    @property
    def mcp_url(self) -> str:
        """Where the memory server answers."""
        return f"{self.egress_url}/mcp"

    @property
    def openai_url(self) -> str:
        """The base URL as OpenAI's clients want it, with `/v1`."""
        return f"{self.egress_url}/v1"

    @property
    def mcp_headers(self) -> dict[str, str]:
        """Headers for the memory server: the bearer, or none."""
        return {} if self.token is None else {"Authorization": f"Bearer {self.token}"}

    @property
    def prompt_argument(self) -> str:
        """The prompt as an argument no option parser takes for a flag."""
        prompt = self.prompt or ""
        return f" {prompt}" if prompt.startswith("-") else prompt

    @property
    def uuid(self) -> str:
        """A UUID drawn from the session's id, for harnesses that can be told theirs."""
        import uuid

        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"amem:{self.session}"))


class Launch(NamedTuple):
    """What the launcher runs. PATH, HOME, TERM and the locale are the sandbox's matter and not in `env`."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    files: Mapping[str, bytes]
    """By path relative to the private home; written 0600 before the harness starts."""
    answer: AnswerKind
    """How a headless run's stdout is read; TEXT passes it on as it is."""


class Harness(NamedTuple):
    """One harness as data. The functions are for what a table cannot say."""

    name: str
    title: str
    binary: str
    """The file looked for on the host's PATH."""
    auth: tuple[Auth, ...]
    """The modes it supports, the default first."""
    destinations: Mapping[Auth, tuple[str, ...]]
    """Where each mode may go, the default first."""
    dialects: tuple[Dialect, ...]
    environment: Callable[[LaunchFacts], Mapping[str, str]]
    files: Callable[[LaunchFacts], Mapping[str, bytes]]
    arguments: Callable[[LaunchFacts], tuple[str, ...]]
    """What follows the program, without the user's own arguments."""
    install: str
    """The one command that installs it."""
    roots: Callable[[str], tuple[str, ...]] = lambda binary: (binary,)
    """The host paths that must be readable inside for this real binary to run; by default the file alone."""
    last: Callable[[LaunchFacts], tuple[str, ...]] | None = None
    """What a headless run wants after even the user's own arguments."""
    stdin: str | None = None
    """The file of the private home that a headless run reads as its stdin; None where it reads nothing."""
    answer: AnswerKind = AnswerKind.TEXT
    hooks: tuple[Hook, ...] = ()
    hasty: bool = False
    """Whether it asks its model before the memory server has answered; its first call is held until it was told of the tools."""
    impatient: bool = False
    """Whether its first turn goes without memory when the server takes long; what serves it is imported before it starts."""
    keyless: bool = False
    """Whether it may call no model at all: where there is no key, and none was asked for, it starts without a destination."""
    demands: tuple[tuple[str, str, str], ...] = ()
    """Folders of the work tree, each with a file that the harness writes into it where it is not, or else ends, and what it is shown in
    place of that: the folder is read-only inside."""
    masked: tuple[str, ...] = ()
    """Files of the work tree that could switch the hooks off and that no argument of ours beats: a launch hides those there are."""
    mcp_tool: str | None = None
    """The name a memory tool has for the model and in hooks, with `{tool}` in it; None where nobody has seen one."""
    refusals: Mapping[Auth, str] = MappingProxyType({})
    """Why a mode that one might expect is not supported."""
    model_required: frozenset[str] = frozenset({Auth.GATEWAY})
    """The modes and destinations that need a model named."""
    login: Login | None = None
    tunnel_hosts: tuple[str, ...] = ()
    """`host:port` it may reach through a pinned tunnel on a subscription; nothing else, and unmetered."""
    transcripts: tuple[str, ...] = ()
    """Globs relative to the private home."""
    transcript_shape: str | None = None
    """The shape that `amem.hooks.shapes` knows them by; None where nothing is left that it can read."""
    usage: tuple[str, ...] = ()
    """Globs of the files, relative to the private home, that `totals` adds up under the harness's name."""
    version: Version | None = None


class Choice(NamedTuple):
    """The AUTH and destination a launch runs on."""

    auth: Auth
    destination: str


def choose(harness: Harness, *, auth: str | None, destination: str | None) -> Choice:
    """Settle AUTH and destination. Raises UsageError that says why a mode or destination is not to be had.

    Without AUTH it is the first mode that serves the destination asked for.
    """
    if auth is None:
        serving = [mode for mode in harness.auth if destination is None or destination in harness.destinations[mode]]
        if not serving:
            known = sorted({name for names in harness.destinations.values() for name in names})
            raise UsageError(f"{harness.name}: no destination {destination!r}; it has {', '.join(known)}", destination=destination)
        mode = serving[0]
    else:
        mode = _mode(harness, auth)
    names = harness.destinations[mode]
    if destination is not None and destination not in names:
        why = f"AUTH {mode} does not go to {destination!r}; it goes to {', '.join(names)}"
        raise UsageError(f"{harness.name}: {why}", auth=str(mode), destination=destination)
    return Choice(auth=mode, destination=destination or names[0])


def launch(harness: Harness, facts: LaunchFacts) -> Launch:
    """Say what to run. Raises UsageError for facts the harness cannot be launched on."""
    choose(harness, auth=facts.auth, destination=facts.destination)
    if not facts.model and harness.model_required & {facts.auth, facts.destination}:
        raise UsageError(
            f"{harness.name}: AUTH {facts.auth} at {facts.destination} needs a model",
            hint=f"amem launch --harness {harness.name} --model NAME",
        )
    if facts.prompt is not None:
        if not facts.prompt.strip():
            raise UsageError("the prompt is empty")
        size = len(facts.prompt.encode())
        if size > MAX_PROMPT_BYTES:
            raise UsageError(f"the prompt has {size} bytes; {MAX_PROMPT_BYTES} fit: put the rest into a file in the tree and name it")
    last = harness.last(facts) if facts.headless and harness.last is not None else ()
    argv = (*facts.program, *harness.arguments(facts), *facts.args, *last)
    if facts.headless and harness.stdin is not None:
        argv = ("/bin/sh", "-c", 'exec "$@" < "$0"', f"{facts.home}/{harness.stdin}", *argv)
    if not argv:
        raise UsageError(f"{harness.name}: no program to run", hint=f"amem launch --harness {harness.name} -- PROGRAM ARGS")
    if any("\0" in argument for argument in argv):
        raise UsageError("an argument holds a NUL character")
    return Launch(
        argv=argv,
        env={**session_env(facts), **harness.environment(facts)},
        files=harness.files(facts),
        answer=harness.answer if facts.headless else AnswerKind.TEXT,
    )


def session_env(facts: LaunchFacts) -> dict[str, str]:
    """What every session has: who it is and where its memory answers."""
    env = {"AMEM_SESSION": facts.session, "MEMORY_MCP_URL": facts.mcp_url}
    if facts.token is not None:
        env["AMEM_TOKEN"] = facts.token
    return env


def tunnel(facts: LaunchFacts) -> dict[str, str]:
    """The proxy variables of a launch whose login the egress tunnels. Loopback must stay off the proxy, or MCP goes to it."""
    hosts = "127.0.0.1,localhost"
    proxy = facts.egress_url if facts.token is None else facts.egress_url.replace("://", f"://amem:{facts.token}@", 1)
    return {
        "HTTPS_PROXY": proxy, "https_proxy": proxy, "NO_PROXY": hosts, "no_proxy": hosts,
    }  # fmt: skip


def outdated(harness: Harness, version: str) -> str | None:
    """Say why a harness that calls itself `version` is too old, or None when it is not or says nothing one can read."""
    found = _numbers(version)
    if harness.version is None or not found or found >= harness.version.floor:
        return None
    floor = ".".join(map(str, harness.version.floor))
    return f"{harness.title} {'.'.join(map(str, found))} is too old: {floor} or later is needed, because {harness.version.reason}"


def newer(harness: Harness, version: str, tested: str) -> str | None:
    """Say that a harness is a major version beyond the one amem is tested with; None when it is not."""
    if _numbers(version)[:1] <= _numbers(tested)[:1]:
        return None
    return f"{harness.title} {version} is newer than amem knows: it is tested with {tested} (make harnesses HARNESS={harness.name})"


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers of the first version in a text; none where there is none."""
    found = re.search(r"\d{1,9}(?:\.\d{1,9})+", version)
    return tuple(map(int, found[0].split(".")[:4])) if found is not None else ()


def package_tree(binary: str) -> tuple[str, ...]:
    """The outermost `node_modules` around a script, since npm may put what it needs beside it; else its folder."""
    folder, found, _ = binary.partition("/node_modules/")
    return (f"{folder}/node_modules",) if found else (dirname(binary),)


def _mode(harness: Harness, auth: str) -> Auth:
    supported = ", ".join(harness.auth)
    try:
        mode = Auth(auth)
    except ValueError:
        raise UsageError(f"no AUTH mode {auth!r}; {harness.name} has {supported}", hint=f"--auth {harness.auth[0]}", auth=auth) from None
    if mode not in harness.auth:
        why = harness.refusals.get(mode, "it has no such mode")
        raise UsageError(f"{harness.name}: AUTH {mode} is not supported: {why}", hint=f"--auth {harness.auth[0]}", auth=auth)
    return mode
