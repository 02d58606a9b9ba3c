"""The projection: a folder of entries' files that a session sees read-only at `/memory`, filled by its own reads.

It is empty at first. When a tool is about to read an entry's file, the entry is served as `get` serves it (under the read filter,
the label raised, the read logged) and its file put in place; only then may the tool run. So nothing is there that the session was not
served, nothing has to be made for a record of any size, and a program that goes around the guard finds what it could have had anyway.
"""

import os
import tempfile
from pathlib import Path

from amem.memory.session import Memory, Session
from amem.server import guard, replies, tools

MOST_AT_ONCE = 20
"""Files that one tool call may read."""


class Projection:
    """A session's folder on the host. It is shown inside read-only, so nothing in it is the session's doing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def serve(self, memory: Memory, session: Session, asked: guard.Verdict) -> guard.Verdict:
        """Serve the entries whose files a tool reads, and let it run; a refusal for the first that is not served."""
        if len(asked.entries) > MOST_AT_ONCE:
            return guard.Verdict(
                False, f"amem: {len(asked.entries)} entries at once; {MOST_AT_ONCE} is the most. `search` and `list` find some"
            )
        for path in asked.entries:
            id = guard.entry_of(path)
            reply = replies.answer(lambda id=id: tools.call(memory, session, "get", {"id": id}))  # type: ignore[misc]
            asked_for = os.path.relpath(path, guard.PROJECTION)
            try:
                if reply.refused:
                    self._withdraw(id)
                    return guard.Verdict(False, f"amem: {reply.data['reason']}")
                places = _places(memory, id)
                if asked_for not in places:
                    return guard.Verdict(False, f"amem: the file of {id} is {guard.PROJECTION}/{places[-1]}")
                _put(self._folder / asked_for, "\n\n".join(replies.blocks(reply)) + "\n")
            except OSError as error:
                return guard.Verdict(False, f"amem: the file could not be put in place ({error.strerror}); {asked.reason}")
        return guard.Verdict(True)

    def _withdraw(self, id: str) -> None:
        """Take away every file of an entry that is served no longer."""
        for path in self._folder.rglob(f"{id}.md"):
            path.unlink(missing_ok=True)


def _places(memory: Memory, id: str) -> tuple[str, ...]:
    """Where an entry's file may be: at the top, and as in the record. Anywhere else, one entry could fill the host's disk."""
    with memory.lock:
        row = memory.index.get(id)
    return (f"{id}.md", row.path) if row is not None else (f"{id}.md",)


def _put(path: Path, text: str) -> None:
    """Whole or not at all: a tool may be reading the file that was there."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.rename(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
