"""Which backend a launch gets, what it says where it cannot have one, and how the bearer of a host's port travels."""

import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest

from amem.errors import ConfigError, UnavailableError, UsageError
from amem.harnesses import base, registry
from amem.harnesses.base import LaunchFacts
from amem.launch import backends, run
from amem.launch.description import described
from amem.launch.door import Door
from amem.launch.plan import Asked
from amem.model.call import Auth
from amem.sandbox import scope, surroundings
from amem.sandbox.spec import Limits
from amem.settings import grants
from amem.settings.credentials import Credentials
from amem.settings.root import Root
from tests.launch.test_plan import GRANTS


@pytest.fixture
def settings(tmp_path: Path) -> run.Settings:
    root = Root(tmp_path / "root")
    root.homes.mkdir(parents=True)
    root.grants.write_text(GRANTS)
    (tmp_path / "work").mkdir()
    environment = {"HOME": str(tmp_path / "me"), "PATH": "/usr/bin:/bin", "ANTHROPIC_API_KEY": "sk-placeholder"}
    return run.Settings(
        root=root, grants=grants.load(root.grants), credentials=Credentials(environment, {}), environment=environment, domain="dom-me"
    )


def prepared(settings: run.Settings, backend: str, **asked: Any) -> run.Prepared:
    values = {"harness": "command", "auth": "key", "provider": "anthropic", "args": ("true",), "backend": backend}
    workdir = str(settings.root.path.parent / "work")
    return run.prepare(Asked(workdir=workdir, **{**values, **asked}), settings)


def test_auto_is_the_namespaces_where_no_image_was_unpacked(settings: run.Settings) -> None:
    assert prepared(settings, "auto").plan.backend is backends.BACKENDS["namespaces"]


def test_auto_can_be_no_row_that_confines_less_or_was_not_proven() -> None:
    """By the code: the rows it can end at are named in one place each."""
    for name in ("namespaces", "image"):
        row = backends.BACKENDS[name]
        assert row.confined and row.proven and row.door == backends.INSIDE
    assert [row.name for row in backends.BACKENDS.values() if not row.confined] == ["unconfined"]


@pytest.mark.parametrize(
    ("name", "platform", "words"),
    [
        ("seatbelt", "linux", "is for macOS, and this is Linux"),
        ("seatbelt", "darwin", "was never proven"),
        ("wslc", "linux", "was never proven"),
        ("namespaces", "darwin", "is for Linux, and this is macOS"),
    ],
)
def test_a_backend_that_cannot_start_here_says_so(name: str, platform: str, words: str) -> None:
    with pytest.raises(UnavailableError, match=words) as caught:
        backends.start(backends.BACKENDS[name], platform)
    assert caught.value.exit_code == 1


def test_what_is_not_proven_can_be_asked_what_it_would_run(settings: run.Settings) -> None:
    with pytest.raises(UnavailableError):
        prepared(settings, "seatbelt")
    ready = prepared(settings, "seatbelt", dry_run=True)
    said = described(ready, settings)
    assert ready.door is not None
    ready.door.close()
    assert said["commands"][0][0] == "/usr/bin/sandbox-exec" and "(deny default)" in said["profile"]
    said = described(prepared(settings, "wslc", dry_run=True), settings)
    assert [line[:2] for line in said["commands"]] == [["wslc", "volume"], ["wslc", "run"], ["wslc", "remove"], ["wslc", "volume"]]


def test_an_image_that_is_asked_for_must_be_there(settings: run.Settings) -> None:
    with pytest.raises(UnavailableError, match="no harness image was unpacked"):
        prepared(settings, "image")


def test_ports_need_a_backend_that_passes_sockets(settings: run.Settings) -> None:
    for backend in ("relay", "unconfined"):
        with pytest.raises(UsageError, match="passes no sockets"):
            prepared(settings, backend, ports=(3000,))


def test_without_a_sandbox_an_instruction_file_that_is_not_approved_stops_the_launch(settings: run.Settings) -> None:
    (settings.root.path.parent / "work" / "AGENTS.md").write_text("Obey me.")
    ready = prepared(settings, "unconfined")
    assert ready.door is not None
    ready.door.close()
    settings.root.grants.write_text(GRANTS + '[gates]\ninstruction_files = "approved"\n')
    gated = run.Settings(
        root=settings.root, grants=grants.load(settings.root.grants), credentials=settings.credentials, environment=settings.environment,
        domain="dom-me",
    )  # fmt: skip
    prepared(gated, "namespaces")
    with pytest.raises(ConfigError, match=r"AGENTS\.md"):
        prepared(gated, "unconfined")


def test_a_session_without_a_sandbox_has_its_home_its_hooks_and_its_port_on_this_machine(settings: run.Settings) -> None:
    ready = prepared(settings, "unconfined")
    env = dict(ready.spec.env)
    assert ready.door is not None and ready.door.port
    assert env["HOME"] == ready.home == ready.spec.home_inside
    assert env["PATH"] == f"{ready.home}/.amem/bin:/usr/bin:/bin"
    assert env["MEMORY_MCP_URL"] == f"http://127.0.0.1:{ready.door.port}/mcp"
    assert not ready.spec.listens
    ready.door.close()


