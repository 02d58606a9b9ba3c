#!/usr/bin/env python3
"""The local gateway: LiteLLM over PostgreSQL, on loopback.

    scripts/local-gateway.py up | key | memory | spend | down | logs    [--containers yes|no|auto] [--local DIR] [--port N]

`up` starts both and waits until they answer; `key` mints a virtual key into local/.virtual-key (0600), which `make launch` takes;
`spend` prints LiteLLM's spend log as JSON, for `amem cost --reconcile`; `memory` makes the memory's root at MEMORY_ROOT, if it is not
there; `down` stops both and keeps what they hold; `logs` follows LiteLLM's. With Podman or Docker the two are containers
(packaging/compose); without, LiteLLM comes from PyPI (`make gateway`), and PostgreSQL is this machine's.
"""

import argparse
import contextlib
import fcntl
import hashlib
import json
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

PROJECT = Path(__file__).resolve().parents[1]
COMPOSE = PROJECT / "packaging" / "compose"
PYTHON = PROJECT / "build" / "gateway" / "bin" / "python"
STARTS_S = 180.0
TABLES = """
create table if not exists keys(digest text primary key, alias text not null, at timestamptz not null default now());
create table if not exists spend(
  id text primary key, at timestamptz not null default now(), model_group text, model text, api_key text, prompt_tokens bigint,
  completion_tokens bigint, total_tokens bigint, cache_read bigint, cache_write bigint, usd double precision);
"""


class Fault(Exception):
    """Why it does not work, in a sentence for the person."""


class Stack(NamedTuple):
    """One local gateway: where it keeps its things, and where it listens."""

    local: Path
    port: int
    compose: tuple[str, ...]
    """The program of the container runtime, with `compose`; empty without one."""

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def run(self) -> Path:
        """Where LiteLLM's process has its configuration and log."""
        return PROJECT / "build" / "gateway" / f"run-{self.port}"


