"""Serve turns of kept transcripts, each only where an entry cites it; drop what is not cited once its time is up.

A citation is `transcript:<session>#<turn>` or `#<first>-<last>`, in the body or among the sources of an entry of the transcript's own
domain. Whoever may read an active entry may read the turns that it cites, up to the transcript's own label; reading them raises the
session's label by that, as `get` does. Excerpts are no files of their own: what a sweep leaves of a transcript are its cited turns, served
under the same rule, so that an entry's demotion or erasure takes its excerpts out of service with it.
"""

import errno
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from amem.egress import contexts, reading
from amem.errors import ConflictError, NotFoundError, RefusedError
from amem.logs.schema import MemoryAct, MemoryRead, TranscriptSwept
from amem.memory.held import act
from amem.memory.outcomes import Refused
from amem.memory.read import reader
from amem.memory.session import Memory, Session
from amem.model import clock
from amem.model.entry import Status, Tier, tokens
from amem.model.ids import is_id
from amem.policy import request
from amem.policy.scan import scan
from amem.record import transcripts
from amem.record.index import Read
from amem.record.rows import Filter
from amem.record.sealed import Sealer
from amem.record.store import digest
from amem.record.transcripts import Kept
from amem.sandbox.reader import remove
from amem.typed import Any, NamedTuple

CITATION = re.compile(r"transcript:(ses-[0-9a-z]{8})#([0-9]{1,7})(?:-([0-9]{1,7}))?(?![0-9-])", re.ASCII)
MAX_SPAN = 1000
"""Turns that one citation can cover; of a longer one the last so many."""
MAX_CITING = 200
"""Entries that are looked at for one session."""


class Cited(NamedTuple):
    """That an entry cites turns."""

    entry: str
    first: int
    last: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Turns:
    """Turns that were served."""

    kept: Kept
    rows: tuple[transcripts.Row, ...]
    cited_by: tuple[str, ...]
    uncited: tuple[int, ...] = ()
    """Turns that are there, and that nothing cites which the reader may read."""
    held: tuple[int, ...] = ()
    """Turns that are cited, and in which the scan finds what would hold a write: a citation is no way around the quarantine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What a sweep kept and dropped."""

    kept: tuple[tuple[str, int, str], ...] = ()
    """Turns that stayed: session, turn, the entry that cites it."""
    transcripts: tuple[str, ...] = ()
    """Sessions whose transcripts, but for that, were dropped."""
    contexts: tuple[str, ...] = ()
    """Sessions whose decision contexts were dropped."""
    homes: tuple[str, ...] = ()
    """Sessions whose private homes were dropped: a harness's own transcript lies there, and what else it kept."""


def listed(memory: Memory, session: Session, domains: Sequence[str], of: str | None = None) -> list[Kept]:
    """The kept transcripts that the reader may know of, newest first."""
    found: list[Kept] = []
    for domain in domains:
        filter = reader(memory, session, (domain,))
        if isinstance(filter, Filter):
            found += [one for one in transcripts.all_kept(memory.root, (domain,), of) if not one.classification.exceeds(filter.max_label)]
    return sorted(found, key=lambda one: (one.kept_at, one.session), reverse=True)


def cited_by(memory: Memory, session: Session, kept: Kept) -> list[str]:
    """The active entries that cite it and that the reader may read."""
    return sorted({cited.entry for cited in citing(memory, session, kept)})


def citing(memory: Memory, session: Session, kept: Kept) -> list[Cited]:
    """Which turns are cited by active entries that the reader may read."""
    filter = reader(memory, session, (kept.domain,))
    if isinstance(filter, Refused):
        return []
    name = kept.session.removeprefix("ses-")
    with memory.lock:
        found = [hit.id for hit in memory.index.search(name, filter, limit=MAX_CITING).hits]
        found += [row.id for row in memory.index.list(filter, cites=f"transcript:{kept.session}#", limit=MAX_CITING).rows]
        return [cited for id in dict.fromkeys(found) for of, cited in _citations(memory.index.read(id), filter) if of == kept.session]


