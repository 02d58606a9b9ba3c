#!/usr/bin/env python3
"""Refuse file names and places that break the layout: generic names, links that are gone, code where none may be."""

import re
import subprocess
import sys
from pathlib import Path

LINKED = ("sandbox", "egress", "policy", "ledger", "harnesses")
BANNED = re.compile(r"(?:^|[_-])(?:utils?|helpers?|manager|handler|misc|common)(?:[_.-]|$)")


def problems(root: Path, files: list[str]) -> list[str]:
    """Every broken rule, a line each."""
    found = []
    for name in LINKED:
        link = root / "amem" / name
        if not link.is_symlink() or str(link.readlink()) != f"../{name}":
            found.append(f"amem/{name}: must be a link to ../{name}")
    for file in files:
        path = Path(file)
        if BANNED.search(path.stem) and path.suffix == ".py":
            found.append(f"{file}: name the thing, not its role (style.md, Names)")
        if path.parts[0] == "packaging" and path.name == "__init__.py":
            found.append(f"{file}: packaging/ holds no Python package")
        if not re.fullmatch(r"[A-Za-z0-9._/@+-]+", file):
            found.append(f"{file}: letters, digits, dots and hyphens only")
    return found


def main() -> int:
    """Check the files that git tracks or would track."""
    root = Path(__file__).resolve().parents[1]
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=root, capture_output=True, text=True, check=True)
    found = problems(root, listed.stdout.split())
    print("\n".join(found) or "file names are in order", file=sys.stderr if found else sys.stdout)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
