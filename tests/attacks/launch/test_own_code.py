"""A session cannot change amem: neither the packages it runs from, where they lie in a writable tree, nor the folders above them."""

import os
from pathlib import Path

import pytest

import amem
from amem.errors import UsageError
from amem.launch import shown
from amem.launch.plan import tree
from amem.launch.shown import own_folders
from amem.sandbox.spec import is_below, own_paths
from amem.settings.root import Root

PACKAGE = Path(amem.__file__).parent
CHECKOUT = os.path.dirname(os.path.realpath(PACKAGE))


def test_every_module_of_amem_is_read_only_where_its_checkout_is_the_work_tree() -> None:
    shown = [bind.target for bind in own_paths(CHECKOUT, *own_folders()) if not bind.writable]
    parts = [path.parent for path in PACKAGE.glob("*/__init__.py")]
    assert any(part.is_symlink() for part in parts), "the checkout has no linked part, so this shows nothing"
    assert [part for part in parts if not any(is_below(os.path.realpath(part), folder) for folder in shown)] == []


@pytest.mark.parametrize("part", ["", "sandbox", "egress", "launch"])
def test_a_work_tree_within_amem_is_refused(tmp_path: Path, part: str) -> None:
    with pytest.raises(UsageError, match="amem itself runs from there"):
        tree(str(PACKAGE / part), Root(tmp_path / "root"), {})


def test_a_work_tree_that_amem_is_imported_from_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(tmp_path))
    assert shown.import_folder(str(tmp_path))
    assert not shown.import_folder(str(tmp_path / "below"))
