"""One login file goes in; a refreshed one comes home whole, and a forged one does not."""

import json
import os
from pathlib import Path
from typing import NamedTuple

import pytest

from amem.errors import UnavailableError
from amem.harnesses import registry
from amem.launch.login import Carried, carry_home, read_login

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


def test_no_login_says_how_to_log_in(tmp_path: Path) -> None:
    with pytest.raises(UnavailableError) as caught:
        read_login(registry.load("claude"), str(tmp_path))
    assert "not logged in" in caught.value.message
    assert caught.value.hint is not None and "/login" in caught.value.hint


def test_an_untouched_login_stays_as_it_is(homes: Homes) -> None:
    before = homes.outside().stat().st_ino
    assert carry_home(homes.carried, str(homes.private)) is None
    assert homes.outside().stat().st_ino == before


def test_a_refreshed_login_comes_home(homes: Homes) -> None:
    homes.inside().write_text(refreshed())
    assert "brought home" in (carry_home(homes.carried, str(homes.private)) or "")
    assert homes.outside().read_text() == refreshed()
    assert homes.outside().stat().st_mode & 0o777 == 0o600
    assert [path.name for path in (homes.host / ".claude").iterdir()] == [".credentials.json"]


def test_a_login_that_changed_on_the_host_meanwhile_is_kept(homes: Homes) -> None:
    homes.inside().write_text(refreshed())
    mine = json.dumps(LOGIN | {"mine": 1})
    homes.outside().write_text(mine)
    assert "the host's own was kept" in (carry_home(homes.carried, str(homes.private)) or "")
    assert homes.outside().read_text() == mine


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


def test_a_harness_without_a_login_carries_none(tmp_path: Path) -> None:
    assert read_login(registry.load("command"), str(tmp_path)) is None
