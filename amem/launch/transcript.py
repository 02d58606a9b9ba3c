"""Keep a session's transcript in the record when it ends, as turns in amem's own form: not every harness's file can be read later."""

from amem.hooks.turns import MARKS, Turn
from amem.model import clock
from amem.model.label import Label, highest
from amem.record import transcripts
from amem.record.sealed import Sealer
from amem.typed import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amem.launch.leftover import Found
    from amem.launch.run import Prepared
    from amem.settings.grants import Grants
    from amem.settings.root import Root


def keep(root: "Root", grants: "Grants", ready: "Prepared", found: "Found", label: Label) -> None:
    """Keep it at the session's label, and never below what its domain starts at. Raises OSError, IntegrityError."""
    domain = ready.plan.domain
    grant = grants.domains[domain]
    if not grant.transcripts:
        return
    kept = transcripts.Kept(
        path=transcripts.place(root, domain, ready.id),
        session=ready.id,
        domain=domain,
        harness=ready.plan.harness.name,
        classification=highest((label,), floor=grant.default),
        kept_at=clock.stamp(clock.now()),
        turns=len(found.read.turns),
        bad_lines=found.read.bad,
        cut=found.read.cut,
    )
    transcripts.keep(kept, map(row, found.read.turns), Sealer(root.state).masked)


def row(turn: Turn) -> dict[str, Any]:
    """A turn as it is kept: the reasoning in front of what was said, marked as what it is."""
    thought = f"{MARKS[turn.how]} {turn.reasoning}".rstrip() if turn.how is not None else ""
    kept: dict[str, Any] = {"n": turn.n, "role": turn.role, "text": "\n".join(filter(None, (thought, turn.text)))}
    if turn.how is not None:
        kept["reasoning"] = turn.how
    if turn.tools:
        kept["tools"] = [
            {"name": call.name, "arguments": call.arguments, **({"bytes": call.size} if call.size is not None else {})}
            for call in turn.tools
        ]
    return kept
