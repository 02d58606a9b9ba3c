"""A login that is refreshed inside, for real: Claude Code and Gemini renew it through their tunnel, go on, and it is home afterwards."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from amem.harnesses import registry
from amem.harnesses.base import Auth
from amem.testing.provider import Running
from tests.acceptance.conftest import Place, confinement, place, provider  # noqa: F401 - fixtures
from tests.harnesses import lab, ways
from tests.harnesses.ways import launch, memory, set_up
from tests.testing.installed import installed

pytestmark = pytest.mark.real_harness

GOOGLE = {"sub": "lab", "aud": "gemini-cli"}
FRESH = {"claude": "sk-ant-oat01-" + "n" * 40, "gemini": "ya29.a0" + "N" * 60}
MINE: dict[str, Any] = {
    "claude": {"account": {"uuid": "11111111-mine", "email": "lab@example.org"}, "organization": {"uuid": "33333333"}},
    "gemini": GOOGLE | {"email": "lab@example.org", "expires_in": 3000},
}
ANOTHERS: dict[str, Any] = {
    "claude": {"account": {"uuid": "22222222-anothers"}, "organization": {"uuid": "33333333"}},
    "gemini": GOOGLE | {"sub": "another"},
}
REFRESHED: dict[str, tuple[tuple[str, str], Any]] = {
    "claude": (
        ("platform.claude.com", "/v1/oauth/token"),
        {
            "token_type": "Bearer", "access_token": FRESH["claude"], "refresh_token": "sk-ant-ort01-" + "m" * 40, "expires_in": 28800,
            "scope": "user:inference user:profile",
        },
    ),
    "gemini": (
        ("oauth2.googleapis.com", "/token"),
        {
            "token_type": "Bearer", "access_token": FRESH["gemini"], "expires_in": 3599, "id_token": lab.token(aud="gemini-cli", iat=2),
            "scope": ways.LOGINS["gemini"]["scope"],
        },
    ),
}  # fmt: skip


@pytest.fixture
def login(tmp_path: Path, provider: Running) -> Iterator[lab.Lab]:  # noqa: F811
    folder = tmp_path / "lab"
    folder.mkdir()
    with lab.lab(folder, provider.url) as found:
        yield found


def prepared(place: Place, provider: Running, login: lab.Lab, name: str, *, ended: bool) -> tuple[list[str], Path]:  # noqa: F811
    """The flags of a launch whose login the host names the account of, and the host's file."""
    installed(name)
    flags = set_up(place, name, Auth.SUBSCRIPTION, provider.url, login)
    table = registry.load(name).login
    assert table is not None
    file = place.base / "home" / table.file
    data = json.loads(file.read_text())
    if name == "claude":
        (place.base / "home" / ".claude.json").write_text(
            json.dumps({"oauthAccount": {"accountUuid": "11111111-mine", "organizationUuid": "33333333"}})
        )
        data["claudeAiOauth"] |= {"expiresAt": 1700000000000 if ended else 1990000000000, "rateLimitTier": "default_claude_max_5x"}
    else:
        data |= {
            "access_token": "ya29.a0" + "G" * 60,
            "id_token": lab.token(aud="gemini-cli", iat=1),
            "expiry_date": 1700000000000 if ended else 1990000000000,
        }
    file.write_text(json.dumps(data))
    where, answer = REFRESHED[name]
    login.accounts[where] = answer
    return flags, file


RENEWALS = [("claude", True), ("gemini", True), ("claude", False)]
"""Harness, and whether its login had ended before the launch; Gemini CLI renews by the clock alone, Claude Code after a 401 too."""


@pytest.mark.parametrize(("name", "ended"), RENEWALS, ids=lambda value: {True: "ended", False: "refused in the middle"}.get(value, value))
def test_the_session_goes_on_with_the_refreshed_login_and_it_comes_home(
    place: Place, provider: Running, login: lab.Lab, name: str, ended: bool  # noqa: F811
) -> None:  # fmt: skip
    flags, file = prepared(place, provider, login, name, ended=ended)
    errors = [] if ended else [{"path": r"/messages$|:streamGenerateContent$", "status": 401, "skip": 1, "times": 1}]
    provider.load({
        "steps": [memory(name, "t0"), memory(name, "handoff", body="Renewed on the way."), {"text": "Done as asked."}],
        "accounts": {FRESH[name]: MINE[name]}, "errors": errors,
    })  # fmt: skip
    ran = launch(place, name, flags)
    assert ran.done.code == 0, ran.done.err + ran.done.out
    assert ran.done.json["answer"] == "Done as asked."
    where, _ = REFRESHED[name]
    assert [(host, path) for host, _, path in login.asked].count(where) == 1, "it was refreshed once"
    asked = [exchange for exchange in provider.log if exchange.kind == "identity"]
    assert [exchange.headers["authorization"] for exchange in asked] == [f"Bearer {FRESH[name]}"]
    calls = [exchange.headers["authorization"] for exchange in provider.log if exchange.usage is not None]
    assert calls[-1] == f"Bearer {FRESH[name]}" and (ended or calls[0] != calls[-1])
    assert FRESH[name] in file.read_text() and "was refreshed and brought home" in ran.done.err
    judged = [line["reasons"][0]["code"] for line in place.log("decisions.jsonl") if line["policy_version"] == "host" and line["allow"]]
    assert judged == ["same_account"]
    logged = "".join(path.read_text(errors="replace") for path in (place.root / "state").glob("*.jsonl"))
    assert FRESH[name] not in logged


@pytest.mark.parametrize("name", ["claude", "gemini"])
def test_anothers_account_gets_no_call_and_does_not_come_home(
    place: Place, provider: Running, login: lab.Lab, name: str  # noqa: F811
) -> None:  # fmt: skip
    flags, file = prepared(place, provider, login, name, ended=True)
    before = file.read_bytes()
    provider.load({"steps": [{"text": "Never said."}], "accounts": {FRESH[name]: ANOTHERS[name]}})
    ran = launch(place, name, flags)
    assert ran.done.code not in (0, 4), ran.done.err
    assert {exchange.kind for exchange in provider.log} == {"identity"}, "nothing but the question left"
    assert file.read_bytes() == before and "not brought home" in ran.done.err
    refused = [
        line
        for line in place.log("decisions.jsonl")
        if line["policy_version"] == "host" and line["reasons"][0].get("code") == "another_account"
    ]
    assert refused