def main() -> int:
    parser = argparse.ArgumentParser(description="The local gateway: LiteLLM over PostgreSQL, on loopback.")
    parser.add_argument("act", choices=ACTS)
    parser.add_argument("--containers", choices=("auto", "yes", "no"), default=os.environ.get("CONTAINERS") or "auto")
    parser.add_argument("--local", type=Path, default=PROJECT / "local", help="the folder with .env and litellm.yaml")
    parser.add_argument("--port", type=int, default=os.environ.get("GATEWAY_PORT") or 4000, help="PostgreSQL has the next one")
    asked = parser.parse_args()
    try:
        stack = Stack(asked.local.resolve(), asked.port, _compose(asked.containers))
        with _alone(stack) if asked.act in ("up", "key", "down") else contextlib.nullcontext():
            ACTS[asked.act](stack)
    except Fault as fault:
        print(f"error: {fault}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


# ---- the acts --------------------------------------------------------------------------


def up(stack: Stack) -> None:
    """Start what of the two does not run, and wait until the gateway answers."""
    if stack.compose:
        _run([*stack.compose, "-f", str(COMPOSE / "compose.yaml"), "up", "-d"], {**_environment(stack), "GATEWAY_PORT": str(stack.port)})
    else:
        _programs()  # before hundreds of MB are fetched
        if _pid(stack) is None:
            _free(stack, stack.port, "LiteLLM")
        _run(["make", "--silent", "--no-print-directory", "-C", str(PROJECT), "gateway"], os.environ)
        _postgres_up(stack)
        if _pid(stack) is None:
            _litellm_up(stack)
    until = time.monotonic() + STARTS_S
    while not _answers(stack):
        if time.monotonic() > until or not (stack.compose or _pid(stack)):
            raise Fault(f"LiteLLM did not come up; its log: make local-logs, or {stack.run / 'litellm.log'}")
        time.sleep(0.3)
    say(f"LiteLLM answers on {stack.url}; a key for it: make local-key")


def key(stack: Stack) -> None:
    """Mint a virtual key into `.virtual-key`, for this user's eyes only."""
    _needed(stack)
    if stack.compose:
        minted = _minted(stack)
    else:
        minted = f"sk-{secrets.token_urlsafe(24)}"
        digest = hashlib.sha256(minted.encode()).hexdigest()
        _sql(stack, f"insert into keys(digest, alias) values ('{digest}', 'local-key')")
    _keep(stack.local / ".virtual-key", minted + "\n")
    say(f"a virtual key is in {stack.local / '.virtual-key'}; make launch HARNESS=claude AUTH=gateway takes it")


def memory(stack: Stack) -> None:
    """Make the memory's root at MEMORY_ROOT, if it is not there."""
    settings = _environment(stack)
    root = Path(os.path.expanduser(settings.get("MEMORY_ROOT") or "~/.amem"))
    if (root / "grants.toml").exists():
        say(f"the memory's root is at {root}")
        return
    owner = settings.get("AMEM_OWNER") or f"human:local:{pwd.getpwuid(os.getuid()).pw_name}"
    _run([str(PROJECT / ".venv" / "bin" / "amem"), "--root", str(root), "init", "--owner", owner], os.environ)


def spend(stack: Stack) -> None:
    """Print the spend log as JSON."""
    _needed(stack)
    if stack.compose:
        sys.stdout.write(_asked(stack, "/spend/logs?summarize=false").decode())
        return
    _sql(stack, "select coalesce(json_agg(spend order by at), '[]') from spend")


def down(stack: Stack) -> None:
    """Stop both; the data of PostgreSQL stays."""
    if stack.compose:
        _run([*stack.compose, "-f", str(COMPOSE / "compose.yaml"), "down"], _environment(stack))
        return
    if pid := _pid(stack):
        os.kill(pid, signal.SIGTERM)
        until = time.monotonic() + 30
        while _pid(stack) and time.monotonic() < until:
            time.sleep(0.1)
        if _pid(stack):
            os.kill(pid, signal.SIGKILL)
    if _postgres_runs(stack):
        _postgres(stack, "stop", "-w", "-m", "fast")
    say("the gateway is stopped; its keys and spend are kept")


def logs(stack: Stack) -> None:
    """Follow LiteLLM's log."""
    if stack.compose:
        command = [*stack.compose, "-f", str(COMPOSE / "compose.yaml"), "logs", "-f", "litellm"]
        os.execvpe(command[0], command, _environment(stack))
    log = stack.run / "litellm.log"
    if not log.exists():
        raise Fault("LiteLLM has no log yet: make local-up")
    os.execvp("tail", ["tail", "-n", "200", "-F", str(log)])


ACTS = {"up": up, "key": key, "memory": memory, "spend": spend, "down": down, "logs": logs}


# ---- LiteLLM ---------------------------------------------------------------------------


def _litellm_up(stack: Stack) -> None:
    stack.run.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.copy(COMPOSE / "processes-litellm.yaml", stack.run / "config.yaml")
    shutil.copy(COMPOSE / "gateway_hooks.py", stack.run)
    shutil.copy(stack.local / "litellm.yaml", stack.run / "models.yaml")
    environment = {
        **_environment(stack), "GATEWAY_DATABASE_URL": _dsn(stack), "LITELLM_LOCAL_MODEL_COST_MAP": "True", "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    for name in ("DATABASE_URL", "POSTGRES_PASSWORD"):  # LiteLLM would look for tables of its own there
        environment.pop(name, None)
    words = ["--config", "config.yaml", "--host", "127.0.0.1", "--port", str(stack.port), "--telemetry", "False"]
    with open(os.open(stack.run / "litellm.log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as log:
        process = subprocess.Popen(
            [str(PYTHON.parent / "litellm"), *words],
            cwd=stack.run,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    (stack.run / "litellm.pid").write_text(str(process.pid))


def _pid(stack: Stack) -> int | None:
    """The process id of our LiteLLM while it runs; a number that went to another program is not it."""
    try:
        pid = int((stack.run / "litellm.pid").read_text())
        ended = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
        return pid if not ended and os.path.samefile(f"/proc/{pid}/cwd", stack.run) else None
    except (OSError, ValueError):
        return None


def _needed(stack: Stack) -> None:
    """Raise Fault where this stack is not up."""
    if not _answers(stack) or not (stack.compose or (_pid(stack) and _postgres_runs(stack))):
        raise Fault(f"the gateway on {stack.url} is not up: make local-up")


def _free(stack: Stack, port: int, program: str) -> None:
    """Raise Fault where another program has the port."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            another = f"GATEWAY_PORT={stack.port + 10} make local-up, and LLMAO_URL=http://127.0.0.1:{stack.port + 10} for amem"
            raise Fault(f"{program} cannot listen on 127.0.0.1:{port}: {error.strerror}; another port: {another}") from None


def _answers(stack: Stack) -> bool:
    try:
        with urllib.request.urlopen(f"{stack.url}/health/liveliness", timeout=5) as answer:
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError, ValueError):
        return False


def _minted(stack: Stack) -> str:
    """A key from LiteLLM itself, by its master key."""
    try:
        return str(json.loads(_asked(stack, "/key/generate", {"key_alias": f"local-{secrets.token_hex(4)}"}))["key"])
    except (ValueError, KeyError) as error:
        raise Fault(f"LiteLLM minted no key: {error}") from error


def _asked(stack: Stack, path: str, body: "dict[str, str] | None" = None) -> bytes:
    """What LiteLLM answers to its master key."""
    headers = {"authorization": f"Bearer {_secrets(stack)['LITELLM_MASTER_KEY']}", "content-type": "application/json"}
    request = urllib.request.Request(stack.url + path, data=json.dumps(body).encode() if body is not None else None, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return bytes(answer.read())
    except (urllib.error.URLError, OSError) as error:
        raise Fault(f"LiteLLM: {path}: {error}") from error


# ---- PostgreSQL ------------------------------------------------------------------------


def _postgres_up(stack: Stack) -> None:
    folder = stack.local / "postgres"
    if not (folder / "data" / "PG_VERSION").exists():
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        user = _postgres_user()
        if user is not None:
            os.chown(folder, user.pw_uid, user.pw_gid)
        password = folder / ".password"
        _keep(password, _secrets(stack)["POSTGRES_PASSWORD"], user)
        words = ["-D", str(folder / "data"), "-U", "litellm", "-A", "scram-sha-256", f"--pwfile={password}", "-E", "UTF8", "--locale=C"]
        _as_postgres([str(_programs() / "initdb"), *words])
        password.unlink()
    if _postgres_runs(stack):
        port = int((folder / "data" / "postmaster.pid").read_text().splitlines()[3])
        if port != stack.port + 1:
            raise Fault(f"the gateway of {stack.local} runs on port {port - 1} already: GATEWAY_PORT={port - 1} make local-down")
    else:
        _free(stack, stack.port + 1, "PostgreSQL")
        _postgres(stack, "start", "-w", "-l", str(folder / "log"), "-o", f"-h 127.0.0.1 -p {stack.port + 1} -k ''")
    _sql(stack, TABLES)


def _postgres(stack: Stack, *words: str) -> None:
    _as_postgres([str(_programs() / "pg_ctl"), "-D", str(stack.local / "postgres" / "data"), *words])


def _postgres_runs(stack: Stack) -> bool:
    """Whether ours does; a file that one left behind that was killed is no sign of it."""
    data = stack.local / "postgres" / "data"
    if not (data / "postmaster.pid").exists():
        return False
    return _asked_postgres([str(_programs() / "pg_ctl"), "-D", str(data), "status"]).returncode == 0


def _dsn(stack: Stack) -> str:
    password = _secrets(stack)["POSTGRES_PASSWORD"]
    return f"host=127.0.0.1 port={stack.port + 1} user=litellm password={password} dbname=postgres connect_timeout=10"


def _sql(stack: Stack, text: str) -> None:
    """Run SQL with the gateway's own driver, and print its one value. The password goes by the environment: no process list shows it."""
    code = (
        "import json, os, psycopg, sys\n"
        "try:\n"
        "    with psycopg.connect(os.environ['DSN']) as connection:\n"
        "        found = connection.execute(os.environ['SQL'])\n"
        "        if found.description: print(json.dumps(found.fetchone()[0]))\n"
        "except psycopg.Error as error: sys.exit(f'PostgreSQL: {error}')"
    )
    _run([str(PYTHON), "-c", code], {**os.environ, "DSN": _dsn(stack), "SQL": text})


def _programs() -> Path:
    """The folder of the newest PostgreSQL programs on this machine."""
    found = sorted(Path("/usr/lib/postgresql").glob("[0-9]*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    if found:
        return found[-1].parent
    if beside := shutil.which("initdb"):
        return Path(os.path.realpath(beside)).parent
    raise Fault("no PostgreSQL on this machine: sudo apt-get install postgresql (or Podman with compose, for containers)")


def _postgres_user() -> "pwd.struct_passwd | None":
    """Who runs PostgreSQL when we are root, which it refuses; None for everybody else."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        raise Fault("PostgreSQL refuses to run as root, and there is no user postgres") from None


def _as_postgres(command: list[str]) -> None:
    done = _asked_postgres(command)
    if done.returncode:
        raise Fault(f"{Path(command[0]).name}: {done.stderr.strip()[-500:]}")


def _asked_postgres(command: list[str]) -> "subprocess.CompletedProcess[str]":
    user = _postgres_user()
    who = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user is not None else {}
    done: subprocess.CompletedProcess[str] = subprocess.run(
        command, cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False, **who
    )  # type: ignore[call-overload]
    return done


@contextlib.contextmanager
def _alone(stack: Stack) -> Iterator[None]:
    """One act at a time: two that start the same would lose sight of one."""
    if not stack.local.is_dir():
        raise Fault(f"{stack.local} is no folder")
    with (stack.local / ".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


# ---- settings and secrets --------------------------------------------------------------


def _environment(stack: Stack) -> dict[str, str]:
    """The environment, what `.env` says beneath it, and the stack's own secrets."""
    settings: dict[str, str] = {}
    env = stack.local / ".env"
    if env.exists():
        for line in env.read_text().splitlines():
            name, equals, value = line.strip().removeprefix("export ").partition("=")
            if equals and not name.startswith("#") and value:
                settings[name.strip()] = value.strip().strip("\"'")
    return {**_secrets(stack), **settings, **os.environ}


def _secrets(stack: Stack) -> Mapping[str, str]:
    """The stack's own passwords, made once."""
    path = stack.local / ".secrets"
    if not path.exists():
        made = {"LITELLM_MASTER_KEY": f"sk-{secrets.token_urlsafe(24)}", "POSTGRES_PASSWORD": secrets.token_urlsafe(24)}
        _keep(path, json.dumps(made))
    found: dict[str, str] = json.loads(path.read_text())
    return found


def _keep(path: Path, text: str, owner: "pwd.struct_passwd | None" = None) -> None:
    """Write a file that only its owner can read, whole or not at all."""
    half = path.with_name(path.name + ".part")
    half.unlink(missing_ok=True)
    with open(os.open(half, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "w") as file:
        file.write(text)
    if owner is not None:
        os.chown(half, owner.pw_uid, owner.pw_gid)
    half.replace(path)


def _compose(asked: str) -> tuple[str, ...]:
    """The container runtime's compose, where there is one and it is wanted."""
    if asked == "no":
        return ()
    for program in ("podman", "docker"):
        if shutil.which(program):
            works = subprocess.run([program, "compose", "version"], stdin=subprocess.DEVNULL, capture_output=True, check=False)
            if works.returncode == 0:
                return (program, "compose")
    if asked == "yes":
        raise Fault("neither podman nor docker has compose on this machine")
    return ()


def _run(command: list[str], environment: Mapping[str, str]) -> None:
    done = subprocess.run(command, env=dict(environment), stdin=subprocess.DEVNULL, check=False)
    if done.returncode:
        raise Fault(f"{Path(command[0]).name} {command[1] if len(command) > 1 else ''} failed with {done.returncode}")


def say(text: str) -> None:
    print(text, file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
