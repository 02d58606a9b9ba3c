"""`amem session list` as a person reads it."""

from pathlib import Path

import pytest

from amem.cli.main import run
from amem.egress import meter
from amem.settings.root import Root

ROW = {
    "auth": "gateway", "destination": "llmao", "label": "restricted", "ceiling": "restricted", "handling": "restricted", "domain": "dom-me",
    "workdir": "/tree", "pid": 1, "started_at": "2026-11-30T14:20:00.000Z",
}  # fmt: skip
BACKENDS = {
    f"ses-0000000{end}": name for end, name in zip("abcde", ("unconfined", "namespaces", "relay", "image", "namespaces"), strict=True)
}


def test_a_list_names_how_each_session_was_confined_and_how_it_ended_in_eighty_columns(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = Root(tmp_path / "root")
    assert run(["--root", str(root.path), "init", "--owner", "human:asf:you"]) == 0
    for id, backend in BACKENDS.items():
        meter.start_session(root, {"id": id, "harness": "opencode", "backend": backend, **ROW})
    ended = {"ended_at": "2026-11-30T14:30:00.000Z"}
    meter.end_session(root, "ses-0000000a", exit=0, reason=None, **ended)
    meter.end_session(root, "ses-0000000b", exit=4, reason="no_handoff", **ended)
    meter.end_session(root, "ses-0000000d", exit=7, reason="harness", **ended)
    meter.end_session(root, "ses-0000000e", exit=125, reason="sandbox: clone: no user namespaces are allowed", **ended)
    capsys.readouterr()
    assert run(["--root", str(root.path), "session", "list"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["id", "harness", "backend", "label", "tokens", "started", "state"]
    assert all(len(line) <= 80 for line in lines)
    found = {line.split()[0]: (line.split()[2], " ".join(line.split()[7:])) for line in lines}
    assert {id: backend for id, (backend, _) in found.items()} == BACKENDS
    assert [found[id][1] for id in BACKENDS] == ["ended", "no_handoff", "lost", "exit 7", "exit 125"]
