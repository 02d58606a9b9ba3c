"""`amem declassify`: what comes down, what does not, and that nothing else lowers a label."""

import json
from pathlib import Path
from typing import Any

from amem.egress import meter, reading
from amem.launch import trees
from amem.model.label import Label
from amem.settings.root import Root

from .conftest import Amem


def log(root: Root, name: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (root.state / name).read_text().splitlines()]


def test_an_entry_comes_down_and_stays_down_when_the_index_is_built_anew(amem: Amem, root: Root) -> None:
    entry = amem("write", "--type", "fact", "--title", "T", "--body", "Known.", "--label", "restricted")[1]["id"]
    lowering = ["declassify", "entry", entry, "--to", "public", "--why", "printed in the paper"]
    assert amem(*lowering)[0] == 2
    assert amem(*lowering, "--dry-run")[1] == {
        "id": entry, "from": "restricted", "to": "public", "lowered": [{"id": entry, "from": "restricted", "to": "public"}],
    }  # fmt: skip
    assert amem("get", entry)[1]["classification"] == "restricted"
    code, done, _ = amem(*lowering, "--yes")
    assert code == 0
    assert [(line["id"], line["subject"]) for line in log(root, "decisions.jsonl") if line["action"] == "declassify"] == [
        (done["decision"], entry)
    ]
    assert log(root, "writes.jsonl")[-1]["why"] == "printed in the paper"
    assert amem("get", entry)[1]["classification"] == "public"
    assert amem("reindex")[0] == 0
    (root.index).unlink()
    assert amem("get", entry)[1]["classification"] == "public"
    assert amem("verify")[0] == 0
    assert amem(*lowering, "--yes")[0] == 1
    assert amem("declassify", "entry", "mem-me-zzzzzzzzzzzz", "--to", "public", "--why", "w", "--yes")[0] == 3


def test_a_label_lowered_in_the_file_counts_for_nothing(amem: Amem, root: Root) -> None:
    entry = amem("write", "--type", "fact", "--title", "T", "--body", "Known.", "--label", "restricted")[1]["id"]
    path = next(root.record.rglob(f"{entry}.md"))
    path.write_text(path.read_text().replace('"restricted"', '"public"'))
    assert amem("get", entry)[1]["classification"] == "restricted"
    assert amem("verify")[0] == 3


def session(root: Root, id: str, label: str, tree: Path) -> None:
    row = {"id": id, "harness": "claude", "auth": "key", "destination": "demo", "backend": "b", "label": label, "ceiling": "restricted"}
    where = {"handling": "restricted", "domain": "dom-me", "workdir": str(tree), "pid": 1, "started_at": "2026-11-30T12:00:00.000Z"}
    meter.start_session(root, row | where)


def test_a_session_comes_down_with_what_it_wrote_and_its_part_of_the_tree(amem: Amem, root: Root, tmp_path: Path) -> None:
    mine = amem("write", "--type", "fact", "--title", "T", "--body", "Known.", "--label", "restricted")[1]["id"]
    path = next(root.record.rglob(f"{mine}.md"))
    wrote = log(root, "writes.jsonl")[-1]["session"]
    session(root, wrote, "restricted", tmp_path)
    trees.mark(root, (str(tmp_path),), Label.RESTRICTED, wrote)
    trees.mark(root, (str(tmp_path),), Label.INTERNAL, "ses-00000002")
    code, planned, _ = amem("declassify", "session", wrote, "--to", "public", "--why", "w", "--dry-run")
    assert code == 0
    assert planned["lowered"] == [
        {"id": wrote, "from": "restricted", "to": "public"},
        {"id": mine, "from": "restricted", "to": "public"},
        {"id": str(tmp_path), "from": "restricted", "to": "internal"},
    ]
    before = path.read_bytes()
    assert amem("declassify", "session", wrote, "--to", "public", "--why", "w", "--yes")[0] == 0
    assert path.read_bytes() != before
    assert trees.carried(root) == {str(tmp_path): Label.INTERNAL}
    assert reading.sessions(root, session=wrote)[0]["label"] == "public"
    assert amem("declassify", "session", "ses-zzzzzzzz", "--to", "public", "--why", "w", "--yes")[0] == 3


def test_a_tree_comes_down_with_those_below_it_and_no_other(amem: Amem, root: Root, tmp_path: Path) -> None:
    above, tree, below = tmp_path, tmp_path / "tree", tmp_path / "tree" / "sub"
    for path in (above, tree, below):
        trees.mark(root, (str(path),), Label.RESTRICTED, "ses-00000001")
    assert amem("declassify", "worktree", str(tree), "--to", "internal", "--why", "reviewed", "--yes")[0] == 0
    assert trees.carried(root) == {str(above): Label.RESTRICTED, str(tree): Label.INTERNAL, str(below): Label.INTERNAL}
    assert trees.label(root, (str(tree),), Label.PUBLIC) is Label.RESTRICTED  # the folder above may show it
    assert amem("declassify", "worktree", str(tree), "--to", "internal", "--why", "reviewed", "--yes")[0] == 1


def test_a_tree_comes_down_with_the_last_session_that_was_taken_back(root: Root, tmp_path: Path) -> None:
    tree = str(tmp_path)
    trees.mark(root, (tree,), Label.INTERNAL, "ses-00000001")
    trees.mark(root, (tree,), Label.RESTRICTED, "ses-00000002")
    assert trees.undone(root, tree, "ses-00000003") is None
    assert trees.undone(root, tree, "ses-00000002") is Label.INTERNAL
    (tmp_path / ".git").mkdir()
    assert trees.undone(root, tree, "ses-00000001") is None
    assert trees.carried(root) == {tree: Label.INTERNAL}
    (tmp_path / ".git").rmdir()
    assert trees.undone(root, tree, "ses-00000001") is Label.PUBLIC
    assert trees.carried(root) == {}


def test_many_sessions_of_one_tree_never_lower_it(root: Root, tmp_path: Path) -> None:
    tree = str(tmp_path)
    trees.mark(root, (tree,), Label.RESTRICTED, "ses-00000000")
    for n in range(1, 130):
        trees.mark(root, (tree,), Label.INTERNAL, f"ses-{n:08}")
    assert trees.carried(root) == {tree: Label.RESTRICTED}
    assert trees.undone(root, tree, "ses-00000000") is None
    assert trees.label(root, (tree,), Label.PUBLIC) is Label.RESTRICTED


def test_a_tree_that_was_lowered_meanwhile_carries_nothing(root: Root, tmp_path: Path) -> None:
    tree = str(tmp_path)
    trees.mark(root, (tree,), Label.RESTRICTED, "ses-00000001")
    carried = trees.carried(root)
    trees.lower(root, carried, Label.PUBLIC)
    assert trees.without(root, carried, Label.INTERNAL, "ses-00000001") == {tree: Label.PUBLIC}
