"""The harnesses by name, and where a harness's program is. Importing this loads no adapter.

`pins.toml` beside it names the versions amem is tested with; it is package data, read once. What is on the host's disk
is asked through the `resolve` that the caller gives, so that the search itself stays a function of values.
"""

import tomllib
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib import import_module
from pathlib import Path

from amem.errors import UsageError
from amem.harnesses.base import Harness, package_tree
from amem.typed import NamedTuple

HARNESSES = {
    "claude": "amem.harnesses.claude",
    "codex": "amem.harnesses.codex",
    "gemini": "amem.harnesses.gemini",
    "agy": "amem.harnesses.agy",
    "qwen": "amem.harnesses.qwen",
    "grok": "amem.harnesses.grok",
    "muse": "amem.harnesses.muse",
    "pi": "amem.harnesses.pi",
    "copilot": "amem.harnesses.copilot",
    "opencode": "amem.harnesses.opencode",
    "command": "amem.harnesses.command",
}
SYSTEM = ("/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/")
"""What every sandbox shows anyway; nothing beneath needs a root of its own."""


class Pin(NamedTuple):
    """A program at the version amem is tested with."""

    name: str
    version: str
    program: str
    """Beneath the folder it was installed into; `{cpu}` and `{arch}` name the machine."""
    node: bool
    """Whether the program is a script that Node runs."""


class Program(NamedTuple):
    """A harness found on the host. Its paths are the same inside."""

    argv: tuple[str, ...]
    roots: tuple[str, ...]
    """Host paths to show read-only inside, at the same place."""
    pinned: str | None
    """The version, when it is the pinned one from the cache."""


Resolve = Callable[[str], str | None]
"""The real path of an executable or script file, links followed, or None when there is none."""


def names() -> tuple[str, ...]:
    """All harnesses, in the order they are listed to people."""
    return tuple(HARNESSES)


def load(name: str) -> Harness:
    """The table of a harness. Raises UsageError that names the near miss."""
    module = HARNESSES.get(name)
    if module is None:
        from difflib import get_close_matches

        near = get_close_matches(name, HARNESSES, n=1)
        raise UsageError(
            f"no harness {name!r}; there are {', '.join(HARNESSES)}", hint=f"--harness {near[0]}" if near else None, harness=name
        )
    harness: Harness = import_module(module).HARNESS
    return harness


@cache
def pins() -> Mapping[str, Pin]:
    """The pinned programs, Node among them."""
    table = tomllib.loads(Path(__file__).with_name("pins.toml").read_text(encoding="utf-8"))
    return {
        name: Pin(name=name, version=row["version"], program=row["program"], node=row.get("node", False)) for name, row in table.items()
    }


def find(harness: Harness, *, path: str, cache: str, machine: str, resolve: Resolve) -> Program | None:
    """Find a harness: first on the PATH, then in the cache of pinned programs; None when it is in neither or is no program itself.

    `machine` is what `uname -m` says; `cache` is the folder `make harnesses` installs into.
    """
    if not harness.binary:
        return None
    pin = pins().get(harness.name)
    on_path = _first((f"{folder}/{harness.binary}" for folder in _folders(path)), resolve)
    if on_path is not None:
        native = _first(_natives(on_path, pin, machine), resolve) if pin is not None and not pin.node else None
        return _program(harness, native or on_path, None, path, cache, machine, resolve)
    if pin is None:
        return None
    cached = resolve(_installed(pin, cache, machine))
    return None if cached is None else _program(harness, cached, pin.version, path, cache, machine, resolve)


def manifest(binary: str) -> str | None:
    """The package.json that names a program's version, of the npm package that it lies in; None for a program of no package."""
    prefix, found, rest = binary.rpartition("/node_modules/")
    package = "/".join(rest.split("/")[: 2 if rest.startswith("@") else 1])
    return f"{prefix}{found}{package}/package.json" if found else None


def _program(harness: Harness, binary: str, pinned: str | None, path: str, cache: str, machine: str, resolve: Resolve) -> Program | None:
    argv: tuple[str, ...] = (binary,)
    roots = harness.roots(binary)
    if binary.endswith((".js", ".mjs", ".cjs")):  # also an older version of what is a native program today
        # The pinned Node first: what the host has may be older than the harness wants, and npm says nothing about it.
        node = resolve(_installed(pins()["node"], cache, machine)) or _first((f"{folder}/node" for folder in _folders(path)), resolve)
        if node is None:
            return None
        argv, roots = (node, binary), (*package_tree(binary), node)
    return Program(argv=argv, roots=tuple(root for root in roots if not root.startswith(SYSTEM)), pinned=pinned)


def _natives(shim: str, pin: Pin, machine: str) -> tuple[str, ...]:
    """Where npm put the native program that a package's script would start: beside the package, or within it."""
    prefix, found, rest = shim.partition("/node_modules/")
    if not found:
        return ()
    package = "/".join(rest.split("/")[: 2 if rest.startswith("@") else 1])
    program = _platform(pin.program, machine)
    return (f"{prefix}/{program}", f"{prefix}/node_modules/{package}/{program}")


def _installed(pin: Pin, cache: str, machine: str) -> str:
    return f"{cache}/{pin.name}-{pin.version}/{_platform(pin.program, machine)}"


def _platform(program: str, machine: str) -> str:
    arch = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    return program.format(cpu={"x86_64": "x64", "aarch64": "arm64"}.get(arch, arch), arch=arch)


def _folders(path: str) -> list[str]:
    # An empty or relative element would mean the current folder: the tree must never supply the harness.
    return [folder.rstrip("/") for folder in path.split(":") if folder.startswith("/")]


def _first(candidates: Iterable[str], resolve: Resolve) -> str | None:
    return next((real for candidate in candidates if (real := resolve(candidate)) is not None), None)
