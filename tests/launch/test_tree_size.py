"""What a launch looks at of a work tree does not depend on how much is in it."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from amem.launch import care, instructions, trees
from amem.launch.plan import place_of
from amem.model.label import Label
from amem.sandbox import host, spec
from amem.settings.root import Root

SEEN: list[str] | None = None


def _hook(event: str, args: tuple[object, ...]) -> None:
    if SEEN is not None and (event == "open" or event.startswith("os.")):
        SEEN.append(event)


def looked_at(act: Callable[[], object]) -> list[str]:
    """The looks at files and folders that Python reports of itself."""
    global SEEN
    SEEN = []
    try:
        act()
        return SEEN
    finally:
        SEEN = None


def test_a_launch_looks_at_a_small_tree_and_at_a_large_one_alike(tmp_path: Path) -> None:
    sys.addaudithook(_hook)
    home = tmp_path / "home"
    home.mkdir()
    root = Root(tmp_path / "root")
    counts = []
    for folders, name in ((1, "small"), (300, "large")):
        tree = tmp_path / name
        subprocess.run(["git", "init", "-q", str(tree)], check=True)
        for number in range(folders):
            (tree / f"d{number}").mkdir()
            for each in range(3):
                (tree / f"d{number}" / f"f{each}").touch()
        (tree / "AGENTS.md").write_text("x")

        def launch(tree: Path = tree) -> None:
            place = place_of(str(tree), root, {"HOME": str(home)})
            instructions.find(root, place, whole=False)
            trees.label(root, (place.workdir,), floor=Label.PUBLIC)
            inside = spec.SandboxSpec(argv=("true",), env=(), workdir=place.workdir, cwd=place.cwd, home=str(home), port=7431)
            care.marks(place, host.facts(inside).tree)

        counts.append(looked_at(launch))
    assert "os.scandir" in counts[0] or "os.listdir" in counts[0], "nothing was counted"
    assert counts[0] == counts[1]