def _citations(one: Read | None, filter: Filter) -> Iterator[tuple[str, Cited]]:
    """The sessions whose turns an entry cites, where it is active and the reader may read it."""
    if one is None or one.row.status is not Status.ACTIVE or not filter.admits(one.row.domain, one.row.classification, one.row.tier):
        return
    for cited in CITATION.finditer("\n".join((one.entry.body, *one.entry.sources))):
        first, last = int(cited[2]), int(cited[3] or cited[2])
        if first <= last:
            yield cited[1], Cited(one.row.id, max(first, last - MAX_SPAN + 1), last)


def _all_cited(memory: Memory, session: Session, domain: str) -> dict[str, list[Cited]]:
    """Every citation of a domain, by session: what is dropped must not depend on what a search finds first."""
    filter = reader(memory, session, (domain,))
    found: dict[str, list[Cited]] = {}
    if isinstance(filter, Filter):
        with memory.lock:
            for row in memory.index.list(filter, limit=0).rows:
                for of, cited in _citations(memory.index.read(row.id), filter):
                    found.setdefault(of, []).append(cited)
    return found


def turns(memory: Memory, session: Session, of: str, first: int, last: int, *, uncited: bool = False, unmask: bool = False) -> Turns:
    """Serve turns of a session, in order: those that are cited, or with `uncited`, the owner's act, all of them.

    `unmask` is the owner's too, and gives credentials as they were. Raises NotFoundError: there are none, or none that may be read;
    RefusedError: the scan would hold all of them.
    """
    kept = _visible(memory, session, of)
    cites = citing(memory, session, kept)
    there = [row for row in transcripts.rows(kept) if first <= row["n"] <= last and not row.get("left_out")]
    open_ = {row["n"]: [one.entry for one in cites if one.first <= row["n"] <= one.last] for row in there}
    served = [row for row in there if uncited or open_[row["n"]]]
    held = () if session.is_owner else tuple(row["n"] for row in served if scan(text(row)))
    served = [row for row in served if row["n"] not in held]
    if held and not served:
        raise RefusedError(f"what the scan finds in {of}#{', '.join(map(str, held))} would hold a write: the owner alone is shown it")
    if not served:
        raise NotFoundError(f"{of} has no such turn, or nothing cites it that you may read", hint=f"amem transcript list --session {of}")
    if uncited or unmask:
        what = " ".join(word for word, wanted in (("uncited", uncited), ("unmask", unmask)) if wanted)
        subject = f"transcript:{of}#{first}-{last}"
        acted = MemoryAct(at=clock.stamp(memory.clock()), principal=session.principal, act=what, subject=subject, entries=(), why="")
        memory.append(acted)
    entries = tuple(dict.fromkeys(id for row in served for id in open_[row["n"]]))
    label = session.served([kept.classification], [Tier.RAW])
    memory.append(
        MemoryRead(
            at=clock.stamp(memory.clock()), session=session.id, domain=kept.domain, principal=session.principal, tool="transcript_turn",
            entries=entries, tokens=tokens("".join(row["text"] for row in served)), label=label, task=session.task,
        )
    )  # fmt: skip
    if unmask:
        served = [_plain(row, Sealer(memory.root.state)) for row in served]
    shut = tuple(row["n"] for row in there if not uncited and not open_[row["n"]])
    return Turns(kept=kept, rows=tuple(served), cited_by=entries, uncited=shut, held=held)


