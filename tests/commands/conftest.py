"""A root of its own and `amem` typed in it, for tests that need no more than that. A file with needs of its own has its own."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from amem.cli.main import run
from amem.settings.root import Root

Amem = Callable[..., tuple[int, Any, str]]
"""Its words in; its exit code, its JSON, and what it said on standard error out."""


@pytest.fixture
def root(tmp_path: Path) -> Root:
    found = Root(tmp_path / "root")
    assert run(["--root", str(found.path), "init", "--owner", "human:asf:you"]) == 0
    return found


@pytest.fixture
def amem(root: Root, capsys: pytest.CaptureFixture[str]) -> Amem:
    def call(*words: str) -> tuple[int, Any, str]:
        capsys.readouterr()
        code = run(["--root", str(root.path), "--json", *words])
        out, err = capsys.readouterr()
        return code, json.loads(out) if out else None, err

    return call
