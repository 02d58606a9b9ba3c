"""Sandboxes that a launcher makes late, when it has threads and keys: their stages come from a nursery."""

import os
import select

import pytest

from amem.sandbox.child import fork_stage
from tests.sandbox.launching import Place


def test_a_late_sandbox_is_as_any_other(here: Place) -> None:
    report = here.launch("sh", "-c", "id -u; echo err >&2; echo x > made; exit 3", nursery=True)
    assert (report["code"], report["out"], report["err"]) == (3, "1000\n", "err\n")
    assert (here.work / "made").read_text() == "x\n"


def test_a_late_sandbox_ends_with_a_killed_launcher(here: Place) -> None:
    running = here.start("sh", "-c", f"echo up; exec {here.sleep(1000)}", nursery=True)
    running.until(b"up")
    handles = [os.pidfd_open(pid) for pid in (running.init, running.stage)]
    running.end()
    for handle in handles:
        assert select.select([handle], [], [], 20)[0], "it outlived its launcher"
        os.close(handle)


def test_nothing_of_a_tree_that_is_only_shown_can_be_written(here: Place) -> None:
    (here.work / ".git" / "hooks").mkdir(parents=True)
    (here.work / "file").write_text("as it was")
    here.own()
    script = (
        "cat file; for name in file new .git/x .git/hooks/y; do (echo z > $name) 2>/dev/null && echo wrote $name; done;"
        "mv .git other 2>/dev/null && echo moved; rm file 2>/dev/null && echo removed; echo h > ~/home && echo home"
    )
    report = here.launch("sh", "-c", script, spec={"read_only": True})
    assert report["out"] == "as it washome\n", report
    control = here.launch("sh", "-c", script)
    assert "wrote file" in control["out"] and "wrote new" in control["out"] and "removed" in control["out"]


def test_ctrl_c_before_a_stage_stands_aside_is_the_launchers_alone(capfd: pytest.CaptureFixture[str]) -> None:
    def struck() -> None:
        raise KeyboardInterrupt

    stage = fork_stage(struck)
    assert os.read(stage.link.fileno(), 1) == b""  # it has ended
    stage.close()
    assert capfd.readouterr().err == ""
