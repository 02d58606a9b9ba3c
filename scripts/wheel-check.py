#!/usr/bin/env python3
"""Build the wheel, unpack it somewhere of its own and use it from there: what a user installs must work without the checkout."""

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
NEEDED = (
    "amem/policy/rego/amem.rego",
    "amem/harnesses/pins.toml",
    "amem/sandbox/child.py",
    "amem/egress/server.py",
    "amem/ledger/sql/",
    "amem/record/sql/",
    "amem/hooks/run.py",
)
GENERIC = ("sandbox/", "egress/", "policy/", "ledger/", "harnesses/", "tests/", "packaging/")


def main() -> int:
    """Run the check; 0 when the wheel holds what it must, nothing it must not, and works."""
    with tempfile.TemporaryDirectory() as folder:
        wheel = build(Path(folder))
        names = zipfile.ZipFile(wheel).namelist()
        missing = [need for need in NEEDED if not any(name.startswith(need) for name in names)]
        leaked = [name for name in names if name.startswith(GENERIC)]
        if missing or leaked:
            print(f"the wheel lacks {missing}" if missing else f"the wheel leaks {leaked[:5]} into site-packages", file=sys.stderr)
            return 1
        site = Path(folder) / "site"
        zipfile.ZipFile(wheel).extractall(site)
        smoke(site, Path(folder) / "root")
        print(f"{wheel.name}: {len(names)} files, works from {site.name}/")
    return 0


def build(folder: Path) -> Path:
    """Build the wheel into `folder`."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)], cwd=PROJECT, check=True, capture_output=True
    )
    return next(folder.glob("*.whl"))


def smoke(site: Path, root: Path) -> None:
    """Make a root, write and find an entry, with the package that was unpacked. Raises CalledProcessError."""
    environment = {**os.environ, "PYTHONPATH": str(site), "PYTHONSAFEPATH": "1"}

    def run(*words: str) -> str:
        command = [sys.executable, "-c", "from amem.cli.main import main; main()", "--root", str(root), *words]
        return subprocess.run(command, env=environment, cwd=site, check=True, capture_output=True, text=True).stdout

    where = subprocess.run(
        [sys.executable, "-c", "import amem.sandbox; print(amem.__file__)"],
        env=environment,
        cwd="/",
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert where.startswith(str(site)), where
    run("init", "--owner", "human:wheel:check")
    id = run("write", "--type", "fact", "--title", "From the wheel", "--body", "It works.").strip()
    assert id in run("search", "wheel"), "the entry was not found"


if __name__ == "__main__":
    sys.exit(main())
