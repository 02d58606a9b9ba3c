"""The label of a work tree: the highest label of the sessions that could write it.

Owns `state/worktrees.json`. What a session has read may stand in any file it could write, so whoever sees the tree next starts there. A
label is kept before the session may use what raised it; nothing here lowers one.
"""

from pathlib import Path

from amem.errors import IntegrityError
from amem.launch import keep
from amem.model import clock
from amem.model.label import Label, highest
from amem.sandbox.spec import is_below
from amem.settings.root import Root


def label(root: Root, shown: tuple[str, ...], floor: Label) -> Label:
    """The highest of the floor and the labels of the trees that these paths show, whole or in part. Raises IntegrityError."""
    found = floor
    for tree, row in keep.read(_path(root)).items():
        if any(is_below(path, tree) or is_below(tree, path) for path in shown):
            try:
                found = highest((Label(row["label"]),), floor=found)
            except (KeyError, TypeError, ValueError) as error:
                raise IntegrityError(f"{_path(root)}: {tree}: no label", hint="amem doctor") from error
    return found


def mark(root: Root, writable: tuple[str, ...], to: Label, session: str) -> None:
    """Raise what these paths carry to the label of a session that may write them. Raises IntegrityError, OSError."""
    if to is Label.PUBLIC:
        return
    with keep.changing(_path(root)) as document:
        for path in writable:
            if path not in document or to.exceeds(Label(document[path]["label"])):
                document[path] = {"label": to.value, "session": session, "at": clock.stamp(clock.now())}


def _path(root: Root) -> Path:
    return root.state / "worktrees.json"
