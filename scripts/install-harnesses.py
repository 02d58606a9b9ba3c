#!/usr/bin/env python3
"""Install the pinned harness programs, and the Node that their installers need, from npm.

    scripts/install-harnesses.py [claude codex …]       (default: $HARNESS, else all of harnesses/pins.toml)

Each goes into ${XDG_CACHE_HOME:-~/.cache}/amem/harnesses/<name>-<version>/ and is there whole or not at all: it is built
beside, checked (the archive's digest, then the program's own --version), and renamed. What is there is left alone, so a
second run needs no network. Prints `name version path` a line. Standard library only.
"""

import argparse
import fcntl
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PINS = Path(__file__).resolve().parent.parent / "harnesses" / "pins.toml"
CPU = {"x86_64": "x64", "aarch64": "arm64"}
NODE = "node"


class Failed(Exception):
    """What went wrong, in a sentence for the person at the terminal."""


def cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "amem" / "harnesses"


def home(name: str, pin: dict[str, Any]) -> Path:
    return cache() / f"{name}-{pin['version']}"


def program(folder: Path, pin: dict[str, Any]) -> Path:
    arch = platform.machine()
    return folder / str(pin["program"]).format(arch=arch, cpu=CPU.get(arch, arch))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", default=[os.environ.get("HARNESS", "")], help="with spaces or commas between; default all")
    wanted = " ".join(parser.parse_args().names).replace(",", " ").split()
    pins = tomllib.loads(PINS.read_text())
    unknown = [name for name in wanted if name not in pins]
    if unknown:
        parser.error(f"no pin for {', '.join(unknown)}; there are: {', '.join(pins)}")
    names = [NODE] + [name for name in (wanted or pins) if name != NODE]
    cache().mkdir(parents=True, exist_ok=True)
    failures = 0
    with one_installer():
        for name in names:
            try:
                print(name, pins[name]["version"], install(name, pins), flush=True)
            except Failed as exc:
                failures += 1
                note(f"{name}: {exc}")
                if name == NODE:
                    break
    return 1 if failures else 0


@contextmanager
def one_installer() -> Iterator[None]:
    """One installer at a time, so that what an ended one left half built is known to be nobody's."""
    with (cache() / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        for left in cache().glob(".part-*"):
            shutil.rmtree(left, ignore_errors=True)
        yield


def install(name: str, pins: dict[str, Any]) -> Path:
    pin = pins[name]
    there = program(home(name, pin), pin)
    if there.exists():
        return there
    part = Path(tempfile.mkdtemp(prefix=".part-", dir=cache()))
    try:
        note(f"{name} {pin['version']}: installing {pin['package']} (about {pin['mb']} MB)")
        node = program(home(NODE, pins[NODE]), pins[NODE]) if name != NODE else None
        # Scripts run only once the archive is known to be the pinned one.
        npm(part, node, "install", f"{pin['package']}@{pin['version']}", "--ignore-scripts", "--include=optional")
        check_digest(part, pin)
        npm(part, node, "rebuild")
        check_version(part, pin, node)
        part.chmod(0o755)
        part.rename(home(name, pin))
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return there


def npm(part: Path, node: Path | None, *arguments: str) -> None:
    """Run npm in a folder, under the pinned Node: an older one makes npm choose old packages in silence."""
    found = shutil.which("npm")
    if found is None:
        raise Failed("npm is not on PATH; it brings Node and the harnesses. try: apt-get install npm")
    command = [found] if node is None else [str(node), os.path.realpath(found)]
    flags = ["--prefix", str(part), "--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error", "--progress=false"]
    environment = {
        **os.environ,
        "npm_config_omit_lockfile_registry_resolved": "true",
        "GROK_HOME": str(part / ".grok-home"),  # grok's installer writes a second copy of itself there, else into ~/.grok
        "PATH": os.pathsep.join(([str(node.parent)] if node else []) + [os.environ.get("PATH", os.defpath)]),
    }
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            [*command, *arguments, *flags], cwd=part, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )
        watch(process, part)
        if process.returncode != 0:
            output.seek(0)
            raise Failed(f"npm {arguments[0]} ended with {process.returncode}:\n{output.read()[-2000:].decode(errors='replace')}")
    shutil.rmtree(part / ".grok-home", ignore_errors=True)


def watch(process: "subprocess.Popen[bytes]", part: Path) -> None:
    """Wait, and on a terminal show how much has come so far."""
    began = time.monotonic()
    try:
        while process.poll() is None:
            try:
                process.wait(1.0)
            except subprocess.TimeoutExpired:
                if sys.stderr.isatty():
                    print(f"\r  {size_mb(part):5d} MB  {time.monotonic() - began:4.0f} s ", end="", file=sys.stderr, flush=True)
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait()
        if sys.stderr.isatty():
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def size_mb(folder: Path) -> int:
    total = 0
    for base, _folders, files in os.walk(folder):
        for name in files:
            try:
                total += os.lstat(os.path.join(base, name)).st_size
            except FileNotFoundError:
                continue  # npm moves files while it works
    return total >> 20


def check_digest(part: Path, pin: dict[str, Any]) -> None:
    lock = json.loads((part / "node_modules" / ".package-lock.json").read_text())
    found = lock["packages"].get(f"node_modules/{pin['package']}", {}).get("integrity")
    if found != pin["integrity"]:
        raise Failed(f"the archive is not the pinned one: {found} instead of {pin['integrity']}")


def check_version(part: Path, pin: dict[str, Any], node: Path | None) -> None:
    """Run the program's own --version: it is there, it starts on this machine, and it is the version that was asked for."""
    there = program(part, pin)
    if not there.exists():
        raise Failed(f"npm installed no {there.relative_to(part)}")
    command = [str(node), str(there)] if pin.get("node") else [str(there)]
    with tempfile.TemporaryDirectory() as empty:
        environment = {"HOME": empty, "PATH": os.defpath, "TERM": "dumb"}
        try:
            ran = subprocess.run(
                [*command, "--version"], env=environment, cwd=empty, capture_output=True, text=True, timeout=120, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as exc:
            raise Failed(f"it does not start: {exc}") from exc
    if pin["version"] not in ran.stdout + ran.stderr:
        raise Failed(f"--version says {(ran.stdout + ran.stderr).strip()[:200]!r}")


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
