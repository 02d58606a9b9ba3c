"""A subscription's login: one file of the host's home copied in, and brought home when the harness refreshed it.

Nothing else of the host's home is read. What comes home was written inside a sandbox: it is read through the safe reader and
taken only when it has exactly the shape of what went in, with new tokens, times and numbers at most, and when the host's own file has not
changed meanwhile. A file of another shape, or with another name or address in it, stays where it is.
"""

import json
import os
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from amem.errors import UnavailableError
from amem.harnesses.base import Harness, Login
from amem.sandbox.reader import Refused, read_file
from amem.settings.credentials import Secret

MAX_BYTES = 1 << 20
SHORTEST_SECRET = 20
"""Shorter strings of a login are names and dates."""
_TOKEN = re.compile(r"(?![a-z0-9.-]+\.[a-z]{2,}$)(?!.*://)[A-Za-z0-9._~+/=:|%-]+")
"""What a refresh may write: no name of a host and no address."""
_ACCOUNT = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


@dataclass(frozen=True, kw_only=True)
class Carried:
    """A login that went in."""

    login: Login
    source: str = ""
    """The host's file, links followed; empty for one that came in a variable."""
    digest: str = ""
    data: bytes = field(default=b"", repr=False)
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)
    """What stands in the environment inside."""
    secrets: tuple[Secret, ...] = ()
    """Every text in it that may be a credential: what the account may present to its provider."""


def read_login(harness: Harness, host_home: str, find: Callable[[str], Secret | None] = lambda name: None) -> Carried | None:
    """The harness's login on this machine, to be carried into the session; None for a harness that carries none.

    `find` looks a variable up where the harness can have its login in one, which then counts before the file, as it does for the
    harness itself. Raises UnavailableError that says how to log in on the host.
    """
    login = harness.login
    if login is None:
        return None
    given = next((value for name in login.variables if (value := find(name)) is not None), None)
    if given is not None:
        return Carried(login=login, variables={login.variables[0]: given.reveal()}, secrets=(given,))
    source = os.path.realpath(os.path.join(host_home, login.file))
    try:
        with open(source, "rb") as file:
            data = file.read(MAX_BYTES + 1)
    except OSError as error:
        raise UnavailableError(
            f"{harness.title} is not logged in on this machine: ~/{login.file}: {error.strerror}", hint=f"{login.command}; or --auth key"
        ) from error
    if len(data) > MAX_BYTES:
        raise UnavailableError(f"~/{login.file} has more than {MAX_BYTES} bytes, which is no login", hint=login.command)
    if login.part is not None:
        data = _part(login.part, data)
        if not data:
            raise UnavailableError(
                f"{harness.title} is not logged in on this machine: ~/{login.file} has no {login.part}",
                hint=f"{login.command}; or --auth key",
            )
    ended = _ended(login, data)
    if ended is not None:
        raise UnavailableError(
            f"{harness.title}'s login on this machine ended on {ended}: ~/{login.file}",
            hint=f"run {harness.binary} once outside amem, which renews it ({login.command} where it does not); or --auth key",
        )
    return Carried(login=login, source=source, digest=_digest(data), data=data, secrets=tuple(map(Secret, _secrets(data))))


def _part(name: str, data: bytes) -> bytes:
    """A file with this member alone; empty where it has none."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return b""
    return json.dumps({name: value[name]}).encode() if isinstance(value, dict) and name in value else b""


def _ended(login: Login, data: bytes) -> str | None:
    """When a login's token ended, in UTC; None while it holds, and where its file does not say."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError):
        return None
    for key in login.expiry:
        value = value.get(key) if isinstance(value, dict) else None
    if not isinstance(value, int | float) or isinstance(value, bool) or not 0 < value / 1000 < time.time():
        return None
    return time.strftime("%Y-%m-%d at %H:%M UTC", time.gmtime(value / 1000))


def over(ours: bytes | None, login: bytes) -> bytes:
    """The login's file with what the adapter wants in it besides (Copilot keeps both in one), where that can be read; else as it is."""
    if ours is None:
        return login
    try:
        # Copilot opens the file with lines of comment (1.0.102, 2026-11).
        value = json.loads(b"\n".join(line for line in login.splitlines() if not line.lstrip().startswith(b"//")))
    except (ValueError, RecursionError):
        return login
    return json.dumps({**json.loads(ours), **value}).encode() if isinstance(value, dict) else login


def carry_home(carried: Carried, home: str) -> str | None:
    """Bring a refreshed login home. Returns what a person should know of it, or None when there is nothing to say."""
    if not carried.login.rewritten or not carried.source:
        return None
    found = read_file(home, carried.login.file, MAX_BYTES)
    name = f"~/{carried.login.file}"
    if isinstance(found, Refused):
        return f"the login {name} was not brought home: {found.why}" if found.why != "not there" else None
    if found == carried.data or _same(found, carried.data):
        return None
    shape = _shape(found)
    if shape is None or shape != _shape(carried.data):
        return f"the login {name} was changed inside into something of another shape; it was not brought home"
    try:
        with open(carried.source, "rb") as file:
            now = file.read(MAX_BYTES + 1)
        if _digest(now) != carried.digest:
            return f"the login {name} was refreshed inside, but changed on the host too; the host's own was kept"
        _replace(carried.source, found)
    except OSError as error:
        return f"the refreshed login {name} was not brought home: {error.strerror}"
    return f"the login {name} was refreshed and brought home"


def _same(found: bytes, data: bytes) -> bool:
    """Whether two files say the same in another layout, as Grok's does at every start."""
    try:
        return bool(json.loads(found) == json.loads(data))
    except (ValueError, RecursionError):
        return False


def _replace(path: str, data: bytes) -> None:
    """Put the file in place whole, with the mode it had."""
    import tempfile

    mode = os.stat(path).st_mode & 0o777
    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".amem-")
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, mode & 0o600)
        os.rename(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def _digest(data: bytes) -> str:
    import hashlib

    return hashlib.sha256(data).hexdigest()


def _secrets(data: bytes) -> list[str]:
    """Every text of a login that is long enough to be a credential; of one that is no JSON, the whole."""
    try:
        value = json.loads(data)
    except ValueError:
        return [data.decode("utf-8", "replace").strip()]
    return [text for text in _strings(value) if len(text) >= SHORTEST_SECRET]


def _strings(value: Any) -> list[str]:
    if isinstance(value, str):
        return [value]
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [text for item in items for text in _strings(item)]


def _shape(data: bytes) -> Any:
    """The keys and kinds of a login's JSON, and what a refresh never changes; None for what is no JSON."""
    try:
        return _kinds(json.loads(data))
    except (ValueError, RecursionError):
        return None


def _kinds(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _kinds(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_kinds(item) for item in value]
    if isinstance(value, str):
        if len(value) < SHORTEST_SECRET or _TOKEN.fullmatch(value) is None or _ACCOUNT.fullmatch(value) is not None:
            return ("text", value)  # whose account, which host to send it to: the harness on the host would believe it
        return ("token", _subject(value))
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__


def _subject(token: str) -> Any:
    """Whose a JSON web token is, as its issuer signed it; None for any other token. An attacker's own would name the attacker."""
    import base64

    parts = token.split(".")
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "==")) if len(parts) == 3 else None
    except (ValueError, RecursionError):
        return None
    return [claims.get("iss"), claims.get("sub")] if isinstance(claims, dict) else None
