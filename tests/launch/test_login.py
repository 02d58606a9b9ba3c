"""One login file goes in; a refreshed one comes home whole, and a forged one does not."""

import json
import os
from pathlib import Path
from typing import NamedTuple

import pytest

from amem.errors import UnavailableError
from amem.harnesses import registry
from amem.launch.login import Carried, carry_home, over, read_login
from amem.settings.credentials import Secret

FILE = ".claude/.credentials.json"
LOGIN = {
    "claudeAiOauth": {
        "accessToken": "sk-ant-oat01-" + "a" * 30,
        "refreshToken": "sk-ant-ort01-" + "b" * 30,
        "expiresAt": 1990000000000,
        "scopes": ["user:inference"],
    }
}


class Homes(NamedTuple):
    host: Path
    private: Path
    carried: Carried

    def inside(self) -> Path:
        return self.private / FILE

    def outside(self) -> Path:
        return self.host / FILE


@pytest.fixture
def homes(tmp_path: Path) -> Homes:
    host, private = tmp_path / "host", tmp_path / "private"
    (host / ".claude").mkdir(parents=True)
    private.mkdir()
    (host / FILE).write_text(json.dumps(LOGIN))
    (host / FILE).chmod(0o600)
    carried = read_login(registry.load("claude"), str(host))
    assert carried is not None
    (private / ".claude").mkdir()
    (private / FILE).write_bytes(carried.data)
    return Homes(host, private, carried)


def refreshed() -> str:
    fresh = json.loads(json.dumps(LOGIN))
    fresh["claudeAiOauth"] |= {"accessToken": "sk-ant-oat01-" + "c" * 30, "expiresAt": 1990000009999}
    return json.dumps(fresh)


def test_the_tokens_of_a_login_are_known_and_do_not_print(homes: Homes) -> None:
    tokens = {secret.reveal() for secret in homes.carried.secrets}
    assert tokens == {LOGIN["claudeAiOauth"]["accessToken"], LOGIN["claudeAiOauth"]["refreshToken"]}
    assert "sk-ant" not in repr(homes.carried)


CARRYING = [name for name in registry.names() if registry.load(name).login is not None]


@pytest.mark.parametrize("name", CARRYING)
def test_no_login_says_how_to_log_in(tmp_path: Path, name: str) -> None:
    harness = registry.load(name)
    assert harness.login is not None
    with pytest.raises(UnavailableError) as caught:
        read_login(harness, str(tmp_path))
    assert caught.value.message.startswith(f"{harness.title} is not logged in on this machine: ~/{harness.login.file}")
    assert caught.value.hint is not None and harness.login.command in caught.value.hint and "--auth key" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "login"),
    [
        ("claude", {"claudeAiOauth": LOGIN["claudeAiOauth"] | {"expiresAt": 1700000000000}}),
        ("gemini", {"access_token": "ya29." + "a" * 30, "expiry_date": 1700000000000}),
    ],
)
def test_a_login_that_ended_and_could_not_be_renewed_inside_says_so(tmp_path: Path, name: str, login: dict[str, object]) -> None:
    harness = registry.load(name)
    assert harness.login is not None
    path = tmp_path / harness.login.file
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(login))
    with pytest.raises(UnavailableError) as caught:
        read_login(harness, str(tmp_path))
    assert "ended on 2023-11-14 at 22:13 UTC" in caught.value.message
    assert caught.value.hint is not None and f"run {harness.binary} once outside amem" in caught.value.hint
    path.write_text(json.dumps(login).replace("1700000000000", "1990000000000"))
    assert read_login(harness, str(tmp_path)) is not None
    path.write_text(json.dumps(login).replace("1700000000000", '{"never": 1}'))
    assert read_login(harness, str(tmp_path)) is not None, "what a file does not say is the harness's matter"


def test_copilots_login_may_be_a_variable_of_the_host(tmp_path: Path) -> None:
    given = {"GH_TOKEN": "github_pat_" + "x" * 40, "GITHUB_TOKEN": "of a runner"}
    carried = read_login(registry.load("copilot"), str(tmp_path), lambda name: Secret(given[name]) if name in given else None)
    assert carried is not None and carried.data == b"" and dict(carried.variables) == {"COPILOT_GITHUB_TOKEN": given["GH_TOKEN"]}
    assert given["GH_TOKEN"] not in repr(carried)
    assert carry_home(carried, str(tmp_path)) is None


