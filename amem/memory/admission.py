"""Admission: whether what is filed may be claimed without a person's word. The policy decides, and the log says so.

Filing is cheap and has no gate. The ledger keeps its own line beside the policy's: what asks for more than the held task, or is
irreversible, never starts admitted.
"""

from collections.abc import Iterable

from amem.memory.session import Memory, Session
from amem.model.principal import SYSTEM
from amem.policy import request


def admitted(memory: Memory, session: Session, requires: Iterable[str], *, by_amem: bool = False) -> bool:
    """Whether the policy admits a task with these requirements that the session files, or that amem files for its owner."""
    holding = None if by_amem else session.holding
    decision = memory.door.decide(
        request.admit(
            principal=SYSTEM if by_amem else session.principal,
            domain=session.domain,
            session=session.id,
            task=holding.task if holding else None,
            requires=tuple(requires),
            held=memory.ledger.show(holding.task).requires if holding else None,
        )
    )
    return decision.allow
