"""Every refusal of a launch, before anything starts."""

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from amem.errors import AmemError, ConfigError, UnavailableError, UsageError
from amem.harnesses import registry
from amem.launch.plan import Asked, beyond, plan, tree, version_of
from amem.model.label import Label
from amem.settings import grants
from amem.settings.credentials import Credentials
from amem.settings.root import Root

GRANTS = """
owner = "human:asf:you"
[grants.dom-me]
[grants.dom-me.principals."agent:*"]
read = "internal"
write = true
[destinations.anthropic]
ceiling = "internal"
[destinations.openai]
ceiling = "public"
[destinations.llmao]
ceiling = "restricted"
"""


@pytest.fixture
def root(tmp_path: Path) -> Root:
    path = tmp_path / "root"
    path.mkdir()
    (path / "grants.toml").write_text(GRANTS)
    return Root(path)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    path.mkdir()
    return path


def planned(root: Root, work: Path, *, environment: dict[str, str] | None = None, **asked: Any) -> Any:
    values = {"harness": "command", "auth": "key", "provider": "anthropic", "args": ("true",), "workdir": str(work)} | asked
    environment = {"HOME": "/home/somebody", "PATH": "/usr/bin:/bin", "ANTHROPIC_API_KEY": "sk-of-key", "LLMAO_KEY": "sk-of-gateway"} | (
        environment or {}
    )
    return plan(Asked(**values), root, grants.load(root.grants), Credentials(environment, {}), environment, "dom-me")


def test_a_launch_that_may_start(root: Root, work: Path) -> None:
    found = planned(root, work)
    assert (found.destination, found.ceiling, found.handling, found.label) == ("anthropic", Label.INTERNAL, Label.INTERNAL, Label.PUBLIC)
    assert found.credential is not None and found.credential.reveal() == "sk-of-key"
    assert found.principal == "agent:command"


def test_another_repository_is_not_for_writing(root: Root, work: Path, tmp_path: Path) -> None:
    for folder in ("repo/.git/hooks", "bare.git/objects", "plain"):
        (tmp_path / folder).mkdir(parents=True)
    for path in ("repo", "repo/.git", "repo/.git/hooks", "bare.git"):
        with pytest.raises(UsageError, match="git directory"):
            planned(root, work, read_write=(str(tmp_path / path),))
    assert planned(root, work, read_write=(str(tmp_path / "plain"),), read_only=(str(tmp_path / "repo"),)).binds[1].writable


def test_a_path_is_shown_once_and_in_one_way(root: Root, work: Path, tmp_path: Path) -> None:
    (tmp_path / "plain").mkdir()
    plain = str(tmp_path / "plain")
    assert len(planned(root, work, read_only=(plain, f"{plain}/../plain")).binds) == 1
    with pytest.raises(UsageError, match="--ro names it too"):
        planned(root, work, read_only=(plain,), read_write=(plain,))
    for flag in ("read_only", "read_write"):
        with pytest.raises(UsageError, match="it is the work tree"):
            planned(root, work, **{flag: (str(work),)})


def test_a_writable_path_within_what_is_read_only_of_the_tree_is_refused_with_the_flag_that_allows_it(root: Root, work: Path) -> None:
    folders = [work / ".opencode" / "sub", work / "src"]
    for folder in folders:
        folder.mkdir(parents=True)
    with pytest.raises(UsageError, match=r"\.opencode of the work tree is read-only inside") as caught:
        planned(root, work, read_write=(str(folders[0]),))
    assert caught.value.hint == "--allow-config-writes"
    assert planned(root, work, read_write=(str(folders[0]),), config_writable=True).binds[0].writable
    assert planned(root, work, read_write=(str(folders[1]),)).binds[0].writable


def test_a_gateway_launch_goes_to_the_gateway(root: Root, work: Path) -> None:
    found = planned(root, work, auth="gateway", provider=None, model="m")
    assert (found.destination, found.ceiling) == ("llmao", Label.RESTRICTED)
    assert found.credential.reveal() == "sk-of-gateway"


