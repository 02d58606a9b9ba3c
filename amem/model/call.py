"""A model call and what it used, in one vocabulary for every provider."""

from enum import StrEnum

from amem.typed import NamedTuple


class Dialect(StrEnum):
    """The wire shape of a call."""

    ANTHROPIC = "anthropic"
    RESPONSES = "responses"
    CHAT = "chat"
    GEMINI = "gemini"


class ObservedBy(StrEnum):
    """Who saw what a log line says."""

    EGRESS = "egress"
    HARNESS = "harness"
    AMEM = "amem"
    TAP = "tap"


class Billing(StrEnum):
    """`metered` when the call went out on a key or gateway amem holds; `plan` on a subscription login."""

    METERED = "metered"
    PLAN = "plan"


class Auth(StrEnum):
    """Whose credential a session's model calls go out on."""

    SUBSCRIPTION = "subscription"
    """The harness's own login, copied into the private home; it passes through, pinned to that account."""
    KEY = "key"
    """A provider's key that the egress holds."""
    GATEWAY = "gateway"
    """A gateway's credential that the egress holds."""

    @property
    def billing(self) -> Billing:
        """`plan` on a login, else `metered`."""
        return Billing.PLAN if self is Auth.SUBSCRIPTION else Billing.METERED


class Role(StrEnum):
    """What a model call of amem's own is for (B52). Who decides, or routes, is code and never a model: so no such role is here."""

    RECOMMENDER = "recommender"
    EVALUATOR = "evaluator"
    GENERATOR = "generator"


class Usage(NamedTuple):
    """Tokens of one call. `input` excludes cache reads and writes; `output` includes reasoning."""

    input: int
    output: int
    cache_read: int = 0
    cache_write: int = 0
    reasoning: int | None = None
    """The part of `output` that was reasoning; None when the provider did not say."""

    @property
    def total(self) -> int:
        """All tokens in and out."""
        return self.input + self.output + self.cache_read + self.cache_write