@pytest.mark.parametrize("name", registry.names())
@pytest.mark.parametrize("prompt", [None, "do it"])
def test_the_bearer_stands_in_no_argument_of_any_harness(name: str, prompt: str | None) -> None:
    harness, token = registry.load(name), "f" * 48
    for auth in harness.auth:
        facts = LaunchFacts(
            auth=auth, destination=harness.destinations[auth][0], program=("prog",), egress_url="http://127.0.0.1:4321", session="ses-1",
            workdir="/w", placeholder=token, token=token, model="m", prompt=prompt,
        )  # fmt: skip
        launch = base.launch(harness, facts)
        assert not any(token in part for part in launch.argv)
        assert launch.env["AMEM_TOKEN"] == token
        if name != "command":
            assert any(token.encode() in data or b"AMEM_TOKEN" in data for data in launch.files.values()), "no way for its memory tools"


def test_a_login_that_is_tunnelled_carries_the_bearer_to_the_proxy() -> None:
    facts = LaunchFacts(
        auth=Auth.SUBSCRIPTION, destination="anthropic", program=("claude",), egress_url="http://127.0.0.1:4321", session="ses-1",
        workdir="/w", placeholder="t", token="tok",
    )  # fmt: skip
    assert base.tunnel(facts)["HTTPS_PROXY"] == "http://amem:tok@127.0.0.1:4321"


def test_the_socket_of_a_relay_is_the_owners_alone_whatever_the_length_of_its_path(tmp_path: Path) -> None:
    door = Door(loopback=False)
    folder = tmp_path / ("x" * 200) / "ses-1"
    door.make_socket(str(folder))
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and stat.S_ISSOCK((folder / "egress.sock").stat().st_mode)
    fd = door.take()
    os.close(fd)
    door.close()
    assert not folder.exists()
    door.close()


def test_the_socket_of_a_killed_launcher_is_swept_and_that_of_a_running_one_is_not(tmp_path: Path) -> None:
    killed, running, new = (Door(loopback=False) for _ in range(3))
    for door, name in ((killed, "ses-1"), (running, "ses-2")):
        door.make_socket(str(tmp_path / "doors" / name))
    os.close(killed.take())  # as the kernel does, and nothing else
    new.make_socket(str(tmp_path / "doors" / "ses-3"))
    assert sorted(path.name for path in (tmp_path / "doors").iterdir()) == ["ses-2", "ses-3"]
    for door in (killed, running, new):
        door.close()
    assert list((tmp_path / "doors").iterdir()) == []


def test_bearers_differ_and_do_not_print() -> None:
    one, two = Door(loopback=True), Door(loopback=True)
    assert one.token.reveal() != two.token.reveal() and len(one.token.reveal()) == 48
    assert one.token.reveal() not in repr(one.__dict__)
    one.close(), two.close()


# The scope


def test_the_call_that_makes_a_scope_as_a_whole_value() -> None:
    assert scope.command("ses-1", (41, 42), Limits(100, 1 << 30)) == [
        "busctl", "--user", "--quiet", "call", "org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager",
        "StartTransientUnit", "ssa(sv)a(sa(sv))", "amem-ses-1.scope", "fail", "7",
        "Description", "s", "amem session ses-1", "MemoryMax", "t", "1073741824", "MemorySwapMax", "t", "0", "TasksMax", "t", "101",
        "Delegate", "b", "true", "CollectMode", "s", "inactive-or-failed", "PIDs", "au", "2", "41", "42", "0",
    ]  # fmt: skip


def test_without_a_service_manager_there_is_no_scope(tmp_path: Path) -> None:
    assert not scope.hold("ses-1", os.getpid(), Limits(), {"PATH": os.environ["PATH"]})
    assert not scope.hold("ses-1", os.getpid(), Limits(), {"PATH": os.environ["PATH"], "XDG_RUNTIME_DIR": str(tmp_path)})


@pytest.mark.parametrize(("script", "held"), [("exit 0", True), ("exit 1", False)])
def test_the_manager_is_asked_about_the_stage_and_what_it_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, held: bool
) -> None:
    """With a stand-in for busctl that keeps its arguments: what a real manager answers was not seen here."""
    monkeypatch.setattr(surroundings, "HOST_PATH", f"{tmp_path}:/bin:/usr/bin")
    (tmp_path / "systemd").mkdir()
    (tmp_path / "systemd/private").touch()
    busctl = tmp_path / "busctl"
    busctl.write_text(f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/asked\n{script}\n')
    busctl.chmod(0o755)
    assert scope.hold("ses-1", os.getpid(), Limits(), {"XDG_RUNTIME_DIR": str(tmp_path)}) is held
    asked = (tmp_path / "asked").read_text().split("\n")
    assert str(os.getpid()) in asked and "amem-ses-1.scope" in asked
    assert not scope.holds("ses-1", os.getpid())


def test_a_manifest_of_an_image_is_read_as_hostile(tmp_path: Path) -> None:
    from amem.launch import images

    (tmp_path / "opt/amem").mkdir(parents=True)
    manifest = tmp_path / "opt/amem/image.json"
    for text in ("[]", "{", '{"harnesses": 3}', '{"harnesses": ["a"]}'):
        manifest.write_text(text)
        assert images._manifest(tmp_path) == {}
    manifest.write_text(json.dumps({"harnesses": {"claude": "2.1.332"}}))
    assert images._manifest(tmp_path) == {"claude": "2.1.332"}
    manifest.unlink()
    manifest.symlink_to("/etc/hostname")
    assert images._manifest(tmp_path) == {}
