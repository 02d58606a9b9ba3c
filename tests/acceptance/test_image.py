"""Harness images as a person uses them: unpacked, picked, kept by whoever shows one, removed; and a real one, built and used."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from amem.testing.provider import Running
from tests.acceptance.conftest import PROJECT, Place
from tests.sandbox.images import archive, lay_out

NAME = re.compile(r"^PRETTY_NAME=(.*)$", re.MULTILINE)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    return archive(lay_out(tmp_path / "image"), tmp_path / "small.tar")


def release(place: Place, *flags: str) -> str:
    done = place.launch(*flags, "--", "cat", "/etc/os-release")
    assert done.code == 0, done.err
    found = NAME.search(done.out)
    assert found is not None
    return found[1]


def test_auto_shows_the_unpacked_image_and_says_so_and_namespaces_goes_back(place: Place, provider: Running, small: Path) -> None:
    place.destination(provider.url)
    before = release(place)
    done = place.amem("image", "unpack", "--from", str(small))
    assert done.code == 0 and done.out.startswith("img-"), done.err
    listed = place.amem("image", "list", "--json").json["images"]
    assert [(row["id"], row["current"], row["in_use"]) for row in listed] == [(done.out.partition(":")[0], True, False)]
    said = place.launch("--json", "--", "true")
    assert said.code == 127  # no `true` in it, and none of the host's
    assert said.json["backend"] == "image" and "backend image" in said.err
    assert release(place) == release(place, "--backend", "image") == '"a small image"'
    assert release(place, "--backend", "namespaces") == before != '"a small image"'


def test_the_node_of_an_image_is_found_by_every_program_of_it(place: Place, provider: Running, tmp_path: Path, small: Path) -> None:
    spec = importlib.util.spec_from_file_location("build_image", PROJECT / "scripts/build-image.py")
    assert spec is not None and spec.loader is not None
    build = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(build)
    pinned = tmp_path / "cache/node-1/bin/node"
    pinned.parent.mkdir(parents=True)
    pinned.write_text("#!/bin/sh\necho the pinned one\n")
    pinned.chmod(0o755)
    build.add(small, {f"{build.HARNESSES}/node-1": tmp_path / "cache/node-1"}, b"{}")
    build.also(small, build.NODE, f"{build.HARNESSES}/node-1/bin/node")
    place.destination(provider.url)
    assert place.amem("image", "unpack", "--from", str(small)).code == 0
    done = place.launch("--backend", "image", "--", "sh", "-c", "node; ls /opt")
    assert (done.code, done.out) == (0, "the pinned one\nmemory\n"), done.err


def test_what_an_ordinary_user_needs_to_build_one_is_named(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root needs none of it")
    for name in ("mmdebstrap", "env"):
        (tmp_path / name).symlink_to("/bin/true")
    words = [sys.executable, PROJECT / "scripts/build-image.py", "--no-harness", "--out", tmp_path / "image.tar"]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "PATH": str(tmp_path)}, timeout=60, check=False)
    assert done.returncode == 1 and done.stderr.endswith("try: apt-get install uidmap\n"), done.stderr


def test_a_harness_that_the_image_lacks_runs_from_this_machine_under_auto_alone(place: Place, provider: Running, small: Path) -> None:
    place.destination(provider.url)
    assert place.amem("image", "unpack", "--from", str(small)).code == 0
    folder = place.base / "bin"
    folder.mkdir()
    (folder / "codex").write_text("#!/bin/sh\necho of this machine\n")
    (folder / "codex").chmod(0o755)
    path = {"PATH": f"{folder}:{os.environ['PATH']}"}
    found = place.launch("--model", "m", "--prompt", "x", "--no-handoff", "--json", harness="codex", **path)
    assert found.json["backend"] == "namespaces" and "backend namespaces" in found.err
    refused = place.launch("--backend", "image", "--model", "m", "--prompt", "x", harness="codex", **path)
    assert refused.code == 1 and "the image has no codex" in refused.err


def test_a_running_session_keeps_its_image_while_another_is_unpacked(place: Place, provider: Running, tmp_path: Path, small: Path) -> None:
    place.destination(provider.url)
    assert place.amem("image", "unpack", "--from", str(small)).code == 0
    first = place.amem("image", "list", "--json").json["images"][0]["id"]
    os.mkfifo(place.tree / "go")
    script = "echo started; read line < go; cat /etc/os-release; ls /usr/bin"
    running = subprocess.Popen(
        place.command("launch", "--harness", "command", *place.launch_flags(), "--", "sh", "-c", script),
        cwd=PROJECT, env=place.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    try:
        assert running.stdout is not None and running.stdout.readline() == "started\n"
        (tmp_path / "image/usr/lib/os-release").write_text('PRETTY_NAME="a newer image"\n')
        assert place.amem("image", "unpack", "--from", str(archive(tmp_path / "image", tmp_path / "newer.tar"))).code == 0
        rows = {row["id"]: row for row in place.amem("image", "list", "--json").json["images"]}
        assert len(rows) == 2 and rows[first]["in_use"] and not rows[first]["current"]
        refused = place.amem("image", "remove", first, "--yes")
        assert refused.code == 1 and "a running session shows" in refused.err
        assert release(place) == '"a newer image"'
        (place.tree / "go").write_text("on\n")
        assert '"a small image"' in running.communicate(timeout=60)[0]
    finally:
        running.kill()
        running.wait()
        assert running.stdout is not None
        running.stdout.close()
    assert place.amem("image", "remove", first, "--yes").code == 0
    assert place.amem("image", "remove", first, "--yes").code == 3
    assert release(place) == '"a newer image"'


def test_what_an_unpacking_left_that_was_killed_is_cleared_and_never_current(place: Place, small: Path) -> None:
    folder = place.root / "state/image"
    (folder / ".part-of-a-killed-one" / "root" / "usr").mkdir(parents=True)
    assert place.amem("image", "list", "--json").json["images"] == []
    assert place.amem("image", "unpack", "--from", str(small)).code == 0
    assert not list(folder.glob(".part-*")) and (folder / "current").is_symlink()


def test_the_same_archive_twice_is_one_image(place: Place, small: Path) -> None:
    assert place.amem("image", "unpack", "--from", str(small)).out == place.amem("image", "unpack", "--from", str(small)).out
    assert len(place.amem("image", "list", "--json").json["images"]) == 1


@pytest.mark.parametrize(("held", "code"), [("podman", 0), ("docker", 0), (None, 1)])
def test_an_image_is_exported_from_the_runtime_that_holds_it(place: Place, small: Path, held: str | None, code: int) -> None:
    """With stand-ins for the runtimes that keep what they were told: no real one answers on this machine."""
    folder = place.base / "bin"
    folder.mkdir()
    for name in ("podman", "docker"):
        (folder / name).write_text(
            f'#!/bin/sh\necho "{name} $*" >> {place.base}/said\n'
            f'case "$1" in image) {"exit 0" if name == held else "exit 1"};; create) echo c0ffee;; export) cat {small};; esac\n'
        )
        (folder / name).chmod(0o755)
    done = place.amem("image", "unpack", PATH=f"{folder}:/usr/bin:/bin")
    assert done.code == code, done.err
    said = (place.base / "said").read_text().splitlines()
    if held is not None:
        assert said[-3:] == [f"{held} create amem-harness true", f"{held} export c0ffee", f"{held} rm c0ffee"]
    else:
        assert "no harness image" in done.err and not any("create" in line for line in said)


@pytest.mark.real
def test_a_real_image_is_built_without_a_container_runtime_and_runs_hooks_and_sessions(place: Place, provider: Running) -> None:
    """Debian's packages by mmdebstrap in a user namespace: the smallest that has what the hook program needs."""
    if shutil.which("mmdebstrap") is None:
        pytest.skip("mmdebstrap is not installed: apt-get install mmdebstrap")
    place.destination(provider.url)
    (place.base / "packages").write_text("python3-minimal  # for the hooks\n")
    built = subprocess.run(
        [
            sys.executable, PROJECT / "scripts/build-image.py", "--variant", "essential", "--packages", place.base / "packages",
            "--no-harness", "--out", place.base / "real.tar",
        ],
        capture_output=True, text=True, timeout=1200, check=False,
    )  # fmt: skip
    if built.returncode != 0 and re.search(r"Could not resolve|Unable to connect|Temporary failure|404  Not Found", built.stderr):
        pytest.skip("no Debian mirror is reached from here")
    assert built.returncode == 0, built.stderr[-3000:]
    unpacked = place.amem("image", "unpack", "--from", str(place.base / "real.tar"))
    assert unpacked.code == 0, unpacked.err
    script = (
        "grep VERSION_CODENAME /etc/os-release; memory version; ls /memory; "
        'echo \'{"tool_name":"Bash","tool_input":{"command":"ls"}}\' | memory hook pre-tool claude; echo hook $?; '
        "touch /usr/x /etc/x; dpkg --version | head -1"
    )
    done = place.launch("--backend", "image", "--", "bash", "-c", script)
    assert done.code == 0, done.err
    assert "VERSION_CODENAME=trixie" in done.out and "hook 0" in done.out and "dpkg" in done.out, done.out + done.err
    assert done.err.count("Read-only file system") == 2
