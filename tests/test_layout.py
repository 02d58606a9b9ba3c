"""The tree is as its READMEs and the package say: five links, a word on each module, no module that is not there."""

import re
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parent.parent
LINKED = ("sandbox", "egress", "policy", "ledger", "harnesses")
ADAPTERS = "harnesses"
"""One file for each harness: its README tells of the shape they share."""


def folders() -> list[Path]:
    places = [*(PROJECT / name for name in (*LINKED, "scripts", "examples", "amem")), *(PROJECT / "amem").iterdir()]
    return sorted(place for place in places if (place / "README.md").is_file() and not place.is_symlink())


def test_the_five_top_folders_are_relative_links_in_the_package() -> None:
    assert {path.name: path.readlink() for path in (PROJECT / "amem").iterdir() if path.is_symlink()} == {
        name: Path("..") / name for name in LINKED
    }


def test_nothing_under_packaging_can_be_imported() -> None:
    assert not list((PROJECT / "packaging").rglob("__init__.py"))


@pytest.mark.parametrize("folder", folders(), ids=lambda folder: folder.name)
def test_a_readme_names_each_module_of_its_folder_and_no_other(folder: Path) -> None:
    said = (folder / "README.md").read_text()
    rows = re.findall(r"(?m)^\| ([^|]*) \|", said[: said.find("\n## ")])
    named = {name.removesuffix(".py") for row in rows for name in re.findall(r"`([a-z_./-]+)`", row)}
    modules = {path.stem for path in folder.glob("*.py")} - {"__init__", "__main__"}
    if folder.name != ADAPTERS:
        assert {module for module in modules if not re.search(rf"(?<![\w-]){module}(?![\w-])", said)} == set()
    assert {name for name in named if not (folder / name).exists() and name.split("/")[0] not in modules} == set()


def test_each_library_that_is_required_is_on_the_page_of_dependencies() -> None:
    page = (PROJECT / "docs/dependencies.md").read_text()
    for list_of in ("runtime", "dev", "gateway", "prctl"):
        for line in (PROJECT / f"requirements/{list_of}.in").read_text().splitlines():
            name = re.match(r"[A-Za-z][\w-]*", line)
            assert name is None or name[0].lower() in page.lower(), name[0]