@pytest.mark.parametrize(
    ("asked", "kind", "says"),
    [
        ({"harness": None}, UsageError, "which harness?"),
        ({"harness": "cluade"}, UsageError, "claude"),
        ({"auth": "keys"}, UsageError, "keys"),
        ({"auth": "subscription"}, UsageError, "subscription"),
        ({"provider": "antropic"}, UsageError, "anthropic"),
        ({"provider": "xai"}, AmemError, "xai"),
        ({"provider": "openai"}, UnavailableError, "OPENAI_API_KEY"),
        ({"args": ()}, UsageError, "name it after --"),
        ({"harness": "claude", "args": (), "environment": {"PATH": "/nowhere", "XDG_CACHE_HOME": "/nowhere"}}, UnavailableError, "claude"),
        ({"workdir": "/nonexistent/tree"}, UsageError, "there is no such directory"),
        ({"read_only": ("/nonexistent/ro",)}, UsageError, "there is no such path"),
        ({"ports": (3000, 3000)}, UsageError, "--port 3000: --port names it already"),
        ({"ports": (3000,), "host_ports": (3000,)}, UsageError, "--host-port 3000: --port names it already"),
        ({"host_ports": (7431,)}, UsageError, "--host-port 7431: the session's own egress is there"),
    ],
)
def test_what_cannot_start_says_why_and_what_helps(root: Root, work: Path, asked: dict[str, Any], kind: type[AmemError], says: str) -> None:
    with pytest.raises(kind) as caught:
        planned(root, work, **asked)
    assert says in f"{caught.value.message} {caught.value.hint}"
    assert caught.value.hint or says in caught.value.message
    assert caught.value.exit_code in (1, 2)


def test_a_name_that_is_no_text_is_refused_before_anything_starts(root: Root, work: Path, tmp_path: Path) -> None:
    bad = os.path.join(tmp_path, os.fsdecode(b"bad\xff"))
    os.mkdir(bad)
    for asked in ({"workdir": bad}, {"read_only": (bad,)}, {"read_write": (bad,)}):
        with pytest.raises(UsageError, match="is not UTF-8"):
            planned(root, work, **asked)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may look into everything")
def test_a_tree_that_is_closed_to_its_user_is_refused(root: Root, work: Path, tmp_path: Path) -> None:
    (tmp_path / "shut").mkdir(mode=0)
    with pytest.raises(UsageError, match="may not look into it"):
        planned(root, work, workdir=str(tmp_path / "shut"))


def test_a_principal_without_a_grant_has_no_access(root: Root, work: Path) -> None:
    root.grants.write_text(GRANTS.replace("agent:*", "agent:claude"))
    with pytest.raises(ConfigError, match="no pattern covers agent:command"):
        planned(root, work)


def test_a_tree_that_would_open_the_root_is_refused(root: Root, tmp_path: Path) -> None:
    environment = {"HOME": "/home/somebody"}
    inside = root.path / "state"
    inside.mkdir()
    for path in (tmp_path, root.path, inside):
        with pytest.raises(UsageError, match="the root"):
            tree(str(path), root, environment)


def test_a_tree_that_holds_the_home_is_refused_and_one_below_it_is_not(root: Root, tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / "project").mkdir(parents=True)
    for path in (home, Path("/")):
        with pytest.raises(UsageError):
            tree(str(path), root, {"HOME": str(home)})
    assert tree(str(home / "project"), root, {"HOME": str(home)}) == home / "project"


def test_a_link_to_the_home_is_seen_through(root: Root, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "link").symlink_to(home)
    with pytest.raises(UsageError, match="holds your home"):
        tree(str(tmp_path / "link"), root, {"HOME": str(home)})


@pytest.mark.parametrize("path", ["/usr", "/etc", "/proc", "/dev"])
def test_a_system_directory_is_refused(root: Root, path: str) -> None:
    with pytest.raises(UsageError, match="read-only or hidden"):
        tree(path, root, {"HOME": "/home/somebody"})


def test_a_read_only_path_may_not_show_the_root(root: Root, work: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="with its keys"):
        planned(root, work, read_only=(str(tmp_path),))


def test_amems_own_calls_follow_the_harness_unless_they_are_given_a_way(root: Root, work: Path) -> None:
    gateway = ("llmao", "gateway")
    assert planned(root, work).own == ("anthropic", "key")
    assert planned(root, work, server_auth="none").own is None
    assert planned(root, work, server_auth="gateway").own == gateway
    assert planned(root, work, environment={"SERVER_AUTH": "gateway"}).own == gateway
    xai = {"SERVER_AUTH": "gateway", "OPENAI_API_KEY": "sk-of-openai"}
    assert planned(root, work, server_auth="key", server_provider="openai", environment=xai).own == ("openai", "key")


KEYLESS = {"ANTHROPIC_API_KEY": ""}
UNASKED: dict[str, Any] = {"auth": None, "provider": None}


