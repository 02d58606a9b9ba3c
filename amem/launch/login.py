"""A subscription's login: one file of the host's home copied in, and brought home when the harness refreshed it.

Nothing else of the host's home is read, but for the name of the account where a harness keeps that in another file. What comes home
was written inside a sandbox: it is read through the safe reader and taken only when it has exactly the shape of what went in, with new
tokens, times and numbers at most, when the egress's judgement has its token for the same account's, and when the host's own file has not
changed meanwhile. A file of another shape, or with another name or address in it, stays where it is.
"""

import json
import os
import re
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field

from amem.errors import UnavailableError
from amem.harnesses.base import Harness, Login
from amem.sandbox import calls
from amem.sandbox.reader import Refused, read_file
from amem.settings.credentials import Secret
from amem.typed import Any, NamedTuple

MAX_BYTES = 1 << 20
MAX_BESIDE_BYTES = 16 << 20
"""Of a file that says whose the login is: Claude Code's holds much else."""
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
    account: Mapping[str, str] = field(default_factory=dict)
    """Whose it is, by the names of the harness's `Login.account`; empty where the host does not say."""


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
    account = _account(login, host_home, data)
    ended = _ended(login, data)
    if ended is not None and not account:  # else it is renewed inside
        raise UnavailableError(
            f"{harness.title}'s login on this machine ended on {ended}: ~/{login.file}",
            hint=f"run {harness.binary} once outside amem, which renews it ({login.command} where it does not); or --auth key",
        )
    return Carried(login=login, source=source, digest=_digest(data), data=data, secrets=tuple(map(Secret, _secrets(data))), account=account)


def _account(login: Login, host_home: str, data: bytes) -> dict[str, str]:
    """Whose a login is, as the host says; empty unless it says all of it."""
    read: dict[str, Any] = {login.file: _json(data)}
    for told in login.account:
        if told.file not in read:
            try:
                with open(os.path.join(host_home, told.file), "rb") as file:
                    read[told.file] = _json(file.read(MAX_BESIDE_BYTES))
            except OSError:
                return {}
    found = {told.name: _at(read[told.file], told.path) for told in login.account}
    return found if all(isinstance(value, str) and value for value in found.values()) else {}


