#!/usr/bin/env python3
"""Build the harness image: Debian packages, Node and the pinned harness programs, as one archive of a root file system.

    scripts/build-image.py [--suite trixie] [--mirror URL] [--packages FILE] [--out FILE] [claude codex …]

Needs mmdebstrap (apt-get install mmdebstrap) and user namespaces; no root and no container runtime. The harnesses must be in the cache
of `make harnesses`. The archive is there whole or not at all. Standard library only.
"""

import argparse
import importlib.util
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
from pathlib import Path
from types import ModuleType

PROJECT = Path(__file__).resolve().parent.parent
SUITE = "trixie"
HARNESSES = "opt/amem/harnesses"
NODE = "usr/local/bin/node"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", default=[os.environ.get("HARNESS", "")], help="harnesses; default: those in the cache")
    parser.add_argument("--suite", default=SUITE)
    parser.add_argument("--mirror", help="where Debian's packages come from; default: what mmdebstrap takes")
    parser.add_argument("--variant", default="minbase", help="of mmdebstrap; `essential` is the smallest that can install anything")
    parser.add_argument("--packages", type=Path, default=PROJECT / "packaging/image/packages.txt")
    parser.add_argument("--out", type=Path, default=PROJECT / "build/image/amem-image.tar")
    parser.add_argument("--no-harness", action="store_true", help="the Debian packages alone")
    asked = parser.parse_args()
    installer = load_installer()
    pins = tomllib.loads(installer.PINS.read_text())
    wanted = " ".join(asked.names).replace(",", " ").split()
    if unknown := [name for name in wanted if name not in pins]:
        parser.error(f"no pin for {', '.join(unknown)}; there are: {', '.join(pins)}")
    if shutil.which("mmdebstrap") is None:
        print("mmdebstrap is not on PATH; try: apt-get install mmdebstrap", file=sys.stderr)
        return 1
    if os.geteuid() != 0 and shutil.which("newuidmap") is None:
        print("newuidmap is not on PATH, and mmdebstrap needs it where it is not root; try: apt-get install uidmap", file=sys.stderr)
        return 1
    there = {name: installer.home(name, pin) for name, pin in pins.items() if installer.program(installer.home(name, pin), pin).exists()}
    if missing := [name for name in wanted if name not in there]:
        print(f"not in the cache: {', '.join(missing)}; try: make harnesses HARNESS={','.join(missing)}", file=sys.stderr)
        return 1
    names = [] if asked.no_harness else [name for name in pins if name in there and (name == "node" or not wanted or name in wanted)]
    packages = [row for line in asked.packages.read_text().splitlines() if (row := line.partition("#")[0].strip())]
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    part = asked.out.with_name(f".{asked.out.name}.part-{os.getpid()}.tar")
    try:
        if debootstrap(part, asked, packages) != 0:
            return 1
        versions = {name: str(pins[name]["version"]) for name in names}
        places = {name: f"{HARNESSES}/{name}-{versions[name]}" for name in names}
        add(part, {place: there[name] for name, place in places.items()}, manifest(asked.suite, packages, versions))
        if "node" in places:
            also(part, NODE, str(Path(places["node"], installer.program(there["node"], pins["node"]).relative_to(there["node"]))))
        part.rename(asked.out)
    finally:
        part.unlink(missing_ok=True)
    print(f"{asked.out}: {asked.out.stat().st_size >> 20} MB, {', '.join(f'{name} {version}' for name, version in versions.items())}")
    return 0


def load_installer() -> ModuleType:
    """`install-harnesses.py`, which knows where the cache has what."""
    spec = importlib.util.spec_from_file_location("install_harnesses", Path(__file__).with_name("install-harnesses.py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def debootstrap(part: Path, asked: argparse.Namespace, packages: list[str]) -> int:
    command = [
        "mmdebstrap", "--mode=unshare", f"--variant={asked.variant}", f"--include={','.join(packages)}",
        '--aptopt=Apt::Install-Recommends "false"', "--dpkgopt=path-exclude=/usr/share/doc/*", "--dpkgopt=path-exclude=/usr/share/man/*",
        asked.suite, str(part), *([asked.mirror] if asked.mirror else []),
    ]  # fmt: skip
    return subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode


def manifest(suite: str, packages: list[str], versions: dict[str, str]) -> bytes:
    harnesses = {name: version for name, version in versions.items() if name != "node"}
    return json.dumps({"suite": suite, "packages": packages, "harnesses": harnesses, "built_at": int(time.time())}, indent=2).encode()


def add(part: Path, folders: dict[str, Path], about: bytes) -> None:
    """Put the harnesses and what is said of the image into the archive, everything root's."""
    with tarfile.open(part, "a") as archive:
        for place in ("opt/amem", HARNESSES):
            folder = tarfile.TarInfo(place)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(folder)
        said = tarfile.TarInfo("opt/amem/image.json")
        said.size, said.mode = len(about), 0o644
        archive.addfile(said, io.BytesIO(about))
        for place, source in folders.items():
            archive.add(source, place, filter=roots)


def also(part: Path, name: str, other: str) -> None:
    """Give a file of the archive another name: a session is shown all of `/usr`, and of the harnesses the one that it runs."""
    with tarfile.open(part, "a") as archive:
        link = tarfile.TarInfo(name)
        link.type, link.linkname, link.mode = tarfile.LNKTYPE, other, 0o755
        archive.addfile(link)


def roots(member: tarfile.TarInfo) -> tarfile.TarInfo:
    member.uid = member.gid = 0
    member.uname = member.gname = "root"
    return member


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