def test_a_program_of_ones_own_starts_without_a_key_and_without_a_destination(root: Root, work: Path) -> None:
    found = planned(root, work, environment=KEYLESS, **UNASKED)
    assert (found.credential, found.routes, found.own) == (None, {}, None)
    assert found.unserved == "no key for anthropic: ANTHROPIC_API_KEY is neither in the environment nor in credentials.env"
    assert planned(root, work, environment=KEYLESS | {"SERVER_AUTH": "gateway"}, **UNASKED).own == ("llmao", "gateway")
    with_key = planned(root, work, **UNASKED)
    assert with_key.credential is not None and with_key.routes and not with_key.unserved
    assert [name for name in registry.names() if registry.load(name).keyless] == ["command"]


@pytest.mark.parametrize("asked", [{"auth": "key"}, {"provider": "anthropic"}, {"model": "m"}, {"server_auth": "key"}])
def test_who_asks_for_a_model_is_told_of_the_key_that_lacks(root: Root, work: Path, asked: dict[str, Any]) -> None:
    with pytest.raises(UnavailableError, match="no key for"):
        planned(root, work, environment=KEYLESS, **UNASKED | asked)


@pytest.mark.parametrize(
    ("asked", "environment", "why"),
    [
        ({"server_auth": "subscription"}, {}, "a login belongs to its harness alone"),
        ({"server_auth": "gateway"}, {"LLMAO_KEY": ""}, "no key for llmao"),
        ({"server_provider": "openai"}, {}, "no key for openai"),
        ({"server_provider": "xai"}, {}, "destination xai: grants.toml has no"),
        ({}, {"SERVER_AUTH": "kay"}, "--server-auth kay: expected key or gateway"),
    ],
)
def test_a_way_that_cannot_be_gone_is_refused_before_the_start(
    root: Root, work: Path, asked: dict[str, str], environment: dict[str, str], why: str
) -> None:
    with pytest.raises(AmemError, match=why):
        planned(root, work, environment=environment, **asked)


@pytest.mark.parametrize(
    ("limit", "value", "flag"),
    [
        ("processes", 0, "--max-procs"),
        ("memory_bytes", 1 << 20, "--max-memory"),
        ("open_files", 3, "--max-files"),
        ("tmp_bytes", 0, "--max-tmp"),
    ],
)
def test_a_limit_that_no_program_could_live_in_is_refused(root: Root, work: Path, limit: str, value: int, flag: str) -> None:
    with pytest.raises(UsageError, match=flag) as caught:
        planned(root, work, limits={limit: value})
    assert caught.value.hint in {"--max-procs 4", "--max-memory 32M", "--max-files 16", "--max-tmp 1M"}
    assert getattr(planned(root, work, limits={limit: 1 << 30}).limits, limit) == 1 << 30


def test_a_limit_of_the_root_that_no_program_could_live_in_is_named_by_its_key(root: Root, work: Path) -> None:
    root.grants.write_text(GRANTS + '[limits]\nmemory = "1M"\n')
    with pytest.raises(UsageError, match=r"\[limits\] memory"):
        planned(root, work)


def installed(folder: Path, version: str) -> str:
    """pi as npm installs it, at some version: the folder for PATH."""
    package = folder / "node_modules/@earendil-works/pi-coding-agent"
    (package / "dist/bundle").mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"name": "pi", "version": version}))
    (package / "dist/bundle/cli.js").write_text("")
    (folder / "bin").mkdir()
    (folder / "bin/pi").symlink_to(package / "dist/bundle/cli.js")
    (folder / "bin/node").write_text("#!/bin/sh\n")
    (folder / "bin/node").chmod(0o755)
    return str(folder / "bin")


