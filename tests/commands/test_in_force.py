"""`amem doctor --config`: every key that grants.toml may have, what is in force, and where from; no secret."""

import re
from pathlib import Path

import pytest

from amem.commands.in_force import Setting, settings
from amem.settings import grants
from amem.settings.root import Root
from tests.commands.conftest import Amem

PROJECT = Path(__file__).resolve().parents[2]
WHOLE = """
owner = "human:example:you"
default_domain = "dom-me"
[people."human:example:bob"]
os_users = ["bob"]
[grants.dom-me]
default = "public"
admit_own = true
transcript_retention_days = 7
contexts = false
transcripts = false
[grants.dom-me.principals."agent:*"]
read = "internal"
write = true
capabilities = ["code", "review"]
server_tools = []
[destinations.anthropic]
ceiling = "internal"
base_url = "https://gateway.example.org/v1"
concurrency = { harness = 4 }
require = { inference_geo = "us" }
[gates]
max_supersedes_per_session = 3
instruction_files = "approved"
complete_requires = "check"
[spend]
zone = "Europe/Berlin"
[spend.anthropic]
session_tokens = 5
day_tokens = 10
[ledger]
url = "postgres://memory:hunter2@db.example.org:5432/memory?sslmode=require"
space = "team"
[limits]
processes = 9
memory = "1536M"
open_files = 10
file_size = "8G"
tmp = "100"
wall_clock = "90s"
[notice]
webhook = "https://hooks.example.org/T0/hunter2"
"""
"""Every key there is, but for `[notice]`'s other one."""


def test_every_setting_is_shown_as_the_file_says_it_and_no_secret(root: Root) -> None:
    root.grants.write_text(WHOLE)
    found = {setting.key: setting for setting in settings(root, grants.load(root.grants))}
    assert {key for key, setting in found.items() if setting.source == "default"} == {"notice.command"}
    shown = {key: found[key].value for key in ("people.human:example:bob.os_users", "limits.memory", "limits.tmp", "limits.wall_clock")}
    assert [*shown.values()] == ["bob", "1536M", "100", "90"]
    assert found["grants.dom-me.principals.agent:*.capabilities"].value == "code, review"
    assert found["destinations.anthropic.require.inference_geo"].value == "us"
    assert found["grants.dom-me.contexts"] == Setting("grants.dom-me.contexts", "false", "grants.toml")
    assert found["ledger.url"].value == "postgres://db.example.org:5432/…"
    assert not any("hunter2" in setting.value for setting in found.values())


@pytest.mark.parametrize(
    "url", ["host=db password=hunter2", "pg://me:hunter2/9@db/x", "pg://me:p@hunter2@db/x", "pg://db/x@hunter2", "hunter2"]
)
def test_no_spelling_of_a_password_is_shown(root: Root, url: str) -> None:
    command = '[notice]\ncommand = ["curl", "-H", "Authorization: Bearer hunter2"]\n'
    root.grants.write_text(f'owner = "human:example:you"\n[grants.dom-me]\n[ledger]\nurl = "{url}"\n{command}')
    found = {setting.key: setting.value for setting in settings(root, grants.load(root.grants))}
    assert found["notice.command"] == "curl, …" and "hunter2" not in "".join(found.values())


def test_what_the_file_leaves_out_is_shown_as_a_default(root: Root) -> None:
    root.grants.write_text('owner = "human:example:you"\n[grants.dom-me]\n')
    found = {setting.key: setting for setting in settings(root, grants.load(root.grants))}
    assert {setting.source for key, setting in found.items() if key != "owner"} == {"default"}
    assert found["limits.memory"].value == "8G" and found["gates.complete_requires"].value == "handoff"


def test_the_command_says_which_root_and_why_that_one(amem: Amem, root: Root) -> None:
    code, said, _ = amem("doctor", "--config")
    assert code == 0 and said["config"][0] == {"key": "root", "value": str(root.path), "from": "--root"}
    assert {"key": "owner", "value": "human:asf:you", "from": "grants.toml"} in said["config"]


def test_the_page_on_settings_tells_of_each_key() -> None:
    page = (PROJECT / "docs/settings.md").read_text()
    read = re.findall(r'\.(?:take|need|read|strings)\("(\w+)"|_one_of\(table, "(\w+)"', Path(grants.__file__).read_text())
    keys = {key for pair in read for key in pair if key} - {"taps"}
    assert keys >= set(re.findall(r"(?m)^(\w+) =", WHOLE))
    assert {key for key in keys if f"`{key}`" not in page} == set()
