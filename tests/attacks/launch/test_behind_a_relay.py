"""`--backend relay`: the socket is the session's alone, what is inside cannot take its place, and nothing of it is left."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from amem.testing.demo import MODEL, PROMPT, SCRIPT
from amem.testing.provider import Running
from tests.acceptance.conftest import PROJECT, Place, confinement, place, provider  # noqa: F401 (fixtures)
from tests.sandbox.launching import ORDINARY_ID

RELAYED = ("--backend", "relay")


def test_the_main_job_through_a_relay(place: Place, provider: Running) -> None:  # noqa: F811
    provider.load(SCRIPT)
    place.destination(provider.url)
    fact = ("--type", "fact", "--title", "How a model call leaves", "--body", "Through the egress, under a label and a ceiling.")
    assert place.amem("write", *fact).code == 0
    (place.tree / "agent.py").write_bytes((PROJECT / "examples/agent.py").read_bytes())
    done = place.launch(*RELAYED, "--model", MODEL, "--prompt", PROMPT, "--json", "--", sys.executable, "agent.py")
    assert done.code == 0, done.err
    assert done.json["backend"] == "relay" and len(done.json["handoffs"]) == 1
    totals = provider.totals()
    usage = place.amem("usage", "--json").json["usage"]
    assert sum(row["input"] + row["output"] + row["cache_read"] + row["cache_write"] for row in usage) == sum(
        used.total for used in totals.values()
    )
    assert not (place.root / "state/doors" / done.json["id"]).exists()


def test_inside_there_is_loopback_only_and_the_socket_can_be_neither_removed_nor_replaced(place: Place, provider: Running) -> None:  # noqa: F811
    place.destination(provider.url)
    script = """
import os, socket
def tried(what, *arguments):
    try: what(*arguments)
    except OSError as error: return error.strerror
    return "DONE"
path = "/run/amem/egress.sock"
print(tried(os.unlink, path), tried(os.rename, path, path + "x"), tried(os.rename, "/run/amem", "/run/other"), sep=";")
print(tried(lambda: open("/run/amem/more", "w")), tried(socket.socket(socket.AF_UNIX).bind, "/run/amem/own"), sep=";")
print(tried(socket.create_connection, ("1.1.1.1", 80), 5), tried(socket.create_server, ("127.0.0.1", 7431)), sep=";")
print([line.split(":")[0].strip() for line in open("/proc/net/dev")][2:])
"""
    done = place.launch(*RELAYED, "--", sys.executable, "-c", script)
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    assert "DONE" not in done.out, done.out
    assert lines[0].startswith("Read-only file system;Read-only file system;")
    assert "Address already in use" in lines[2] and lines[3] == "['lo']"


def test_a_call_without_the_bearer_is_refused_from_inside_and_from_the_owners_other_programs(place: Place, provider: Running) -> None:  # noqa: F811
    place.destination(provider.url)
    ask = """
import http.client, os
for token in ("", "x" * 48, os.environ["AMEM_TOKEN"]):
    connection = http.client.HTTPConnection("127.0.0.1", 7431, timeout=60)
    headers = {"Content-Type": "application/json", "anthropic-version": "2023-06-01", **({"x-api-key": token} if token else {})}
    connection.request("POST", "/v1/messages", '{"model": "m", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}', headers)
    print(connection.getresponse().status)
"""
    done = place.launch(*RELAYED, "--", sys.executable, "-c", ask)
    assert done.out.split() == ["403", "403", "200"], done.err
    assert len([each for each in provider.log if each.path.endswith("/messages")]) == 1


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL])
def test_the_socket_is_closed_to_other_users_and_gone_at_the_end(place: Place, provider: Running, sent: signal.Signals) -> None:  # noqa: F811
    place.destination(provider.url)
    words = place.command("launch", "--harness", "command", *place.launch_flags(), *RELAYED, "--", "sh", "-c", "echo up; tail -f /dev/null")
    link = Path(f"/tmp/amem-test-{os.getpid()}-{sent.value}.sock")
    link.unlink(missing_ok=True)
    running = subprocess.Popen(words, cwd=PROJECT, env=place.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    try:
        assert running.stdout is not None and running.stdout.readline() == "up\n"
        (door,) = (place.root / "state/doors").iterdir()
        path = door / "egress.sock"
        assert path.is_socket() and door.stat().st_mode & 0o077 == 0
        link.symlink_to(path)  # the path itself may be longer than a socket's address
        if os.geteuid() == 0:
            reach = f"import socket; socket.socket(socket.AF_UNIX).connect({str(link)!r})"
            other = subprocess.run(
                ["/usr/bin/python3", "-c", reach], user=ORDINARY_ID, group=ORDINARY_ID, extra_groups=[], capture_output=True, text=True
            )
            assert "PermissionError" in other.stderr
        running.send_signal(sent)
        assert running.wait(60) in (143, -sent)
        with socket.socket(socket.AF_UNIX) as late, pytest.raises((FileNotFoundError, ConnectionRefusedError)):
            late.connect(str(link))
        if sent is signal.SIGTERM:
            assert not door.exists()
    finally:
        link.unlink(missing_ok=True)
        running.kill()
        running.wait()
        assert running.stdout is not None
        running.stdout.close()


def test_a_harness_that_ends_its_relay_hurts_itself_alone(place: Place, provider: Running) -> None:  # noqa: F811
    """It cannot be stopped from that; what it gets is an egress that does not answer, and the session ends as ever."""
    place.destination(provider.url)
    script = """
import os, signal, socket
others = [int(pid) for pid in os.listdir("/proc") if pid.isdigit() and int(pid) not in (1, os.getpid())]
(relay,) = [pid for pid in others if b"relay" in open(f"/proc/{pid}/cmdline", "rb").read()]
os.kill(relay, signal.SIGKILL)
try:
    for _ in range(1000):
        socket.create_connection(("127.0.0.1", 7431), 5).close()
except OSError as error:
    print(type(error).__name__)
"""
    done = place.launch(*RELAYED, "--json", "--", sys.executable, "-c", script)
    assert done.code == 0 and "ConnectionRefusedError" in done.err, done
    assert json.loads(done.out)["exit"] == 0


@pytest.mark.parametrize(("program", "code"), [("no-such-program", 127), ("/etc/hostname", 126), ("sh", 0)])
def test_exit_codes_are_the_harnesses_own(place: Place, provider: Running, program: str, code: int) -> None:  # noqa: F811
    place.destination(provider.url)
    assert place.launch(*RELAYED, "--", program, "-c", "exit 0").code == code
    assert code or place.launch(*RELAYED, "--", "sh", "-c", "kill -SEGV $$").code == 139