def test_a_harness_that_is_too_old_says_which_version_is_needed(root: Root, work: Path, tmp_path: Path) -> None:
    environment = {"PATH": installed(tmp_path / "old", "0.74.2"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    with pytest.raises(UnavailableError) as caught:
        planned(root, work, harness="pi", args=(), model="m", environment=environment)
    assert (
        caught.value.message
        == "pi 0.74.2 is too old: 1.0 or later is needed, because 0.74, which npm picks on Node 20 without a word, has no MCP"
    )
    assert caught.value.hint == "make harnesses HARNESS=pi"


def test_a_harness_that_is_too_old_gives_way_to_the_pinned_one(root: Root, work: Path, tmp_path: Path) -> None:
    pin = registry.pins()["pi"]
    pinned = tmp_path / "cache/amem/harnesses" / f"pi-{pin.version}"
    installed(pinned, pin.version)
    node = tmp_path / "cache/amem/harnesses" / f"node-{registry.pins()['node'].version}" / registry.pins()["node"].program
    node.parent.mkdir(parents=True)
    node.write_text("")
    node.chmod(0o755)
    environment = {"PATH": installed(tmp_path / "old", "0.74.2"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    found = planned(root, work, harness="pi", args=(), model="m", environment=environment)
    assert found.program.pinned == pin.version and found.program.argv == (str(node), str(pinned / pin.program))


@pytest.mark.parametrize("around", [".git", ".venv/pyvenv.cfg", "node_modules/.bin"])
def test_a_link_that_a_session_put_on_the_search_path_shows_nothing_of_the_owners(
    root: Root, work: Path, tmp_path: Path, around: str
) -> None:
    """As where the owner works in an active `.venv` of a tree: of a script, its whole folder is shown."""
    private, tree = tmp_path / "private", tmp_path / "tree"
    private.mkdir()
    (private / "prefs.js").write_text("")
    folder = tree / (around if around.endswith(".bin") else ".venv/bin")
    folder.mkdir(parents=True)
    if not around.endswith(".bin"):
        (tree / around).touch()
    (folder / "pi").symlink_to(private / "prefs.js")
    usual = installed(tmp_path / "usual", registry.pins()["pi"].version)
    environment = {"PATH": f"{folder}:{usual}", "XDG_CACHE_HOME": str(tmp_path / "cache")}
    found = planned(root, work, harness="pi", args=(), model="m", environment=environment)
    assert found.program.argv[-1].startswith(str(tmp_path / "usual"))
    (folder / "pi").unlink()
    (tree / "own.js").write_text("")
    (folder / "pi").symlink_to(tree / "own.js")
    if around != ".venv/pyvenv.cfg":  # which it leads out of
        found = planned(root, work, harness="pi", args=(), model="m", environment=environment)
        assert found.program.argv[-1] == str(tree / "own.js")


def test_no_harness_runs_out_of_a_folder_of_keys(root: Root, work: Path, tmp_path: Path) -> None:
    keys = tmp_path / "me/.mozilla/profile"
    keys.mkdir(parents=True)
    (keys / "prefs.js").write_text("")
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "pi").symlink_to(keys / "prefs.js")
    (folder / "node").symlink_to("/bin/sh")
    environment = {"PATH": str(folder), "HOME": str(tmp_path / "me"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    with pytest.raises(UsageError, match="with your keys"):
        planned(root, work, harness="pi", args=(), model="m", environment=environment)


def as_npm_has_it(folder: Path, name: str, version: str) -> dict[str, str]:
    """A harness as npm installs it, at some version, on a PATH of its own."""
    machine = {"x86_64": "x64", "aarch64": "arm64"}[os.uname().machine]
    program = folder / registry.pins()[name].program.format(cpu=machine, arch=os.uname().machine)
    program.parent.mkdir(parents=True)
    program.write_text("")
    program.chmod(0o755)
    Path(registry.manifest(str(program)) or "").write_text(json.dumps({"version": version}))
    (folder / "bin").mkdir()
    (folder / "bin" / registry.load(name).binary).symlink_to(program)
    (folder / "bin/node").write_text("#!/bin/sh\n")
    (folder / "bin/node").chmod(0o755)
    return {"PATH": str(folder / "bin"), "XDG_CACHE_HOME": str(folder / "cache")}


@pytest.mark.parametrize("name", sorted(registry.pins().keys() - {"node"}))
def test_each_harness_a_major_version_off_its_pin_works_or_says_which_is_needed(root: Root, work: Path, tmp_path: Path, name: str) -> None:
    def found(version: str) -> Any:
        environment = as_npm_has_it(tmp_path / version, name, version)
        return planned(root, work, harness=name, args=(), auth="gateway", provider=None, model="m", environment=environment)

    harness, pin = registry.load(name), registry.pins()[name].version
    major = int(pin.split(".")[0])
    newer = f"{major + 1}.0.0"
    said = beyond(harness, version_of(found(newer).program))
    assert said is not None and newer in said and pin in said
    if harness.version is None:  # no older one of it is to be had
        return
    floor = [*harness.version.floor, 0][:2]
    older = f"{floor[0]}.{floor[1] - 1}.9" if floor[1] else f"{floor[0] - 1}.999.0"
    with pytest.raises(UnavailableError, match=re.escape(f"{older} is too old: ")):
        found(older)


@pytest.mark.parametrize(("version", "said"), [("2.0.0", True), ("1.9.9", False), ("garbage", False)])
def test_a_harness_beyond_the_tested_one_runs_and_is_named(root: Root, work: Path, tmp_path: Path, version: str, said: bool) -> None:
    environment = {"PATH": installed(tmp_path / "new", version), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    found = planned(root, work, harness="pi", args=(), model="m", environment=environment)
    assert version_of(found.program) == version
    assert (beyond(found.harness, version) is not None) == said
