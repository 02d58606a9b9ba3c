"""A disk of its own for a root, small enough to be filled."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def small(base: Path, size: str) -> Iterator[Path]:
    """A tmpfs of this size (`24m`), mounted below the folder. Skips the test where none can be."""
    disk = base / "disk"
    disk.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(disk)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no small disk to be had: {done.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)
