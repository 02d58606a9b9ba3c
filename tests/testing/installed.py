"""Find the pinned harness programs that `make harnesses` installed; a test that needs one skips where it is not."""

import os
import platform
import tomllib
from pathlib import Path

import pytest

_PINS = Path(__file__).resolve().parents[2] / "harnesses" / "pins.toml"


def installed(name: str) -> list[str]:
    """The command that runs a harness: its program, behind the pinned Node where it is a script."""
    wanted = os.environ.get("REAL_HARNESSES")
    if wanted and name not in wanted.split():
        pytest.skip(f"{name} is not among REAL_HARNESSES={wanted}")
    pins = tomllib.loads(_PINS.read_text())
    program = _program(name, pins[name])
    return [_program("node", pins["node"]), program] if pins[name].get("node") else [program]


def _program(name: str, pin: dict[str, str]) -> str:
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "amem" / "harnesses"
    arch = platform.machine()
    path = cache / f"{name}-{pin['version']}" / pin["program"].format(arch=arch, cpu={"x86_64": "x64", "aarch64": "arm64"}.get(arch, arch))
    if not path.exists():
        pytest.skip(f"{name} {pin['version']} is not installed (make harnesses HARNESS={name})")
    return str(path)
