"""Find external test data without copying it: `$SHARED_DATA_DIR`, else `../shared` beside the checkout."""

import os
from pathlib import Path

import pytest

_ROOT = Path(os.environ.get("SHARED_DATA_DIR") or Path(__file__).resolve().parents[2] / "shared")


def shared_path(name: str) -> Path:
    """The path of `data/…` or another external file; skips the test, saying so, where it is absent."""
    path = _ROOT / name
    if not path.exists():
        pytest.skip(f"external data {name!r} is not on this machine (set SHARED_DATA_DIR)")
    return path
