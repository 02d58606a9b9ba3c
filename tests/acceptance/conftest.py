"""Whole commands as a person types them: a fresh root, the real sandbox, the scripted provider."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from amem.cli.main import run
from amem.testing.provider import Running, running

PROJECT = Path(__file__).resolve().parents[2]


class Done(NamedTuple):
    """A command that ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Place:
    """A root and a work tree, with the commands run on them."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.root = base / "root"
        self.tree = base / "tree"
        self.tree.mkdir()
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.endswith("_API_KEY") and not name.startswith("AMEM_")},
            "DEMO_API_KEY": "planted-key-of-the-demo",
            "XDG_CONFIG_HOME": str(base / "config"),
        }

    def command(self, *words: str) -> list[str]:
        return [sys.executable, "-m", "amem", "--root", str(self.root), *words]

    def amem(self, *words: str, stdin: str | None = None, timeout_s: float = 120, **environment: str) -> Done:
        done = subprocess.run(
            self.command(*words),
            cwd=PROJECT,
            env={**self.environment, **environment},
            input=stdin,
            stdin=None if stdin is not None else subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout_s,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def launch(self, *words: str, harness: str = "command", **environment: str) -> Done:
        return self.amem("launch", "--harness", harness, *self.launch_flags(), *words, **environment)

    def launch_flags(self) -> list[str]:
        return ["--auth", "key", "--provider", "demo", "--workdir", str(self.tree)]

    def destination(self, url: str, ceiling: str = "internal", name: str = "demo") -> None:
        with (self.root / "grants.toml").open("a") as grants:
            grants.write(f'\n[destinations.{name}]\nceiling = "{ceiling}"\nbase_url = "{url}"\n')

    def log(self, name: str) -> list[dict[str, Any]]:
        path = self.root / "state" / name
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture(scope="session")
def confinement() -> None:
    """Skip, with the doctor's reason, where this machine lets nobody make a sandbox."""
    done = subprocess.run([sys.executable, "-m", "amem", "doctor", "--json"], cwd=PROJECT, capture_output=True, text=True, check=False)
    for check in json.loads(done.stdout)["checks"]:
        if check["area"] == "backend" and check["state"] == "missing":
            pytest.skip(f"{check['area']} / {check['name']}: {check['why']}")


@pytest.fixture
def place(tmp_path: Path, confinement: None) -> Place:
    found = Place(tmp_path)
    assert run(["--root", str(found.root), "init", "--owner", "human:asf:you"]) == 0
    return found


@pytest.fixture
def provider() -> Iterator[Running]:
    with running() as found:
        yield found
