"""The label of a tree while sessions are at work in it: what one has read counts for each, and does not come down under one that runs."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from amem.errors import IntegrityError
from amem.launch import presence, trees
from amem.memory.session import Beside, Memory
from amem.model.label import Label
from amem.settings.root import Root
from tests.commands.conftest import Amem, amem, root  # noqa: F401  (fixtures)
from tests.memory.conftest import memory  # noqa: F401
from tests.memory.seed import agent, written


@contextmanager
def running(root: Root, session: str) -> Iterator[None]:  # noqa: F811
    mark = presence.mark(root, session)
    mark.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(mark, os.O_RDWR | os.O_CREAT)
    os.write(descriptor, b"1")
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("marked", ["tree", "tree/below", ""], ids=["it", "below it", "above it"])
def test_a_session_rises_with_what_another_in_its_tree_has_read_since(memory: Memory, tmp_path: Path, marked: str) -> None:  # noqa: F811
    kept: list[Label] = []
    session = agent(memory, persist=kept.append, beside=trees.Watched(memory.root, (str(tmp_path / "tree"),)))
    assert session.label is Label.PUBLIC
    trees.mark(memory.root, (str(tmp_path / "other"),), Label.RESTRICTED, "ses-00000001")
    assert session.label is Label.PUBLIC
    trees.mark(memory.root, (str(tmp_path / marked),), Label.INTERNAL, "ses-00000001")
    assert Beside(session).label is Label.INTERNAL
    assert (session.label, kept) == (Label.INTERNAL, [Label.INTERNAL])
    trees.mark(memory.root, (str(tmp_path / marked),), Label.RESTRICTED, "ses-00000002")
    assert written(memory, session).classification is Label.RESTRICTED
    trees.lower(memory.root, trees.carried(memory.root), Label.PUBLIC)
    assert session.label is Label.RESTRICTED, "what it has seen it still has"


@pytest.mark.parametrize("text", ["", "[]", "{", '{"/a/tree": {"label": "none"}}', '{"/a/tree": 3}'])
def test_a_list_of_trees_that_cannot_be_read_opens_none(memory: Memory, text: str) -> None:  # noqa: F811
    session = agent(memory, beside=trees.Watched(memory.root, ("/a/tree",)))
    (memory.root.state / "worktrees.json").write_text(text)
    for asked in (lambda: session.label, lambda: trees.label(memory.root, ("/a/tree",), Label.PUBLIC), lambda: written(memory, session)):
        with pytest.raises(IntegrityError) as told:
            asked()
        assert told.value.hint == f"restore {memory.root.state / 'worktrees.json'} from a backup"


def test_no_tree_comes_down_under_a_session_that_runs(amem: Amem, root: Root, tmp_path: Path) -> None:  # noqa: F811
    tree = str(tmp_path)
    trees.mark(root, (tree,), Label.RESTRICTED, "ses-00000001")
    trees.mark(root, (tree,), Label.INTERNAL, "ses-00000002")
    lowering = ["declassify", "worktree", tree, "--to", "public", "--why", "reviewed", "--yes"]
    with running(root, "ses-00000002"):
        code, _, err = amem(*lowering)
        assert code == 1 and " session stop ses-00000002" in err
        assert trees.carried(root) == {tree: Label.RESTRICTED}
        trees.lower(root, [tree], Label.PUBLIC)  # it began after the command had looked
        assert trees.carried(root) == {tree: Label.INTERNAL}
        assert amem(*lowering[:4], "internal", *lowering[5:])[0] == 1, "nothing is above that"
    assert amem(*lowering)[0] == 0
    assert trees.carried(root) == {}