def test_of_opencodes_keys_only_its_github_login_goes_in(tmp_path: Path) -> None:
    path = tmp_path / ".local/share/opencode/auth.json"
    path.parent.mkdir(parents=True)
    login = {"type": "oauth", "refresh": "ghu_" + "o" * 36, "access": "ghu_" + "o" * 36, "expires": 0}
    path.write_text(json.dumps({"anthropic": {"type": "api", "key": "sk-of-another-provider"}, "github-copilot": login}))
    carried = read_login(registry.load("opencode"), str(tmp_path))
    assert carried is not None and json.loads(carried.data) == {"github-copilot": login}
    private = tmp_path / "private"
    (private / path.parent.relative_to(tmp_path)).mkdir(parents=True)
    (private / path.relative_to(tmp_path)).write_text('{"github-copilot": {"access": "ghu_' + "p" * 36 + '"}}')
    before = path.read_bytes()
    assert carry_home(carried, str(private)) is None and path.read_bytes() == before
    assert not (private / path.relative_to(tmp_path)).exists()
    (private / "beside").symlink_to(tmp_path / ".local")
    (private / ".local").rename(private / "away")
    (private / "beside").rename(private / ".local")
    assert carry_home(carried, str(private)) is None and path.read_bytes() == before, "a link leads to nothing that is removed"
    path.write_text('{"anthropic": {"type": "api", "key": "sk-of-another-provider"}}')
    with pytest.raises(UnavailableError, match="has no github-copilot"):
        read_login(registry.load("opencode"), str(tmp_path))


def test_an_untouched_login_stays_as_it_is(homes: Homes) -> None:
    before = homes.outside().stat().st_ino
    assert carry_home(homes.carried, str(homes.private)) is None
    assert homes.outside().stat().st_ino == before
    assert not homes.inside().exists() and homes.inside().parent.exists(), "a home that stays holds no copy of it"


def test_a_refreshed_login_comes_home(homes: Homes) -> None:
    homes.inside().write_text(refreshed())
    assert "brought home" in (carry_home(homes.carried, str(homes.private)) or "")
    assert homes.outside().read_text() == refreshed()
    assert homes.outside().stat().st_mode & 0o777 == 0o600
    assert not homes.inside().exists()
    assert [path.name for path in (homes.host / ".claude").iterdir()] == [".credentials.json"]


def test_a_null_for_what_was_not_there_is_no_other_shape(homes: Homes) -> None:
    """Claude Code 2.1.332 writes it for an older login."""
    fresh = json.loads(refreshed())
    fresh["claudeAiOauth"]["rateLimitTier"] = None
    homes.inside().write_text(json.dumps(fresh))
    assert "brought home" in (carry_home(homes.carried, str(homes.private)) or "")


def test_a_login_that_changed_on_the_host_meanwhile_is_kept(homes: Homes) -> None:
    homes.inside().write_text(refreshed())
    mine = json.dumps(LOGIN | {"mine": 1})
    homes.outside().write_text(mine)
    assert "the host's own was kept" in (carry_home(homes.carried, str(homes.private)) or "")
    assert homes.outside().read_text() == mine
    assert homes.inside().read_text() == refreshed(), "what did not come home may be all there is of it"


@pytest.mark.parametrize(
    "forged",
    [
        "",
        "not json",
        "[]",
        json.dumps({}),
        json.dumps(LOGIN | {"apiKeyHelper": "/bin/sh -c id"}),
        json.dumps({"claudeAiOauth": "x"}),
        "[" * 100_000,
    ],
)
def test_a_login_of_another_shape_does_not_come_home(homes: Homes, forged: str) -> None:
    homes.inside().write_text(forged)
    assert "another shape" in (carry_home(homes.carried, str(homes.private)) or "")
    assert json.loads(homes.outside().read_text()) == LOGIN


