"""The hook program: what it asks, what it answers, and that nothing that goes wrong lets a tool run."""

import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import amem
from amem.harnesses import registry
from amem.harnesses.base import HookKind
from amem.hooks import run as program
from amem.hooks.run import Unguarded, parse
from tests.hooks.program import ALLOW, answer, at, guard, lay_out, run

EVENT = b'{"tool_name": "Bash", "tool_input": {"command": "ls \xc3\xa9"}}'


@pytest.fixture
def memory(tmp_path: Path) -> Path:
    return lay_out(tmp_path / "opt")


def test_an_allowed_tool_runs_and_the_event_is_passed_on_as_it_came(memory: Path) -> None:
    with guard(ALLOW) as found:
        done = run(memory, "hook", "pre-tool", "claude", event=EVENT, env=at(found.port))
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    head, _, body = found.seen[0].partition(b"\r\n\r\n")
    assert body == EVENT
    assert head.startswith(b"POST /hook/pre-tool?harness=claude HTTP/1.1\r\n")
    assert b"Authorization" not in head


def test_the_bearer_names_the_session_where_there_is_one(memory: Path) -> None:
    with guard(ALLOW) as found:
        run(memory, "hook", "pre-tool", "codex", env=at(found.port) | {"AMEM_TOKEN": "bearer-1"})
    assert b"\r\nAuthorization: Bearer bearer-1\r\n" in found.seen[0]


def test_the_harnesss_own_denial_is_printed_as_the_guard_wrote_it(memory: Path) -> None:
    body = b'{"hookSpecificOutput":{"permissionDecision":"deny"}}'
    with guard(answer("200 OK", body)) as found:
        done = run(memory, "hook", "pre-tool", "claude", env=at(found.port))
    assert (done.returncode, done.stdout, done.stderr) == (0, body, b"")


def test_a_refusal_is_exit_2_with_the_reason(memory: Path) -> None:
    with guard(answer("403 Forbidden", b"use get")) as found:
        done = run(memory, "hook", "pre-tool", "gemini", env=at(found.port))
    assert (done.returncode, done.stdout, done.stderr) == (2, b"", b"use get\n")


def test_antigravity_is_told_that_a_tool_may_run(memory: Path) -> None:
    with guard(ALLOW) as found:
        assert run(memory, "hook", "pre-tool", "agy", env=at(found.port)).stdout == b'{"decision":"allow"}'


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"HTTP/1.1",
        b"HTTP/1.1 204 No Content\r\n",
        answer("200 OK", b"{}")[:-1],
        answer("200 OK", b"{}") + b"x",
        b"HTTP/1.1 200 OK\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: two\r\n\r\n{}",
        answer("500 Internal Server Error", b"oops"),
        answer("404 Not Found", b""),
        b"HTTP/1.1 204 No Content\r\n\r\nbody",
        b"SSH-2.0-x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9999999\r\n\r\n" + b"x" * (program.ANSWER_LIMIT_BYTES + 1),
    ],
)
def test_an_answer_that_cannot_be_trusted_stops_the_tool(memory: Path, reply: bytes) -> None:
    with guard(reply) as found:
        done = run(memory, "hook", "pre-tool", "claude", env=at(found.port))
    assert done.returncode == 2
    assert done.stderr.startswith(b"amem: the guard cannot be asked, so the tool may not run: ")
    assert done.stdout == b""


