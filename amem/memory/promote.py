"""Raise an entry's tier: mark it curated, propose it as verified, approve or decline the proposal.

Nobody sets verified directly, and nobody but a person approves; who may is the policy's word, logged before anything happens. A promotion
is a new version of the entry with the same body. The why goes to the ledger, never into the entry or the approval task. The order: the
decision, the note in the ledger, the record, then what became of it; an approval that was cut short is done again.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from amem.errors import ConflictError, NotFoundError
from amem.memory.outcomes import Refused
from amem.memory.read import log, visible
from amem.memory.session import Memory, Session
from amem.memory.write import indexed
from amem.model.entry import Entry, EntryType, Status, Tier, tokens
from amem.model.ids import domain_of
from amem.policy import request
from amem.policy.decision import Decision
from amem.policy.scan import scan
from amem.record import markdown, quarantine
from amem.typed import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amem.ledger.promotions import Promotion

WHY_LIMIT = 4000
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
"""In an approval task: of the entry as it was proposed, so that an edit that makes no version shows too."""
_PRIORITY = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Promoted:
    """An entry whose tier was raised, or proposed to be."""

    entry: Entry
    """As it stands now."""
    to: Tier
    landed: bool
    task: str | None = None
    """The approval task, of a proposal."""
    left_out: str | None = None
    """Why a policy that was approved is not in force all the same."""


def promote(memory: Memory, session: Session, id: str, to: Tier, why: str) -> Promoted | Refused:
    """Mark an entry curated, or propose it as verified. Raises ConflictError (it changed meanwhile), UnavailableError, OSError."""
    row = visible(memory, session, id)
    if row is None:
        return Refused(code="not_found", reason=f"there is no entry {id[:60]} for you", hint="search")
    if row.status is not Status.ACTIVE:
        return Refused(code="gone", reason=f"{id} is {row.status}: only what is served is promoted", hint="search")
    said = why.strip()
    decision = memory.door.decide(
        request.promote(
            principal=session.principal, domain=row.domain, session=session.id, task=memory.bound(session), subject=id, author=row.author,
            tier=row.tier, to=to, why=bool(said), classification=row.classification, label=session.label,
        )
    )  # fmt: skip
    if not decision.allow:
        return _refused(decision)
    if (unfit := _unfit(session, said)) is not None:
        return unfit
    entry = _current(memory, id)
    if entry.version != row.version:  # what was decided on is no longer there
        raise ConflictError(f"{id} changed meanwhile", hint=f"amem get {id}")
    if to is Tier.VERIFIED:
        return _propose(memory, session, entry, said)
    number = memory.ledger.promotion(id, entry.version, to, by=session.principal, why=said)
    raised = _raise(memory, entry, to)
    memory.ledger.landed(id, number)
    return Promoted(entry=raised, to=to, landed=True)


def promotions(memory: Memory, session: Session, id: str) -> "tuple[Promotion, ...] | Refused":
    """Who promoted which version of an entry, and why, for whoever may read the entry; one that was replaced included."""
    row = visible(memory, session, id)
    if row is None:
        return Refused(code="not_found", reason=f"there is no entry {id[:60]} for you", hint="search")
    found = memory.ledger.promotions(id)
    log(memory, session, "promotions", (row,), tokens("".join(one.why or "" for one in found)))  # a why is content
    return found


def approve(memory: Memory, session: Session, task: str) -> Promoted | Refused:
    """Land the proposal of an approval task. Raises ConflictError when the entry changed since, NotFoundError."""
    with quarantine.judging(memory.root):
        found = _proposal(memory, session, task)
        entry = _current(memory, found.entry)
        done = entry.tier is Tier.VERIFIED and entry.version == found.version + 1  # cut short after the record, before the ledger
        decision = _judged(memory, session, request.APPROVE, found, entry.type, found.version if done else entry.version)
        if not decision.allow:
            if decision.code == "version_changed":
                raise ConflictError(decision.sentence(), hint=f"amem promote {entry.id} --to verified --why …", decision=decision.id)
            return _refused(decision)
        asked = memory.ledger.text(entry.domain, memory.ledger.show(task).body) or ""
        if (proposed := _DIGEST.search(asked)) and proposed[0] != markdown.fixed(entry):
            raise ConflictError(f"{entry.id} is not what was proposed: it was changed behind amem", hint="amem verify")
        left_out = None
        if entry.type is EntryType.POLICY and memory.policies is not None:
            left_out = memory.policies.foresee(memory.grants, entry).why  # looked at before it is there, where no decision waits for it
        raised = entry if done else _raise(memory, entry, Tier.VERIFIED)
        landed = Promoted(entry=raised, to=Tier.VERIFIED, landed=True, task=task, left_out=left_out)
        return _settle(memory, session, found, "landed", None) or landed


def decline(memory: Memory, session: Session, task: str, why: str | None = None) -> "Promotion | Refused":
    """Say no to a proposal: this version is not proposed again. Raises NotFoundError."""
    with quarantine.judging(memory.root):
        found = _proposal(memory, session, task)
        entry = memory.store.read(found.entry)
        decision = _judged(memory, session, request.DECLINE, found, entry.type, entry.version)
        if not decision.allow:
            return _refused(decision)
        return _settle(memory, session, found, "declined", why) or found


def shape(found: "Promotion") -> dict[str, Any]:
    """A promotion as commands and tools show it."""
    from amem.ledger.promotions import State
    from amem.ledger.views import instant

    shown: Mapping[str, Any] = {
        "version": found.version, "to": found.to, "by": found.by, "why": found.why, "at": instant(found.at_ms),
        "landed": found.state is State.LANDED, "task": found.task, "declined": (found.state is State.DECLINED) or None,
        "closed": (found.state is State.CLOSED) or None,
    }  # fmt: skip
    return {key: value for key, value in shown.items() if value is not None}


def _propose(memory: Memory, session: Session, entry: Entry, why: str) -> Promoted | Refused:
    from amem.ledger import store
    from amem.ledger.draft import Draft
    from amem.ledger.promotions import PROMOTE

    lineage = f"What its session had read was {entry.lineage} or above.\n" if entry.lineage else ""
    draft = Draft(
        domain=entry.domain,
        title=f"Approve version {entry.version} of {entry.id} as verified",
        body=(
            f"{session.principal} proposes version {entry.version} of {entry.id}, by {entry.author}, as verified.\n{lineage}\n"
            f"    amem get {entry.id}\n    amem approve <this task>\n    amem decline <this task>\n\n"
            f"Judge the entry first; then read why it was proposed: amem promotions {entry.id}\n\n"
            f"What is proposed: {markdown.fixed(entry)}\n"
        ),
        priority=_PRIORITY,
        requires=("human",),
        label=entry.classification,
        origin=f"{PROMOTE}{entry.id}@{entry.version}",
    )
    filed = memory.ledger.propose(entry.id, entry.version, draft, by=session.principal, why=why)
    if isinstance(filed, store.Refused):
        return Refused(code=filed.code, reason=filed.reason, hint=filed.hint)
    return Promoted(entry=entry, to=Tier.VERIFIED, landed=False, task=filed.task.id)


def _proposal(memory: Memory, session: Session, task: str) -> "Promotion":
    """The open proposal that a task is about, of an entry that the session may read. Raises NotFoundError, ConflictError."""
    from amem.ledger.promotions import PROMOTE, State

    held = memory.ledger.show(task)
    origin = held.origin or ""
    id = origin.removeprefix(PROMOTE).rpartition("@")[0] if origin.startswith(PROMOTE) else ""
    if visible(memory, session, id) is None:
        raise NotFoundError(f"{task} is about no promotion of an entry that you may read", hint="amem task list --human")
    found = next((one for one in memory.ledger.promotions(id) if one.task == task), None)
    if found is None or found.state is not State.PROPOSED or not held.status.open:
        raise ConflictError(f"{task} holds no open proposal", hint=f"amem promotions {id}")
    return found


def _judged(memory: Memory, session: Session, action: str, found: "Promotion", type: EntryType, version: int) -> Decision:
    return memory.door.decide(
        request.judge(
            action, principal=session.principal, domain=domain_of(found.entry), session=session.id, task=session.task, subject=found.entry,
            type=type, proposer=found.by, proposed=found.version, version=version,
        )
    )  # fmt: skip


def _settle(memory: Memory, session: Session, found: "Promotion", state: str, why: str | None) -> Refused | None:
    from amem.ledger import store
    from amem.ledger.promotions import State

    settled = memory.ledger.settle(found.entry, found.task or "", by=session.principal, state=State(state), why=why)
    return Refused(code=settled.code, reason=settled.reason, hint=settled.hint) if isinstance(settled, store.Refused) else None


def _current(memory: Memory, id: str) -> Entry:
    """An entry as it stands, under the label it is served under. Raises ConflictError when it is no longer active."""
    with memory.lock:
        read = memory.index.read(id)
    if read is None or read.entry.status is not Status.ACTIVE:
        raise ConflictError(f"{id} is no longer served: there is nothing to promote", hint=f"amem get {id}")
    return read.entry


def _raise(memory: Memory, entry: Entry, to: Tier) -> Entry:
    raised = replace(entry, version=entry.version + 1, tier=to)
    indexed(memory, memory.store.replace(raised))
    return raised


def _unfit(session: Session, why: str) -> Refused | None:
    """A why is served to sessions, so what the scan would hold in an entry is no why; the owner's word passes."""
    if len(why) > WHY_LIMIT or "\0" in why:
        return Refused(code="invalid", reason=f"why: {WHY_LIMIT} characters at most, without NUL")
    if not session.is_owner and (found := scan(why)):
        return Refused(
            code="refused", reason=f"why: the text has what may not be kept: {', '.join(dict.fromkeys(one.cls for one in found))}"
        )
    return None


def _refused(decision: Decision) -> Refused:
    return Refused(code=decision.code or "refused", reason=decision.sentence(), hint=decision.hint, decision=decision.id)