def test_a_link_in_the_place_of_the_login_is_not_followed(homes: Homes, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(refreshed())
    homes.inside().unlink()
    homes.inside().symlink_to(tmp_path / "secret")
    assert "a symbolic link" in (carry_home(homes.carried, str(homes.private)) or "")
    assert json.loads(homes.outside().read_text()) == LOGIN


def test_a_login_kept_behind_a_link_on_the_host_stays_a_link(homes: Homes, tmp_path: Path) -> None:
    elsewhere = tmp_path / "dotfiles.json"
    os.rename(homes.outside(), elsewhere)
    homes.outside().symlink_to(elsewhere)
    carried = read_login(registry.load("claude"), str(homes.host))
    assert carried is not None
    homes.inside().write_text(refreshed())
    carry_home(carried, str(homes.private))
    assert homes.outside().is_symlink()
    assert elsewhere.read_text() == refreshed()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can have somebody else's home")
def test_a_login_that_root_brings_home_stays_its_owners(homes: Homes) -> None:
    os.chown(homes.outside(), 12345, 54321)
    homes.inside().write_text(refreshed())
    assert "brought home" in (carry_home(homes.carried, str(homes.private)) or "")
    about = homes.outside().stat()
    assert (about.st_uid, about.st_gid, about.st_mode & 0o777) == (12345, 54321, 0o600)


def test_a_harness_without_a_login_carries_none(tmp_path: Path) -> None:
    assert read_login(registry.load("command"), str(tmp_path)) is None


def test_a_file_that_is_login_and_configuration_is_both() -> None:
    ours = b'{"trustedFolders": ["/tree"], "theme": "dark"}'
    assert json.loads(over(ours, b'// do not edit\n{"authTokens": {"a": 1}, "theme": "light"}')) == {
        "trustedFolders": ["/tree"], "authTokens": {"a": 1}, "theme": "light",
    }  # fmt: skip
    for login in (b"not json", b"[1]", b"\xff"):
        assert over(ours, login) == login
    assert over(None, b"{ }") == b"{ }"


MINE: dict[str, object] = {"accountUuid": "uuid-mine", "organizationUuid": "uuid-ours"}


def with_account(homes: Homes, account: object) -> Carried:
    (homes.host / ".claude.json").write_text(json.dumps({"projects": {}, "oauthAccount": account}))
    carried = read_login(registry.load("claude"), str(homes.host))
    assert carried is not None
    return carried


def test_whose_a_login_is_is_read_where_the_harness_keeps_it(homes: Homes) -> None:
    assert homes.carried.account == {}
    assert with_account(homes, MINE | {"emailAddress": "me@example.org"}).account == {"account": "uuid-mine", "organization": "uuid-ours"}
    unusable: tuple[object, ...] = (
        None,
        [],
        "uuid-mine",
        MINE | {"accountUuid": ""},
        MINE | {"organizationUuid": 7},
        {"accountUuid": "uuid-mine"},
        {},
    )
    for account in unusable:
        assert with_account(homes, account).account == {}
    (homes.host / ".claude.json").write_text("{")
    assert with_account(homes, MINE).data == homes.carried.data, "nothing else of that file goes in"


def test_a_login_that_ended_may_start_where_it_can_be_renewed_inside(homes: Homes) -> None:
    homes.outside().write_text(json.dumps({"claudeAiOauth": LOGIN["claudeAiOauth"] | {"expiresAt": 1700000000000}}))
    assert with_account(homes, MINE).account
    with pytest.raises(UnavailableError, match="ended on"):
        with_account(homes, None)


def test_a_login_whose_account_is_known_comes_home_only_with_its_judgement(homes: Homes) -> None:
    carried = with_account(homes, MINE)
    homes.inside().write_text(refreshed())
    said = carry_home(carried, str(homes.private), lambda token: "it is another's")
    assert said == f"the login ~/{FILE} was changed inside, and not brought home: it is another's"
    assert json.loads(homes.outside().read_text()) == LOGIN
    assert "refreshed and brought home" in (carry_home(carried, str(homes.private), lambda token: None) or "")
    assert homes.outside().read_text() == refreshed()
