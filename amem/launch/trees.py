"""The label of a work tree: the highest label of the sessions that could write it.

Owns `state/worktrees.json`. What a session has read may stand in any file it could write, so whoever sees the tree next starts there. A
label is kept before the session may use what raised it, and every other session that is shown the tree rises with it. It comes down by the
owner's act, or with the last session whose changes were all taken back.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from amem.errors import IntegrityError
from amem.launch import keep, presence
from amem.model import clock
from amem.model.label import Label, highest
from amem.sandbox.spec import is_below
from amem.settings.root import Root
from amem.typed import Any

_MOST_SESSIONS = 100


def label(root: Root, shown: tuple[str, ...], floor: Label) -> Label:
    """The highest of the floor and the labels of the trees that these paths show, whole or in part. Raises IntegrityError."""
    found = floor
    for tree, row in keep.read(_path(root)).items():
        if any(is_below(path, tree) or is_below(tree, path) for path in shown):
            try:
                found = highest((Label(row["label"]),), floor=found)
            except (KeyError, TypeError, ValueError) as error:
                raise IntegrityError(f"{_path(root)}: {tree}: no label", hint=f"restore {_path(root)} from a backup") from error
    return found


class Watched:
    """What the trees that a session is shown carry by now: another session that may write one has read more since this one began."""

    def __init__(self, root: Root, shown: tuple[str, ...]) -> None:
        self._root = root
        self._shown = shown
        self._looked: tuple[int, int] | None = None
        self._label = Label.PUBLIC

    def __call__(self) -> Label:
        """See above; the document is read where it is another than before. Raises IntegrityError, OSError."""
        try:
            found = os.stat(_path(self._root))
        except FileNotFoundError:
            return Label.PUBLIC
        if self._looked != (now := (found.st_ino, found.st_mtime_ns)):
            self._label, self._looked = label(self._root, self._shown, Label.PUBLIC), now
        return self._label


def mark(root: Root, writable: tuple[str, ...], to: Label, session: str) -> None:
    """Raise what these paths carry to the label of a session that may write them. Raises IntegrityError, OSError."""
    if to is Label.PUBLIC:
        return
    with keep.changing(_path(root)) as document:
        for path in writable:
            row = document.get(path, {})
            sessions = _sessions(row)
            if session in sessions and not to.exceeds(Label(sessions[session])):
                continue
            sessions[session] = to.value
            document[path] = _row(sessions)


def carried(root: Root, path: str | None = None, session: str | None = None) -> dict[str, Label]:
    """The trees at or below a path, or that a session could write, each with the label that it carries. Raises IntegrityError."""
    return {
        tree: Label(row["label"])
        for tree, row in keep.read(_path(root)).items()
        if (path is None or is_below(tree, path)) and (session is None or session in _sessions(row))
    }


def without(root: Root, trees: Iterable[str], to: Label, session: str | None = None) -> dict[str, Label]:
    """What each of these trees would carry if it, or a session's part in it, were lowered; one that was lowered meanwhile carries nothing.

    Raises IntegrityError.
    """
    document = keep.read(_path(root))
    return {tree: _label(_lowered(document[tree], to, session)) if tree in document else Label.PUBLIC for tree in trees}


def lower(root: Root, trees: Iterable[str], to: Label, session: str | None = None) -> None:
    """Lower what trees carry, or a session's part in it: the owner's act, once it was decided.

    The part of a session that runs stays: it still has what it has read. Raises IntegrityError, OSError.
    """
    with keep.changing(_path(root)) as document:
        for tree in trees:
            if tree in document:
                running = at_work(root, document[tree], to)
                sessions = _lowered(document[tree], to, session) | running
                document[tree] = _row(sessions)
                if _label(sessions) is Label.PUBLIC:
                    del document[tree]


def at_work(root: Root, row: Mapping[str, Any], to: Label) -> dict[str, str]:
    """The sessions that may write a tree, run now, and have read more than `to`; each with its label."""
    return {one: has for one, has in _sessions(row).items() if one and Label(has).exceeds(to) and presence.is_running(root, one)}


def writers(root: Root, trees: Iterable[str], to: Label) -> tuple[str, ...]:
    """The sessions that run now, may write one of these trees, and have read more than `to`. Raises IntegrityError."""
    document = keep.read(_path(root))
    return tuple(dict.fromkeys(one for tree in trees for one in at_work(root, document.get(tree, {}), to)))


def undone(root: Root, tree: str, session: str) -> Label | None:
    """A session's changes to a tree were all taken back: the label that the tree comes down to, or None where it stays.

    What a session put into a repository's own files is not taken back with the tree, so a tree with one stays as it is.
    """
    if os.path.lexists(os.path.join(tree, ".git")):
        return None
    with keep.changing(_path(root)) as document:
        if tree not in document or session not in (sessions := _sessions(document[tree])):
            return None
        was = Label(document[tree]["label"])
        del sessions[session]
        if sessions:
            document[tree] = _row(sessions)
        else:
            del document[tree]
        now = Label(document[tree]["label"]) if tree in document else Label.PUBLIC
    return now if was.exceeds(now) else None


def _sessions(row: Mapping[str, Any]) -> dict[str, str]:
    """The label of each session that could write a tree; `""` stands for those before."""
    return dict(row.get("sessions") or ({row.get("session", ""): row["label"]} if row else {}))


def _lowered(row: Mapping[str, Any], to: Label, session: str | None) -> dict[str, str]:
    sessions = _sessions(row)
    return {"": to.value} if session is None else sessions | ({session: to.value} if session in sessions else {})


def _label(sessions: Mapping[str, str]) -> Label:
    return highest(map(Label, sessions.values()))


def _row(sessions: dict[str, str]) -> dict[str, Any]:
    while len(sessions) > _MOST_SESSIONS:  # the oldest are kept as one
        first = next(name for name in sessions if name)
        sessions = {"": highest((Label(sessions.pop(first)),), floor=Label(sessions.get("", "public"))).value} | {
            name: label for name, label in sessions.items() if name
        }
    return {"label": _label(sessions).value, "sessions": sessions, "at": clock.stamp(clock.now())}


def _path(root: Root) -> Path:
    return root.state / "worktrees.json"
