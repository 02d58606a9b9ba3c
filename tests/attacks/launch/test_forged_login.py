"""A login that comes home can bring new tokens and nothing else: no other host for the harness to send them to, no other account."""

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from amem.harnesses.base import Login
from amem.harnesses.registry import load
from amem.launch.login import carry_home, read_login


def web_token(subject: str, fill: str) -> str:
    claims = base64.urlsafe_b64encode(
        json.dumps({"iss": "https://login.provider.example", "sub": subject, "aud": "gemini-cli", "jti": fill}).encode()
    )
    return f"eyJhbGciOiJSUzI1NiJ9.{claims.decode().rstrip('=')}.{fill * 40}"


WENT_IN: dict[str, Any] = {
    "access_token": "a" * 40,
    "id_token": web_token("someone", "b"),
    "last_refresh": "2026-11-30T09:00:00.123456Z",
    "resource_url": "portal.provider.example",
    "server": "https://login.provider.example/token",
    "account": {"id": "someone", "email": "someone@example.org", "paid": True},
    "account_id": "9f3c1d2e-0000-4000-8000-0123456789ab",
    "scopes": ["inference"],
    "expires": 1990000000000,
}
REFRESHED = {
    "access_token": "c" * 40,
    "id_token": web_token("someone", "d"),
    "last_refresh": "2026-11-30T10:00:00.000001Z",
    "expires": 1990000009999,
}


def carried_home(tmp_path: Path, went_in: bytes, came_back: bytes) -> bytes:
    """What the host's file holds after a session left `came_back`."""
    harness = load("claude")
    assert isinstance(harness.login, Login)
    host, private = tmp_path / "host" / harness.login.file, tmp_path / "private" / harness.login.file
    for path in (host, private):
        path.parent.mkdir(parents=True)
        path.write_bytes(went_in)
    carried = read_login(harness, str(tmp_path / "host"))
    assert carried is not None
    private.write_bytes(came_back)
    carry_home(carried, str(tmp_path / "private"))
    return host.read_bytes()


FRESH = json.dumps(WENT_IN | REFRESHED)


@pytest.mark.parametrize(
    "came_back",
    [
        FRESH.replace("1990000009999", "NaN").encode(),
        FRESH.replace("1990000009999", "Infinity").encode(),
        FRESH.replace("1990000009999", "1e999").encode(),
        FRESH.replace("{", '{"access_token": "https://evil.example/", ', 1).encode(),
        FRESH.encode("utf-16"),
        FRESH.encode("utf-8-sig"),
    ],
    ids=["not a number", "infinity", "beyond numbers", "a member twice", "utf-16", "byte order mark"],
)
def test_what_is_not_the_same_json_to_every_reader_does_not_come_home(tmp_path: Path, came_back: bytes) -> None:
    went_in = json.dumps(WENT_IN).encode()
    assert carried_home(tmp_path, went_in, came_back) == went_in


def test_new_tokens_come_home(tmp_path: Path) -> None:
    fresh = json.dumps(WENT_IN | REFRESHED).encode()
    assert carried_home(tmp_path, json.dumps(WENT_IN).encode(), fresh) == fresh


@pytest.mark.parametrize(
    "forged",
    [
        {"resource_url": "evil.example"},
        {"resource_url": "portal.provider.example.evil.example"},
        {"server": "https://evil.example/token"},
        {"access_token": "https://evil.example/" + "a" * 40},
        {"access_token": "a" * 40 + "\n[alias]"},
        {"access_token": "short"},
        {"account": {"id": "another", "email": "someone@example.org", "paid": True}},
        {"account": {"id": "someone", "email": "another-account@example.org", "paid": True}},
        {"account_id": "9f3c1d2e-0000-4000-8000-ba9876543210"},
        {"id_token": web_token("another", "d")},
        {"id_token": "e" * 60},
        {"scopes": ["everything"]},
        {"scopes": ["inference", "inference"]},
    ],
)
def test_another_host_or_account_does_not_come_home(tmp_path: Path, forged: dict[str, Any]) -> None:
    went_in = json.dumps(WENT_IN).encode()
    assert carried_home(tmp_path, went_in, json.dumps(WENT_IN | REFRESHED | forged).encode()) == went_in


@pytest.mark.parametrize("came_back", [b"another-token-of-an-attacker", b"{", b'{"access_token": "' + b"c" * 40 + b'"}', b"\xff\xfe"])
def test_what_is_no_json_does_not_take_the_place_of_what_was_none(tmp_path: Path, came_back: bytes) -> None:
    went_in = b"a-login-that-is-one-bare-token"
    assert carried_home(tmp_path, went_in, came_back) == went_in


# ---- where the host says whose the login is --------------------------------------------

GEMINI: dict[str, Any] = {
    "access_token": "ya29.a0" + "G" * 60, "refresh_token": "1//" + "h" * 60, "id_token": web_token("someone", "i"),
    "expiry_date": 1990000000000,
}  # fmt: skip
FRESH = GEMINI | {"access_token": "ya29.a0" + "N" * 60, "id_token": web_token("someone", "o"), "expiry_date": 1990000009999}


def judged(tmp_path: Path, came_back: dict[str, Any]) -> tuple[bytes, list[str], str]:
    """What the host's file holds after a session left `came_back`, what was judged, and what a person is told."""
    login = load("gemini").login
    assert login is not None
    host, private = tmp_path / "host" / login.file, tmp_path / "private" / login.file
    for path in (host, private):
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(GEMINI))
    carried = read_login(load("gemini"), str(tmp_path / "host"))
    assert carried is not None and carried.account == {"sub": "someone", "aud": "gemini-cli"}
    private.write_text(json.dumps(came_back))
    asked: list[str] = []

    def stranger(token: str) -> str | None:
        asked.append(token)
        return None if token == FRESH["access_token"] else "it is another's"

    said = carry_home(carried, str(tmp_path / "private"), stranger)
    return host.read_bytes(), asked, said or ""


def test_a_token_of_the_account_comes_home_and_another_account_does_not(tmp_path: Path) -> None:
    home, asked, said = judged(tmp_path / "mine", FRESH)
    assert json.loads(home) == FRESH and asked == [FRESH["access_token"]] and "brought home" in said
    home, asked, said = judged(tmp_path / "other", FRESH | {"access_token": "ya29.a0" + "Z" * 60})
    assert json.loads(home) == GEMINI and len(asked) == 1 and "not brought home: it is another's" in said


def test_googles_refresh_token_is_what_it_was_or_nothing_comes_home(tmp_path: Path) -> None:
    """Its access token would be the account's own until the host refreshes it, with the attacker's."""
    home, _, said = judged(tmp_path, FRESH | {"refresh_token": "1//" + "z" * 60})
    assert json.loads(home) == GEMINI and "what no refresh changes" in said
