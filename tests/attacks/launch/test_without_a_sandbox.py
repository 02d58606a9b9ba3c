"""`--unconfined`: never by itself, never quietly, its port closed to whoever lacks the bearer, and nothing of it left at the end."""

import json
import os
import select
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from amem.testing.provider import Running
from tests.acceptance.conftest import PROJECT, Place, confinement, place, provider  # noqa: F401 (fixtures)
from tests.sandbox.launching import ORDINARY_ID

MESSAGE = {"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}
WAIT = "tail -f /dev/null"
WAITING = f"echo port=$MEMORY_MCP_URL; echo token=$AMEM_TOKEN; {WAIT}"


@contextmanager
def session(place: Place, script: str, *flags: str) -> Iterator["tuple[subprocess.Popen[bytes], dict[str, str]]"]:  # noqa: F811
    """A launch whose harness prints `key=value` lines and then waits; ended whatever happens."""
    words = place.command("launch", "--harness", "command", *place.launch_flags(), "--unconfined", *flags, "--", "sh", "-c", script)
    running = subprocess.Popen(words, cwd=PROJECT, env=place.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    try:
        assert running.stdout is not None
        seen = b""
        while seen.count(b"\n") < script.count("echo "):
            assert select.select([running.stdout], [], [], 60)[0], seen
            data = os.read(running.stdout.fileno(), 4096)
            assert data, seen
            seen += data
        yield running, dict(line.split("=", 1) for line in seen.decode().splitlines())
    finally:
        running.send_signal(signal.SIGTERM)
        try:
            running.wait(60)
        finally:
            running.kill()
            running.wait()
            assert running.stdout is not None
            running.stdout.close()


def status(url: str, data: object, **headers: str) -> int:
    asked = urllib.request.Request(url, json.dumps(data).encode(), {"Content-Type": "application/json", **headers})
    try:
        with urllib.request.urlopen(asked, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


def processes() -> list[tuple[int, bytes]]:
    found = []
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                found.append((int(folder.name), (folder / "cmdline").read_bytes()))
            except OSError:
                continue
    return found


def test_a_call_without_the_bearer_is_refused_and_nothing_leaves(place: Place, provider: Running) -> None:  # noqa: F811
    place.destination(provider.url)
    with session(place, WAITING) as (_, said):
        base = said["port"].removesuffix("/mcp")
        for headers in ({}, {"x-api-key": "other"}, {"Authorization": f"Bearer {said['token'][:-1]}0x"}):
            assert status(f"{base}/v1/messages", MESSAGE, **{"anthropic-version": "2023-06-01", **headers}) == 403
            assert status(said["port"], {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}, **headers) == 401
            assert status(f"{base}/hook/pre-tool?harness=claude", {}, **headers) == 403
        assert [each for each in provider.log if each.path.endswith("/messages")] == []
        assert status(f"{base}/v1/messages", MESSAGE, **{"anthropic-version": "2023-06-01", "x-api-key": said["token"]}) == 200
        sent = [each for each in provider.log if each.path.endswith("/messages")]
        assert len(sent) == 1 and said["token"] not in json.dumps(dict(sent[0].headers))


def test_the_bearer_stands_in_no_argument_that_other_users_may_read(place: Place, provider: Running) -> None:  # noqa: F811
    place.destination(provider.url)
    with session(place, WAITING) as (_, said):
        assert len(said["token"]) == 48
        assert not [line for _, line in processes() if said["token"].encode() in line]
    assert not [path for path in place.root.rglob("*.jsonl") if said["token"] in path.read_text()]


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_another_user_of_the_machine_has_the_port_and_no_way_to_the_bearer(place: Place, provider: Running) -> None:  # noqa: F811
    place.destination(provider.url)
    probe = """
import glob, http.client, sys
port, token = int(sys.argv[1]), sys.argv[2]
connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
connection.request("POST", "/v1/messages", "{}", {"Content-Type": "application/json"})
print(connection.getresponse().status)
needle, found = token.encode()[1:], 0
for path in [*glob.glob("/proc/[0-9]*/environ"), *glob.glob("/proc/[0-9]*/cmdline"), *glob.glob(sys.argv[3] + "/**", recursive=True)]:
    try:
        found += needle in open(path, "rb").read() and "/%d/" % __import__("os").getpid() not in path
    except OSError:
        pass
print(found)
"""
    with session(place, WAITING) as (_, said):
        port = said["port"].rpartition(":")[2].partition("/")[0]
        done = subprocess.run(
            ["/usr/bin/python3", "-c", probe, port, said["token"], str(place.root)],
            user=ORDINARY_ID, group=ORDINARY_ID, extra_groups=[], cwd="/", capture_output=True, text=True, timeout=60,
        )  # fmt: skip
    assert done.stdout.split() == ["403", "0"], done.stderr


def test_it_is_said_loudly_and_stands_in_the_sessions_row(place: Place, provider: Running) -> None:  # noqa: F811
    place.destination(provider.url)
    done = place.launch("--unconfined", "--json", "--", "true")
    assert done.code == 0, done.err
    assert "UNCONFINED: there is no sandbox" in done.err
    assert done.json["backend"] == "unconfined"
    assert place.amem("session", "show", done.json["id"], "--json").json["backend"] == "unconfined"
    rows = {row["name"]: row for row in place.amem("doctor", "--json").json["checks"] if row["area"] == "backend"}
    assert rows["unconfined"]["state"] == "weak" and done.json["id"] in rows["unconfined"]["why"]


@pytest.mark.skipif(os.geteuid() != 0, reason="takes namespaces away from a child")
@pytest.mark.parametrize("backend", ["auto", "namespaces", "relay"])
def test_where_no_sandbox_can_be_made_nothing_runs(place: Place, provider: Running, backend: str) -> None:  # noqa: F811
    place.destination(provider.url)
    words = place.command(
        "launch", "--harness", "command", *place.launch_flags(), "--backend", backend, "--", "touch", str(place.tree / "ran")
    )
    nothing = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "sh", "-c", nothing, "sh", *words],
        cwd=PROJECT, env=place.environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 125, done.stderr
    assert "namespaces" in done.stderr and "UNCONFINED" not in done.stderr
    assert not (place.tree / "ran").exists()


@pytest.mark.parametrize("how", ["stop", "kill -9 of the launcher", "its end"])
def test_nothing_that_the_harness_started_is_left(place: Place, provider: Running, how: str) -> None:  # noqa: F811
    """Without a pid namespace: also what left its session and its parent."""
    place.destination(provider.url)
    mark = f"{int(time.time())}{os.getpid()}"
    leaves = f"{sys.executable} -c 'import os,time; os.fork() and os._exit(0); os.setsid(); os.fork() and os._exit(0); time.sleep({mark})'"
    script = f"{leaves}; echo left=1; " + ("exit 3" if how == "its end" else WAIT)
    with session(place, script) as (running, _):
        if how == "stop":
            id = place.amem("session", "list", "--json").json["sessions"][0]["id"]
            assert place.amem("session", "stop", id).code == 0
        elif how.startswith("kill"):
            running.kill()
        code = running.wait(60)
        assert code == {"stop": 143, "its end": 3}.get(how, -signal.SIGKILL)
        deadline = time.monotonic() + 30
        while left := [pid for pid, line in processes() if f"time.sleep({mark})".encode() in line and pid != os.getpid()]:
            assert time.monotonic() < deadline, left
            time.sleep(0.05)


def test_the_flag_and_another_backend_exclude_each_other(place: Place) -> None:  # noqa: F811
    done = place.launch("--unconfined", "--backend", "namespaces", "--", "true")
    assert done.code == 2 and "exclude each other" in done.err
