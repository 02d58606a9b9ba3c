"""Loopback is the only interface, proved from outside through netlink; and the passed-out listener is the way in."""

import json
import os
import socket
import subprocess
from typing import Any

import pytest

from amem.sandbox import network
from tests.sandbox.launching import Place


@pytest.mark.skipif(os.geteuid() != 0, reason="entering another network namespace needs root")
def test_loopback_is_the_only_interface_seen_from_outside(here: Place) -> None:
    running = here.start("sh", "-c", "echo ready; sleep 1000")
    running.until(b"ready\n")
    try:
        assert network.interfaces(running.init) == (("lo", ("127.0.0.1", "::1")),)
    finally:
        running.process.kill()
        running.process.communicate()


def test_host_does_not_have_the_port(here: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        script = f"import socket; socket.create_connection(('127.0.0.1', {port})); print('in')"
        report = here.launch("{python}", "-c", script, spec={"port": port})
        assert report["out"] == "in\n"  # the sandbox's own listener has the same number
        taken.settimeout(0)
        with pytest.raises(BlockingIOError):
            taken.accept()  # nobody came to the host's


SERVE = """
import json, os, socket, sys, threading
from amem.sandbox.child import fork_stage
stage = fork_stage()
from amem.sandbox import host, spec
from amem.sandbox.plan import plan
work, home = sys.argv[1:3]
script = "import socket\\ns = socket.create_connection(('127.0.0.1', 7431)); s.sendall(b'ask'); print(s.recv(99).decode())"
binds = spec.interpreter_binds(sys.executable, sys.prefix, sys.base_prefix)
env = tuple(spec.base_env({}, '/home/agent', 'agent').items())
asked = spec.SandboxSpec(argv=(sys.executable, '-c', script), env=env, workdir=work, cwd=work, home=home, port=7431, binds=binds)
running = stage.start(asked, plan(asked, host.facts(asked)))
listener = socket.socket(fileno=running.listener_fd)
def serve():
    connection, _ = listener.accept()
    with connection:
        assert connection.recv(99) == b'ask'
        connection.sendall(b'answered by the host')
thread = threading.Thread(target=serve)
thread.start()
out = bytearray()
code = running.wait(lambda stream, data: out.extend(data))
thread.join()
print(json.dumps([code, out.decode()]))
"""


def test_host_answers_on_the_passed_out_listener(here: Place) -> None:
    command = [here.python, "-B", "-c", SERVE, str(here.work), str(here.home)]
    ids: dict[str, Any] = here.ids()
    done = subprocess.run(command, **ids, env=here.env(), cwd="/", capture_output=True, text=True, timeout=60)
    assert done.stderr == ""
    assert json.loads(done.stdout) == [0, "answered by the host\n"]
