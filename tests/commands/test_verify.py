"""`amem verify` as the owner types it."""

import json
from pathlib import Path

import pytest

from amem.cli.main import run


def test_verify_from_clean_to_changed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "root"

    def amem(*words: str) -> tuple[int, dict[str, object]]:
        code = run(["--root", str(root), "--json", *words])
        out = capsys.readouterr().out
        return code, json.loads(out) if out else {}

    assert amem("init", "--owner", "human:asf:you")[0] == 0
    entry = amem("write", "--type", "fact", "--title", "T", "--body", "Known.")[1]["id"]
    code, found = amem("verify", "--anchor")
    assert (code, found["checked"], found["broken"]) == (0, {"entries": 1, "events": 0, "lines": 2}, [])
    assert (root / "state" / "anchors.jsonl").exists()
    [path] = (root / "record").rglob("mem-*.md")
    path.write_text(path.read_text().replace("Known.", "Unknown."))
    code, found = amem("verify")
    assert (code, found["broken"]) == (3, [{"what": "entry", "where": entry, "kind": "changed"}])
