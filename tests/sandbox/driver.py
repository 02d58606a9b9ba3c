"""A launcher with nothing but a sandbox: `python driver.py JSON`. Standard library and amem.sandbox only; run as any user.

The result is one JSON line on descriptor `report` (default 2): exit code, output, error. `do` names a way of waiting.
"""

import json
import os
import socket
import sys
import threading
import time
from contextlib import suppress

from amem.sandbox.child import fork_nursery, fork_stage

asked = json.loads(sys.argv[1])
stages = []
if "key" in asked:  # in a session keyring of its own, as a login gives one
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    add_key, keyctl = (217, 219) if os.uname().machine == "aarch64" else (248, 250)
    assert libc.syscall(keyctl, 1, None) > 0, "no session keyring"
    assert libc.syscall(add_key, b"user", f"amem-test-{asked['key']}".encode(), b"planted-secret", 14, -3) > 0, "no key"


def fork() -> None:
    stages.append(fork_stage())


if asked.get("fork_in_thread"):
    thread = threading.Thread(target=fork)
    thread.start()
    thread.join()
else:
    fork()
nursery = fork_nursery() if asked.get("nursery") else None

from amem.errors import SandboxError  # noqa: E402
from amem.sandbox import host, spec  # noqa: E402
from amem.sandbox.plan import plan  # noqa: E402

stage = stages[0]
if nursery is not None:
    stage.close()
    threading.Thread(target=threading.Event().wait, daemon=True).start()  # a launcher that has threads by now
    stage = nursery.stage()
fields = asked.get("spec", {})
binds = [spec.Bind(*bind) for bind in fields.pop("binds", [])]
binds += spec.interpreter_binds(sys.executable, sys.prefix, sys.base_prefix)
env = spec.base_env(os.environ, "/home/agent", "agent") | fields.pop("env", {})
limits = spec.Limits(**fields.pop("limits", {}))
for name in ("argv", "protect", "hidden"):
    if name in fields:
        fields[name] = tuple(fields[name])
if fields.get("git"):
    fields["git"] = spec.Identity(*fields["git"])
fields["argv"] = tuple(sys.executable if part == "{python}" else part for part in fields["argv"])
asked_spec = spec.SandboxSpec(
    **{"cwd": fields["workdir"], "port": 7431, **fields}, env=tuple(env.items()), binds=tuple(binds), limits=limits
)
output = {1: bytearray(), 2: bytearray()}
result: dict[str, object] = {}


class Memory:
    """A scope whose kernel kills a process as soon as the harness has said something."""

    def __init__(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.far, self.near = socket.create_connection(server.getsockname()), server.accept()[0]
        self.killed = self.closed = False

    def fileno(self) -> int:
        return self.near.fileno()

    def kill(self) -> None:
        self.killed = True
        self.far.send(b"!", socket.MSG_OOB)  # polls as a change of memory.events does

    def ran_out(self) -> bool:
        return self.killed

    def close(self) -> None:
        self.closed = True


memory = Memory() if asked.get("scope") else None


def built(stage_pid: int) -> int:
    """The pid of a PID 1 that has put its filter on, the last step of a plan, and sleeps."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        for pid in _children(stage_pid):
            with suppress(OSError), open(f"/proc/{pid}/status") as file:
                status = dict(line.split(":\t", 1) for line in file)
                if status["Seccomp"] == "2\n" and status["State"].startswith("S"):
                    return pid
    raise AssertionError("no sandbox was built")


def _children(pid: int) -> list[int]:
    with open(f"/proc/{pid}/task/{pid}/children") as children:
        return [int(word) for word in children.read().split()]


def keep(stream: int, data: bytes) -> None:
    output[stream] += data
    if memory is not None:
        memory.kill()
    if asked.get("echo"):
        os.write(1, data)


try:
    without, no_idmap, steps, idmap = frozenset(asked.get("without", ())), asked.get("no_idmap"), None, False
    with suppress(SandboxError):  # the stage says so, as in a launch, where it is the stage that plans
        facts = host.facts(asked_spec)
        if no_idmap:
            facts = facts._replace(idmap_owners=None)
        idmap = facts.idmap_owners is not None
        if without or no_idmap:
            steps = plan(asked_spec, facts, without)
    if asked.get("order_first"):
        stage.order(asked_spec, steps)
        result["before"] = _children(built(stage.pid))
    running = stage.start(asked_spec, steps, **asked.get("start", {}))
    result |= {"pid": running.pid, "warnings": running.warnings, "idmap": idmap}
    if asked.get("announce"):
        os.write(1, f"started {running.pid} {stage.pid}\n".encode())
    running.memory = memory
    while "ready" in asked and asked["ready"].encode() not in output[1]:  # the harness is where the test wants it before the clock runs
        keep(1, os.read(running.stdout_fd, 4096))
    result["code"] = running.wait(None if asked_spec.interactive else keep, asked.get("timeout_s"))
    result |= {"exec_errno": running.exec_errno, "limit": running.limit, "closed": memory is not None and memory.closed}
except SandboxError as error:
    result |= {"error": error.message, "step": error.step, "hint": error.hint}
result |= {"out": output[1].decode(errors="replace"), "err": output[2].decode(errors="replace")}
with open(asked.get("report", 2), "w", closefd=False) as report:
    print(json.dumps(result), file=report)
code = result.get("code")
sys.exit(code if isinstance(code, int) and asked_spec.interactive else 0)