def sweep(
    memory: Memory, session: Session, domains: Sequence[str], at: datetime, running: Callable[[str], bool], *, dry_run: bool = False
) -> Swept:
    """Drop what is past its time in these domains, but for the turns that active entries cite. `running` says which sessions still run.

    Raises RefusedError (only the owner may), OSError.
    """
    kept: list[tuple[str, int, str]] = []
    swept: list[str] = []
    dropped: list[str] = []
    homes: list[str] = []
    for domain in domains:
        days = memory.grants.domains[domain].transcript_retention_days
        due = [
            one
            for one in transcripts.all_kept(memory.root, (domain,))
            if one.erased_at is None and one.expires_at(days) <= at and not running(one.session)
        ]
        cites = _all_cited(memory, session, domain) if due else {}
        for one in due:
            stay = list(_cited_rows(one, cites.get(one.session, ())))
            kept += [(one.session, row["n"], entry) for row, entries in stay for entry in entries]
            if one.swept_at is None or len(stay) < sum(1 for _ in transcripts.rows(one)):
                swept.append(one.session)
                if not dry_run:
                    act(memory, session, request.ERASE, domain, one.session)
                    _leave(memory, session, one, [row for row, _ in stay], at)
        for folder in _expired_contexts(memory, domain, days, at, running):
            dropped.append(folder.name)
            if not dry_run:
                act(memory, session, request.ERASE, domain, folder.name)
                memory.append(_swept(memory, session, domain, folder.name, contexts=True))
                shutil.rmtree(folder)
        for folder in _expired_homes(memory, domain, days, at, running):
            homes.append(folder.name)
            if not dry_run:
                act(memory, session, request.ERASE, domain, folder.name)
                memory.append(_swept(memory, session, domain, folder.name, home=True))
                _take_away(folder)
    return Swept(kept=tuple(kept), transcripts=tuple(swept), contexts=tuple(dropped), homes=tuple(homes))


def prune(memory: Memory, session: Session, note: Callable[[str], None]) -> None:
    """Take out of what sweeps left the turns that no active entry cites any more; `note` is told each path before. Raises OSError."""
    for domain in memory.grants.domains:
        swept = [one for one in transcripts.all_kept(memory.root, (domain,)) if one.swept_at is not None and one.erased_at is None]
        cites = _all_cited(memory, session, domain) if swept else {}
        for one in swept:
            stay = [row for row, _ in _cited_rows(one, cites.get(one.session, ()))]
            if len(stay) < sum(1 for _ in transcripts.rows(one)):
                note(os.path.relpath(one.path, memory.root.path))
                _leave(memory, session, one, stay, memory.clock())


