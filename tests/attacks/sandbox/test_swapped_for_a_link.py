"""A tree that was checked by name cannot be swapped for a link to something else before it is mounted."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.sandbox.launching import Place

SWAP = """
import os, sys
from pathlib import Path
from amem.sandbox.child import fork_stage
stage = fork_stage()
from amem.errors import SandboxError
from amem.sandbox import host, spec
from amem.sandbox.plan import plan

base, swapped = Path(sys.argv[1]), Path(sys.argv[2])
shown, work = str(base / "above" / "shown"), str(base / "above" / "work")
binds = (spec.Bind(shown, shown, real=True), *spec.interpreter_binds(sys.executable, sys.prefix, sys.base_prefix))
asked = spec.SandboxSpec(
    argv=("cat", f"{shown}/private", f"{work}/private"), env=tuple(spec.base_env(os.environ, "/home/agent", "agent").items()),
    workdir=work, cwd=work, home=str(base / "home"), port=7431, binds=binds,
)
facts = host.facts(asked)
os.rename(swapped, f"{swapped}.aside")
os.symlink(base / "private", swapped)
try:
    running = stage.start(asked, plan(asked, facts))
    print("started", running.wait(lambda stream, data: os.write(1, data)))
except SandboxError as error:
    print("refused", error.step, error.message)
"""


@pytest.mark.parametrize("name", ["work", "shown"])
@pytest.mark.parametrize("above", [False, True])
def test_a_link_that_came_after_the_check_is_not_followed(here: Place, name: str, above: bool) -> None:
    for folder in ("above/work", "above/shown", "private/work", "private/shown"):
        (here.base / folder).mkdir(parents=True)
        (here.base / folder / "private").write_text("planted-secret\n")
    (here.base / "private" / "private").write_text("planted-secret\n")
    here.own()
    swapped: Path = here.base / "above" if above else here.base / "above" / name
    done = subprocess.run(
        [here.python, "-B", "-c", SWAP, str(here.base), str(swapped)],
        **here.ids(), env=here.env(), cwd="/", capture_output=True, text=True, timeout=60, check=True,
    )  # fmt: skip
    assert os.path.islink(swapped)
    assert "planted-secret" not in done.stdout
    assert done.stdout.startswith("refused") and "symbolic" in done.stdout, done.stdout + done.stderr
