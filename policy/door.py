"""The one door: every decision is logged before anybody learns of it.

Owns no state but the policy in force. When the log cannot be written the caller gets the log's error and no decision,
so nothing proceeds.
"""

import threading
from collections.abc import Callable

from amem.logs.schema import PolicyDecision
from amem.model.clock import Clock, stamp
from amem.policy.decision import Decision
from amem.policy.engine import PolicyEngine
from amem.policy.request import Request

SAID = frozenset({"session", "domain", "principal", "task", "subject"})
"""The fields of a request that its line has anyway."""


class Door:
    """Decide and log. `append` writes one event to the decision log and raises when it could not."""

    def __init__(self, engine: PolicyEngine, append: Callable[[PolicyDecision], None], clock: Clock) -> None:
        self.refused = False
        """Whether it said no to anything: the line of it is one that somebody may want to be gone."""
        self._engine = engine
        self._append = append
        self._clock = clock
        self._look: Callable[[], PolicyEngine | None] = lambda: None
        self._generation = 0
        self._turn = threading.Lock()
        """Held from the look to the swap: what was looked up first would else be put in force last, and stay."""

    @property
    def version(self) -> str:
        """The version of the policy in force."""
        return self._engine.version

    def swap(self, engine: PolicyEngine) -> None:
        """Put another policy or other grants in force from the next decision on; one under way ends under the old."""
        self._engine = engine
        self._generation += 1

    def watch(self, look: Callable[[], PolicyEngine | None]) -> None:
        """Ask `look` before each decision for what is to be in force from then on, if that changed (`live.Live`)."""
        self._look = look

    def generation(self) -> int:
        """How often what is in force has changed, this moment included. Raises what the look raises."""
        with self._turn:
            if (engine := self._look()) is not None:
                self.swap(engine)
            return self._generation

    def concerns(self, action: str, domain: str) -> bool:
        """Whether anything but the built-in policy has a word in an action (`PolicyEngine.concerns`)."""
        return self._engine.concerns(action, domain)

    def decide(self, request: Request) -> Decision:
        """The decision, already in the log. Raises what `append`, or the look at what is in force, raises."""
        self.generation()
        decision = self._engine.decide(request)
        self._append(event(request, decision, stamp(self._clock())))
        self.refused = self.refused or not decision.allow
        return decision


def event(request: Request, decision: Decision, at: str) -> PolicyDecision:
    """The log's record of a decision, with what was asked. A request holds no text of anybody's: ids, labels, counts, names of hosts."""
    asked = request.input
    return PolicyDecision(
        at=at,
        id=decision.id,
        session=asked.get("session"),
        domain=asked.get("domain"),
        principal=asked.get("principal"),
        action=decision.action,
        allow=decision.allow,
        hold=decision.hold or None,
        review=decision.review,
        task=asked.get("task"),
        subject=asked.get("subject"),
        reasons=tuple({"code": reason.code, **reason.facts} for reason in decision.reasons),
        citations=decision.citations,
        policy_version=decision.policy_version,
        data_version=decision.data_version or None,
        input_digest=decision.input_digest,
        input={name: value for name, value in asked.items() if name not in SAID},
    )
