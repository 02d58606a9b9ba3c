"""Names, and where a harness's program is found."""

import subprocess
import sys
from collections.abc import Mapping

import pytest

from amem.errors import UsageError
from amem.harnesses import registry

CACHE = "/home/u/.cache/amem/harnesses"
VENDOR = "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl"


def disk(files: Mapping[str, str]) -> registry.Resolve:
    """A disk where each path has a real path."""
    return files.get


def find(name: str, files: Mapping[str, str], path: str = "", machine: str = "x86_64") -> registry.Program | None:
    return registry.find(registry.load(name), path=path, cache=CACHE, machine=machine, resolve=disk(files))


def test_an_unknown_harness_names_the_near_miss() -> None:
    with pytest.raises(UsageError, match="no harness 'clade'") as caught:
        registry.load("clade")
    assert caught.value.hint == "--harness claude"


def test_importing_the_registry_loads_no_adapter() -> None:
    code = "import sys, amem.harnesses.registry; print([m for m in sys.modules if m.startswith('amem.harnesses.')])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "amem.harnesses.base" in out and "amem.harnesses.claude" not in out


def test_the_pinned_program_is_found_in_the_cache() -> None:
    version = registry.pins()["codex"].version
    program = f"{CACHE}/codex-{version}/node_modules/{VENDOR}/bin/codex"
    found = find("codex", {program: program})
    assert found == registry.Program(
        argv=(program,), roots=(f"{CACHE}/codex-{version}/node_modules/{VENDOR}",), pinned=version
    )  # fmt: skip


def test_the_machine_picks_the_platform_package() -> None:
    version = registry.pins()["codex"].version
    program = f"{CACHE}/codex-{version}/node_modules/@openai/codex-linux-arm64/vendor/aarch64-unknown-linux-musl/bin/codex"
    found = find("codex", {program: program}, machine="aarch64")
    assert found is not None and found.argv == (program,)


def test_the_hosts_own_comes_before_the_pinned_one() -> None:
    version = registry.pins()["claude"].version
    cached = f"{CACHE}/claude-{version}/{registry.pins()['claude'].program}"
    own = "/home/u/.local/share/claude/versions/2.1.400"
    found = find("claude", {cached: cached, "/home/u/.local/bin/claude": own}, path="/usr/bin:/home/u/.local/bin")
    assert found == registry.Program(argv=(own,), roots=(own,), pinned=None)


@pytest.mark.parametrize("folder", ["/home/u/n/lib/node_modules/@openai/codex/node_modules", "/home/u/n/lib/node_modules"])
def test_a_node_shim_on_the_path_is_replaced_by_the_program_it_starts(folder: str) -> None:
    native = f"{folder}/{VENDOR}/bin/codex"
    shim = "/home/u/n/lib/node_modules/@openai/codex/bin/codex.js"
    found = find("codex", {"/home/u/n/bin/codex": shim, native: native}, path="/home/u/n/bin")
    assert found == registry.Program(argv=(native,), roots=(f"{folder}/{VENDOR}",), pinned=None)


def test_a_lone_binary_shows_itself_and_never_the_folder_around_it() -> None:
    found = find("codex", {"/home/u/.local/bin/codex": "/home/u/.local/bin/codex"}, path="/home/u/.local/bin")
    assert found is not None and found.roots == ("/home/u/.local/bin/codex",)


def test_what_the_sandbox_shows_anyway_needs_no_root() -> None:
    real = "/usr/local/lib/node_modules/@anthropic-ai/claude-code/bin/claude.exe"
    found = find("claude", {"/usr/local/bin/claude": real}, path="/usr/local/bin")
    assert found is not None and found.roots == ()


@pytest.mark.parametrize("path", ["", ":", ".", "bin", "./node_modules/.bin"])
def test_the_work_tree_never_supplies_the_harness(path: str) -> None:
    asked = []

    def resolve(candidate: str) -> str | None:
        asked.append(candidate)
        return candidate if not candidate.startswith("/") else None

    assert registry.find(registry.load("claude"), path=path, cache=CACHE, machine="x86_64", resolve=resolve) is None
    assert all(candidate.startswith("/") for candidate in asked)


def test_what_is_not_installed_is_none() -> None:
    assert find("claude", {}, path="/usr/bin") is None


def test_a_command_is_never_looked_for() -> None:
    assert find("command", {"/usr/bin/": "/usr/bin"}, path="/usr/bin") is None


@pytest.mark.parametrize(
    ("binary", "found"),
    [
        ("/c/node_modules/@anthropic-ai/claude-code/bin/claude.exe", "/c/node_modules/@anthropic-ai/claude-code/package.json"),
        ("/c/node_modules/a/node_modules/b/bin/opencode", "/c/node_modules/a/node_modules/b/package.json"),
        ("/home/u/.local/share/claude/versions/2.1.400", None),
    ],
)  # fmt: skip
def test_the_manifest_is_that_of_the_innermost_package(binary: str, found: str | None) -> None:
    assert registry.manifest(binary) == found
