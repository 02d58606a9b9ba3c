"""What the processes of `test_processes` run: `python -m tests.record.processes ROLE ROOT NAME`."""

import sys
from dataclasses import replace
from pathlib import Path

from amem.errors import ConflictError
from amem.model.entry import Status
from amem.record.index import Index
from amem.settings.root import Root
from tests.record.made import EVERYTHING, entry


def write(root: Root, name: str, count: int = 50) -> None:
    """Write entries, every fifth superseding one of its own, and read what others wrote; print the ids."""
    index = Index.open(root)
    before = None
    for n in range(count):
        made = entry(f"{name} note {n}", f"harbour {name}", supersedes=(before.id,) if before and n % 5 == 0 else ())
        index.upsert(index.store.put(made))
        if made.supersedes and before:
            marked = replace(before, version=2, status=Status.SUPERSEDED, superseded_by=made.id)
            index.upsert(index.store.replace(marked))
        before = made
        print(made.id, flush=True)
        read = index.read(made.id)
        assert read is not None and read.entry.body == made.body
        assert index.search("harbour", EVERYTHING).hits
    index.close()


def contend(root: Root, entry_id: str, count: int = 20) -> None:
    """Raise one entry's version, again when somebody was quicker."""
    index = Index.open(root)
    done = 0
    while done < count:
        current = index.store.read(entry_id)
        try:
            newer = replace(current, version=current.version + 1, body=str(int(current.body) + 1))
            index.upsert(index.store.replace(newer))
            done += 1
        except ConflictError:
            continue
    index.close()


def forever(root: Root, name: str) -> None:
    """Write until killed."""
    index = Index.open(root)
    n = 0
    while True:
        made = entry(f"{name} {n}", "harbour " * 2000)
        path = index.store.put(made)
        newer = replace(made, version=2, title=f"{name} {n} again")
        index.store.replace(newer)
        print(made.id, flush=True)
        index.upsert(path)
        n += 1


if __name__ == "__main__":
    {"write": write, "contend": contend, "forever": forever}[sys.argv[1]](Root(Path(sys.argv[2])), sys.argv[3])
