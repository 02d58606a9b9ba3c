"""A session whose work tree is a checkout of amem does not see the keys that `make` reads there, and writes none of make's settings."""

import re
from pathlib import Path

import pytest

import amem
from amem.launch import run
from amem.launch.plan import Asked
from amem.settings import grants
from amem.settings.credentials import Credentials
from amem.settings.root import Root
from tests.attacks.launch.test_own_code import CHECKOUT
from tests.launch.test_plan import root, work

__all__ = ["root", "work"]


def test_the_folder_of_keys_is_hidden(root: Root, work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (work / "amem").mkdir()
    (work / "local").mkdir()
    (work / "local/.virtual-key").write_text("planted-secret")
    monkeypatch.setattr(amem, "__file__", str(work / "amem/__init__.py"))
    environment = {"HOME": "/nonexistent", "PATH": "/usr/bin:/bin", "ANTHROPIC_API_KEY": "sk-placeholder"}
    settings = run.Settings(
        root=root, grants=grants.load(root.grants), credentials=Credentials(environment, {}), environment=environment, domain="dom-me"
    )
    asked = Asked(harness="command", auth="key", provider="anthropic", args=("true",), workdir=str(work))
    assert str(work / "local") in run.prepare(asked, settings).spec.hidden


def test_make_reads_keys_from_no_other_place() -> None:
    read = re.findall(r"(?:include|wildcard|cat) ([^\s)]+)", (Path(CHECKOUT) / "Makefile").read_text().split(".PHONY")[0])
    assert read
    assert all(name.startswith("local/") for name in read), read
