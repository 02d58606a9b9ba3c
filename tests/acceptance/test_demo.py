"""`make demo`: the main job on the embedded default, as a newcomer runs it."""

import os
import subprocess
import sys
from pathlib import Path

from tests.acceptance.conftest import PROJECT


def test_the_demonstration_does_the_whole_job(tmp_path: Path, confinement: None) -> None:
    environment = {name: value for name, value in os.environ.items() if not name.startswith("AMEM_")}
    done = subprocess.run(
        [sys.executable, str(PROJECT / "scripts" / "demo.py")],
        env={**environment, "DEMO_ROOT": str(tmp_path / "demo")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for said in ("demo-1", "left_by: agent", "the provider's own sum is", "make launch HARNESS=claude"):
        assert said in done.stdout, said
    assert "done in" in done.stderr
