"""Hold writes the perimeter did not accept.

Owns `state/quarantine/<held>.md`: the entry as it would have been written, so that a release is a `put` of exactly this, plus what was
found in it. A held write is never indexed or served; only the owner releases or drops it. A model's verdict is advice beside
the write, never a release.
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from amem.errors import NotFoundError
from amem.model import clock as clocks
from amem.model.clock import Clock
from amem.model.entry import Entry
from amem.model.ids import draw, is_id
from amem.record import markdown
from amem.record.markdown import Malformed
from amem.record.store import Store, write_new
from amem.settings.root import Root
from amem.typed import Any

_KEY = "held"
"""The front-matter key that makes a file a held write and no entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldWrite:
    """A write that waits for the owner."""

    id: str
    kind: str
    """`write`, or `answer` for a tool's."""
    entry: Entry
    """As it would be in the record; its id is taken only on release."""
    findings: tuple[Mapping[str, Any], ...]
    """`{class, excerpt, …}` as the scan gave them."""
    reasons: tuple[Mapping[str, Any], ...]
    """`{code, …}` as the policy gave them."""
    held_at: str
    gate: str | None = None
    """The bound that held it, when no finding did."""


def hold(
    root: Root,
    draft: Entry,
    findings: Sequence[Mapping[str, Any]],
    reasons: Sequence[Mapping[str, Any]],
    *,
    gate: str | None = None,
    clock: Clock = clocks.now,
) -> str:
    """Keep a write outside the record and return its held id. Raises Malformed when it cannot be written, OSError."""
    root.quarantine.mkdir(mode=0o700, parents=True, exist_ok=True)
    note = {"kind": "write", "held_at": clocks.stamp(clock()), "findings": list(findings), "reasons": list(reasons)}
    if gate is not None:
        note["gate"] = gate
    while True:
        held_id = draw("held")
        data = markdown.format(replace(draft, extra={**draft.extra, _KEY: {"id": held_id, **note}}))
        try:
            write_new(root.quarantine / f"{held_id}.md", data)
        except FileExistsError:
            continue
        return held_id


def show(root: Root, held_id: str) -> HeldWrite:
    """Read one held write. Raises NotFoundError, Malformed."""
    if is_id("held", held_id):
        with suppress(NotFoundError):
            return _read(root, root.quarantine / f"{held_id}.md")
    raise NotFoundError(f"nothing is held as {held_id[:40]}", hint="amem quarantine list")


def remove(root: Root, held_id: str) -> None:
    """Delete a held write. It need not be there. Raises OSError."""
    with suppress(FileNotFoundError):
        os.unlink(root.quarantine / f"{held_id}.md")


@contextmanager
def judging(root: Root) -> Iterator[None]:
    """Let one person at a time judge what waits: a held write, a proposal to promote. Raises OSError."""
    root.quarantine.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(root.quarantine / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def listed(root: Root) -> Iterator[HeldWrite]:
    """Every held write, oldest first. One that cannot be read is left out; `broken` names it."""
    found = []
    for path in _files(root):
        try:
            found.append(_read(root, path))
        except (Malformed, NotFoundError):
            continue
    yield from sorted(found, key=lambda held: (held.held_at, held.id))


def broken(root: Root) -> Iterator[tuple[str, str]]:
    """The id and fault of every file in the quarantine that is no held write. It is kept."""
    for path in _files(root):
        try:
            _read(root, path)
        except Malformed as error:
            yield path.stem, error.why
        except NotFoundError:
            continue


def _files(root: Root) -> list[Path]:
    return sorted(path for path in root.quarantine.glob("*.md") if is_id("held", path.stem)) if root.quarantine.is_dir() else []


def _read(root: Root, path: Path) -> HeldWrite:
    entry = Store(root).load(path).entry
    extra = dict(entry.extra)
    note = extra.pop(_KEY, None)
    if not isinstance(note, dict) or note.get("id") != path.stem:
        raise Malformed(f"{_KEY}: not the note of {path.stem}")
    try:
        return HeldWrite(
            id=path.stem,
            kind=str(note["kind"]),
            entry=replace(entry, extra=extra),
            findings=tuple(_objects(note["findings"])),
            reasons=tuple(_objects(note["reasons"])),
            held_at=str(note["held_at"]),
            gate=note.get("gate"),
        )
    except (KeyError, TypeError) as error:
        raise Malformed(f"{_KEY}: {error}") from error


def _objects(items: Any) -> Iterator[Mapping[str, Any]]:
    for item in items:
        if not isinstance(item, dict):
            raise TypeError(f"expected an object, found {json.dumps(item)[:80]}")
        yield item
