"""`amem notice`: tell the owner that tasks need a person, as `[notice]` in grants.toml says."""

import fcntl
import json
import os
import subprocess
from collections.abc import Mapping
from urllib.parse import urlsplit

import click

from amem.cli.context import Context
from amem.cli.output import one_line, print_json
from amem.errors import AmemError, ConfigError, UnavailableError
from amem.typed import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amem.memory.notice import Waiting
    from amem.settings.grants import Notice

TIMEOUT_S = 20.0
PASSED = ("PATH", "HOME", "LANG", "LC_ALL", "TZ", "USER", "DISPLAY", "WAYLAND_DISPLAY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR")
"""What the owner's command gets of the environment: no key is among it."""


@click.group(epilog="Example: amem notice test")
def group() -> None:
    """Be told of tasks that need a person."""


@group.command(epilog="Example: amem notice test")
@click.pass_obj
def test(context: Context) -> int:
    """Send what waits for a person now, and say whether it arrived."""
    notice = _notice(context)
    failed: AmemError | None = None
    try:
        _send(context, notice, _waiting(context))
    except AmemError as error:
        failed = error
    to = notice.webhook or notice.command[0]
    if context.flags.json:
        print_json({"sent": failed is None, "to": to, **({"why": failed.message} if failed else {})})
        return 0 if failed is None else 1
    if failed is not None:
        raise failed
    print(one_line(f"sent to {to}"))
    return 0


@group.command(hidden=True)
@click.option("--turn", type=int)
@click.pass_obj
def send(context: Context, turn: int | None) -> int:
    """Send once it is this one's turn, if there is a task that was not told of yet."""
    from amem.launch import keep
    from amem.memory.notice import lock

    sending = lock(context.root.state / "notice.sending")
    try:
        fcntl.flock(sending, fcntl.LOCK_EX)  # before the turn is given up: there is never more than one that sends and one that waits
        if turn is not None:
            os.close(turn)
        with keep.changing(context.root.state / "notice.json") as document:
            return _tell(context, document)
    finally:
        os.close(sending)


def _tell(context: Context, document: dict[str, Any]) -> int:
    """Send what waits, unless all of it was told before, and take note of it."""
    notice, tasks = _notice(context), _waiting(context)
    told = document.get("told", {})
    if all(told.get(id) == list(one) for id, one in tasks.items()):
        return 0
    why = None
    try:
        _send(context, notice, tasks)
    except AmemError as error:
        why = error.message
    document.update({"told": tasks if why is None else told, "sent": why is None, "why": why})
    return 0 if why is None else 1


def _notice(context: Context) -> "Notice":
    if context.grants.notice is None:
        raise ConfigError(f"{context.root.grants}: notice: names neither a command nor a webhook", hint="amem doctor --config")
    return context.grants.notice


def _waiting(context: Context) -> "Mapping[str, Waiting]":
    from amem.ledger.opening import open_reading
    from amem.memory import notice

    with open_reading(context.root, context.grants) as ledger:
        return notice.waiting(ledger, context.grants)


def _send(context: Context, notice: "Notice", tasks: "Mapping[str, Waiting]") -> None:
    """Raises UnavailableError when it did not arrive."""
    from amem.memory.notice import document

    text = json.dumps(document(tasks)).encode()
    if notice.webhook is not None:
        _post(context, notice.webhook, text)
        return
    environment = {name: os.environ[name] for name in PASSED if name in os.environ}
    try:
        done = subprocess.run(notice.command, input=text, capture_output=True, timeout=TIMEOUT_S, env=environment, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UnavailableError(f"notice.command: {error}", hint="amem notice test") from None
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()[-300:]
        raise UnavailableError(f"notice.command exited with {done.returncode}: {said}", hint="amem notice test")


def _post(context: Context, url: str, text: bytes) -> None:
    """POST to the very address that the policy saw; no redirect is followed."""
    import http.client
    import socket
    import ssl

    found = urlsplit(url)
    host, secure = found.hostname or "", found.scheme == "https"
    port = found.port or (443 if secure else 80)
    path = (found.path or "/") + (f"?{found.query}" if found.query else "")
    try:
        addresses = sorted({str(row[4][0]) for row in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)})
        _allowed(context, url, host, addresses)
        with socket.create_connection((addresses[0], port), timeout=TIMEOUT_S) as plain:
            sock = ssl.create_default_context().wrap_socket(plain, server_hostname=host) if secure else plain
            connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT_S)
            connection.sock = sock
            with sock:
                connection.request("POST", path, text, {"Content-Type": "application/json", "User-Agent": "amem"})
                status = connection.getresponse().status
    except (OSError, http.client.HTTPException) as error:
        raise UnavailableError(f"notice.webhook: {host}: {error}", hint="amem notice test") from error
    if not 200 <= status < 300:
        raise UnavailableError(f"notice.webhook: {host} answered {status}", hint="amem notice test")


def _allowed(context: Context, url: str, host: str, addresses: list[str]) -> None:
    """Ask the policy, which logs its answer. Raises UnavailableError when it says no."""
    from amem.logs import writer
    from amem.model import clock, ids
    from amem.model.label import Label
    from amem.model.principal import SYSTEM
    from amem.policy import engine, request
    from amem.policy.door import Door
    from amem.policy.reasons import sentence

    reach = request.Reach(tool=True, hosts=((host, Label.PUBLIC),), methods=("POST",), loopback=all(map(_loops, addresses)))
    logs = writer.Writer(context.root.state)
    try:
        door = Door(engine.load(context.root.policy, engine.grants_data(context.grants)), logs.append, clock.now)
        asked: Any = {
            "principal": SYSTEM, "domain": context.grants.default_domain or next(iter(context.grants.domains)), "task": None,
            "session": ids.draw("session"), "label": Label.PUBLIC, "tap": "notice", "granted": reach, "method": "POST", "url": url,
            "addresses": addresses,
        }  # fmt: skip
        decision = door.decide(request.fetch(**asked))
    except ValueError as error:
        raise UnavailableError(f"notice.webhook: {error}") from error
    finally:
        logs.close()
    if not decision.allow:
        told = "; ".join(sentence(reason.code, reason.facts) for reason in decision.reasons)
        raise UnavailableError(f"notice.webhook: the policy says no: {told}", hint=f"amem decisions show {decision.id}")


def _loops(address: str) -> bool:
    from ipaddress import ip_address

    return ip_address(address.partition("%")[0]).is_loopback