def erase(memory: Memory, session: Session, of: str, why: str) -> dict[str, Any]:
    """Erase a transcript before its time: a stub stays, and a receipt, which is returned.

    Raises RefusedError (only the owner may), NotFoundError, ConflictError (erased already), OSError.
    """
    if not session.is_owner:
        act(memory, session, request.ERASE, session.domain, of)  # before anybody else learns whether it is there
    kept = _visible(memory, session, of)
    if kept.erased_at is not None:
        raise ConflictError(f"{of}: its transcript is erased already", hint="amem transcript list")
    cites = cited_by(memory, session, kept)
    decision = act(memory, session, request.ERASE, kept.domain, of)
    at, path = clock.stamp(memory.clock()), os.path.relpath(kept.path, memory.root.path)
    transcripts.write(kept._replace(erased_at=at), ())
    receipt: dict[str, Any] = {
        "id": decision.id, "act": request.ERASE, "transcript": of, "by": session.principal, "why": why, "at": at,
        "removed": [{"path": path, "how": "erased"}], "citing": cites,
    }  # fmt: skip
    data, name = json.dumps(receipt, indent=1).encode(), f"erased/{decision.id}.json"
    memory.append(
        MemoryAct(
            at=at, session=session.id, domain=kept.domain, principal=session.principal, act=request.ERASE, subject=f"transcript:{of}",
            entries=(), why=why, files={name: digest(data)},
        )
    )  # fmt: skip
    (memory.root.state / "erased").mkdir(mode=0o700, exist_ok=True)
    with open(os.open(memory.root.state / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        file.write(data)
    return receipt


def _visible(memory: Memory, session: Session, of: str) -> Kept:
    """The transcript of a session, where the reader may know of it. Raises NotFoundError."""
    for domain in memory.grants.domains if is_id("session", of) else ():
        filter = reader(memory, session, (domain,))
        if isinstance(filter, Filter):  # a domain that may not be read is not looked into
            for kept in transcripts.all_kept(memory.root, (domain,), of):
                if not kept.classification.exceeds(filter.max_label):
                    return kept
    raise NotFoundError(f"no transcript of {of[:40]} was kept", hint="amem transcript list")


def _cited_rows(kept: Kept, cites: Sequence[Cited]) -> Iterator[tuple[transcripts.Row, list[str]]]:
    for row in transcripts.rows(kept):
        if entries := sorted({one.entry for one in cites if one.first <= row["n"] <= one.last}):
            yield row, entries


def text(row: transcripts.Row) -> str:
    """A turn as text."""
    calls = [
        f"-> {call['name']} {call['arguments']}" + (f" ({call['bytes']} bytes)" if "bytes" in call else "") for call in row.get("tools", ())
    ]
    return "\n".join((f"#{row['n']} {row['role']}", *filter(None, (row["text"],)), *calls))


def _plain(row: transcripts.Row, sealer: Sealer) -> transcripts.Row:
    """The turn with its credentials as they were; a seal that does not hold stays."""

    def opened(text: str) -> str:
        return sealer.opened(text.encode())[0].decode("utf-8", "replace")

    calls = [{**call, "name": opened(call["name"]), "arguments": opened(call["arguments"])} for call in row.get("tools", ())]
    return {**row, "text": opened(row["text"]), **({"tools": calls} if calls else {})}


def _leave(memory: Memory, session: Session, kept: Kept, stay: list[transcripts.Row], at: datetime) -> None:
    """Say what is dropped, then leave only these turns."""
    memory.append(_swept(memory, session, kept.domain, kept.session, turns=tuple(row["n"] for row in stay)))
    if stay:
        transcripts.write(kept._replace(swept_at=kept.swept_at or clock.stamp(at)), transcripts.lines(stay))
    else:
        kept.path.unlink(missing_ok=True)


def _swept(
    memory: Memory, session: Session, domain: str, of: str, *, turns: tuple[int, ...] = (), contexts: bool | None = None,
    home: bool | None = None,
) -> TranscriptSwept:  # fmt: skip
    at = clock.stamp(memory.clock())
    return TranscriptSwept(at=at, session=of, domain=domain, principal=session.principal, turns=turns, contexts=contexts, home=home)


def _expired_contexts(memory: Memory, domain: str, days: int, at: datetime, running: Callable[[str], bool]) -> Iterator[Path]:
    """Folders of sessions whose last call is past its time."""
    for folder in sorted((memory.root.record / domain / ".contexts").glob("ses-*")):
        if folder.is_symlink() or not folder.is_dir() or running(folder.name):
            continue
        last = [call["at"] for call in contexts.read(folder)[-1:] if isinstance(call, dict) and isinstance(call.get("at"), str)]
        if _is_past(memory, folder, domain, last[0] if last else "", days, at):
            yield folder


def _expired_homes(memory: Memory, domain: str, days: int, at: datetime, running: Callable[[str], bool]) -> Iterator[Path]:
    """The private homes of a domain's sessions that ended, or of which nothing is known but their start, so long ago."""
    of_domain = {row["id"]: row for row in reading.sessions(memory.root) if row["domain"] == domain}
    for folder in sorted(memory.root.homes.glob("ses-*")):
        row = of_domain.get(folder.name)
        if row is None or folder.is_symlink() or not folder.is_dir() or running(folder.name):
            continue
        if _is_past(memory, folder, domain, row.get("ended_at") or row["started_at"], days, at):
            yield folder


def _is_past(memory: Memory, path: Path, domain: str, stamp: str, days: int, at: datetime) -> bool:
    """Whether what was kept then is past its time; what has no time of its own never is."""
    head = Kept(path, path.name, domain, "", memory.grants.domains[domain].default, stamp, 0)
    try:
        return head.expires_at(days) <= at
    except ValueError:
        return False


def _take_away(home: Path) -> None:
    """Remove a private home. Raises OSError where something of it stays."""
    remove(str(home))
    if home.exists():
        raise OSError(errno.EACCES, "cannot be removed whole", str(home))