def test_a_dead_guard_stops_the_tool(memory: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    done = run(memory, "hook", "pre-tool", "claude", env=at(port))
    assert done.returncode == 2 and b"the tool may not run" in done.stderr


@pytest.mark.parametrize(
    "url", ["", "http://127.0.0.1:0/mcp", "http://127.0.0.1:70000/mcp", "http://10.0.0.1:80/mcp", "http://127.0.0.1:\u0661/mcp", "x"]
)
def test_an_environment_without_a_port_of_ours_stops_the_tool(memory: Path, url: str) -> None:
    done = run(memory, "hook", "pre-tool", "claude", env={"MEMORY_MCP_URL": url})
    assert done.returncode == 2 and b"no port of the egress is known" in done.stderr


def test_a_work_trees_settings_cannot_point_the_hook_at_a_guard_of_its_own(memory: Path) -> None:
    """Claude Code gives hooks what `.claude/settings.json` of the tree puts into the environment."""
    with guard(answer("403 Forbidden", b"no")) as ours, guard(ALLOW) as theirs:
        (memory.parent / "port").write_text(f"{ours.port}\n")
        done = run(memory, "hook", "pre-tool", "claude", env=at(theirs.port))
    assert done.returncode == 2
    assert theirs.seen == []


def test_a_stalled_guard_stops_the_tool(memory: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(program, "DEADLINE_S", 0.05)
    monkeypatch.setattr(program, "read_event", lambda: b"{}")
    monkeypatch.setattr(sys, "argv", [str(memory)])
    with socket.create_server(("127.0.0.1", 0)) as listener:  # accepts into its backlog and never answers
        (memory.parent / "port").write_text(str(listener.getsockname()[1]))
        assert program.pre_tool("claude") == 2
    assert "timed out" in capfd.readouterr().err


def test_an_event_above_the_limit_stops_the_tool(memory: Path) -> None:
    with guard(ALLOW) as found:
        done = run(memory, "hook", "pre-tool", "claude", event=b"x" * (program.EVENT_LIMIT_BYTES + 1), env=at(found.port))
    assert done.returncode == 2 and b"above" in done.stderr
    assert found.seen == []


@pytest.mark.parametrize("harness", ["cl aude", "x\r\nHost: y", "é", "a&event=b"])
def test_a_harness_name_cannot_change_the_request(memory: Path, harness: str) -> None:
    with guard(ALLOW) as found:
        done = run(memory, "hook", "pre-tool", harness, env=at(found.port))
    assert done.returncode == 2
    assert found.seen == []


@pytest.mark.parametrize(
    "arguments", [(), ("hook",), ("hook", "pre-tool", "a", "b"), ("hook", "other"), ("shell",), ("relay", "1"), ("version", "x")]
)
def test_there_is_no_other_command(memory: Path, arguments: tuple[str, ...]) -> None:
    done = run(memory, *arguments)
    assert done.returncode == 2 and done.stderr.startswith(b"usage: memory hook ")


def test_version_is_amems(memory: Path) -> None:
    assert run(memory, "version").stdout.decode().strip() == amem.__version__


def test_relay_joins_a_port_to_a_socket(memory: Path, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        relay = subprocess.Popen([memory, "relay", str(port), str(tmp_path / "s")])
        try:
            with _connected(port, relay) as near, listener.accept()[0] as far:
                near.sendall(b"ping")
                assert far.recv(4) == b"ping"
                far.sendall(b"pong")
                assert near.recv(4) == b"pong"
        finally:
            relay.kill()
            relay.wait()


def _connected(port: int, relay: "subprocess.Popen[bytes]") -> socket.socket:
    """A connection, as soon as the relay listens."""
    while relay.poll() is None:
        try:
            return socket.create_connection(("127.0.0.1", port), timeout=30)
        except ConnectionRefusedError:
            continue
    raise AssertionError(f"the relay ended with {relay.returncode}")


def test_every_hook_in_the_tables_is_one_the_program_has() -> None:
    kinds = {hook.kind for name in registry.names() for hook in registry.load(name).hooks}
    assert {kind.value for kind in kinds} <= set(re.split(r"[|\s]", program.USAGE))
    assert kinds == set(HookKind)


def test_the_pre_tool_hook_imports_next_to_nothing(memory: Path) -> None:
    """Its start is paid on each tool call: nothing beyond what a bare interpreter has, but itself and two modules in C."""

    def imported(*arguments: str, env: dict[str, str]) -> set[str]:
        command = [sys.executable, "-ISB", "-X", "importtime", *arguments]
        done = subprocess.run(command, input=b"{}", capture_output=True, env=env, check=True)
        return set(re.findall(r"\| +([\w.]+)$", done.stderr.decode(), re.MULTILINE))

    bare = imported("-c", "pass", env={})
    with guard(ALLOW) as found:
        ours = imported(str(memory), "hook", "pre-tool", "claude", env=at(found.port))
    assert ours - bare == {"amem", "amem.hooks", "amem.hooks.run", "_socket"} | ({"time"} - bare)


@given(st.binary(max_size=60) | st.binary(max_size=60).map(lambda data: b"HTTP/1.1 200 OK\r\n" + data))
def test_no_answer_makes_the_reader_fail_in_another_way(data: bytes) -> None:
    try:
        status, _ = parse(data)
    except (Unguarded, ValueError):
        return
    assert status in (200, 204, 403)