def _json(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return None


def _at(value: Any, path: tuple[str, ...]) -> Any:
    """What stands at a path of members, of which the last may be a web token's claim."""
    for key in path:
        if isinstance(value, str):
            value = _claims(value)
        value = value.get(key) if isinstance(value, dict) else None
    return value


def _part(name: str, data: bytes) -> bytes:
    """A file with this member alone; empty where it has none."""
    value = _json(data)
    return json.dumps({name: value[name]}).encode() if isinstance(value, dict) and name in value else b""


def _ended(login: Login, data: bytes) -> str | None:
    """When a login's token ended, in UTC; None while it holds, and where its file does not say."""
    value = _at(_json(data), login.expiry)
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


def carry_home(carried: Carried, home: str, stranger: Callable[[str], str | None] = lambda token: None) -> str | None:
    """Bring a refreshed login home. Returns what a person should know of it, or None when there is nothing to say.

    `stranger` says why a token is not of the session's account; it is asked where the host says which that is. The copy that went in is
    taken out of the private home, which stays; one that did not come home is left there, since it may be the only one that still counts.
    """
    told, settled = _brought(carried, home, stranger)
    if settled and carried.source:
        _take_away(home, carried.login.file)
    return told


class _Brought(NamedTuple):
    told: str | None
    settled: bool
    """The host has all there is of the login."""


def _brought(carried: Carried, home: str, stranger: Callable[[str], str | None]) -> _Brought:
    if not carried.login.rewritten or not carried.source:
        return _Brought(None, True)
    found = read_file(home, carried.login.file, MAX_BYTES)
    name = f"~/{carried.login.file}"
    if isinstance(found, Refused):
        return _Brought(f"the login {name} was not brought home: {found.why}" if found.why != "not there" else None, False)
    if found == carried.data or _same(found, carried.data):
        return _Brought(None, True)
    shape = _shape(found)
    if shape is None or shape != _shape(carried.data):
        return _Brought(f"the login {name} was changed inside into something of another shape; it was not brought home", False)
    if (why := _foreign(carried, _json(found), stranger)) is not None:
        return _Brought(f"the login {name} was changed inside, and not brought home: {why}", False)
    try:
        with open(carried.source, "rb") as file:
            now = file.read(MAX_BYTES + 1)
        if _digest(now) != carried.digest:
            return _Brought(f"the login {name} was refreshed inside, but changed on the host too; the host's own was kept", False)
        _replace(carried.source, found)
    except OSError as error:
        return _Brought(f"the refreshed login {name} was not brought home: {error.strerror}", False)
    return _Brought(f"the login {name} was refreshed and brought home", True)


def _take_away(home: str, file: str) -> None:
    """Remove a file of the private home, through no link: what stands there is the session's to write."""
    above, name = os.path.split(file)
    with suppress(OSError), ExitStack() as ends:
        folder = os.open(home, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        ends.callback(os.close, folder)
        if above:
            folder = calls.open_beneath(folder, above, os.O_PATH | os.O_DIRECTORY)
            ends.callback(os.close, folder)
        os.unlink(name, dir_fd=folder)


def _foreign(carried: Carried, found: Any, stranger: Callable[[str], str | None]) -> str | None:
    login, before = carried.login, _json(carried.data)
    if any(_at(found, path) != _at(before, path) for path in login.same):
        return "it holds what no refresh changes"
    if not carried.account:
        return None
    token = _at(found, login.token)
    return stranger(token) if isinstance(token, str) else "it has no token"


def _same(found: bytes, data: bytes) -> bool:
    """Whether two files say the same in another layout, as Grok's does at every start."""
    try:
        return bool(json.loads(found) == json.loads(data))
    except (ValueError, RecursionError):
        return False


def _replace(path: str, data: bytes) -> None:
    """Put the file in place whole, with the mode and the owner it had."""
    import tempfile

    about = os.stat(path)
    descriptor, temporary = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".amem-")
    try:
        with open(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        if os.geteuid() == 0:  # with somebody else's home: it stays their login
            os.chown(temporary, about.st_uid, about.st_gid)
        os.chmod(temporary, about.st_mode & 0o600)
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
    """The keys and kinds of a login's JSON, and what a refresh never changes; None for what is no JSON, or not to every reader the same:
    the harness on the host would refuse it, and its owner be logged out, or take another of two members than was judged here."""
    try:
        return _kinds(json.loads(data.decode(), object_pairs_hook=_members, parse_constant=_no_number))
    except (ValueError, RecursionError):
        return None


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a member is there twice")
    return found


def _no_number(text: str) -> Any:
    raise ValueError(f"{text} is no JSON")


def _kinds(value: Any) -> Any:
    if isinstance(value, dict):
        # Claude Code writes `null` for a member that was not there, and a null says nothing.
        return {key: _kinds(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_kinds(item) for item in value]
    if isinstance(value, str):
        if len(value) < SHORTEST_SECRET or _TOKEN.fullmatch(value) is None or _ACCOUNT.fullmatch(value) is not None:
            return ("text", value)  # whose account, which host to send it to: the harness on the host would believe it
        return ("token", _subject(value))
    if isinstance(value, float) and abs(value) == float("inf"):
        raise ValueError("a number that is too large")
    return "number" if isinstance(value, (int, float)) and not isinstance(value, bool) else type(value).__name__


def _subject(token: str) -> Any:
    """Whose a JSON web token is, as its issuer signed it; None for any other token. An attacker's own would name the attacker."""
    claims = _claims(token)
    return [claims.get("iss"), claims.get("sub")] if isinstance(claims, dict) else None


def _claims(token: str) -> Any:
    import base64

    parts = token.split(".")
    try:
        return json.loads(base64.urlsafe_b64decode(parts[1] + "==")) if len(parts) == 3 else None
    except (ValueError, RecursionError):
        return None
