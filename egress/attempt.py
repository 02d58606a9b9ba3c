"""One call under way, from its decision to its row."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from amem.egress.access import Access
from amem.egress.contexts import Context
from amem.egress.flow import Call, Kind
from amem.egress.identity import REQUIRE_BROKEN, REQUIRE_UNTOLD, response_id_class
from amem.egress.meter import CallRow
from amem.egress.routes import Route
from amem.egress.usage import Metered, UsageReader

GONE = 499
"""The status of a call whose harness went before there was one."""
_PERHAPS_USED = frozenset(("upstream_silent", "upstream_cut"))


@dataclass(slots=True)
class Attempt:
    """What is known so far about a call."""

    id: str
    at: str
    began_s: float
    """By the loop's clock."""
    call: Call
    route: Route
    status: int = 0
    refused: str | None = None
    heard_s: float | None = None
    """When it left, or the last of its answer came; None for a call that did not leave."""
    first_s: float | None = None
    partial: bool = False
    reason: str | None = None
    """Why there is no answer, or no whole one: a code."""
    reader: UsageReader | None = None
    request_id: str | None = None
    shaping: tuple[str, ...] = ()
    reserved: int = 0
    context: Context | None = None
    unread: Iterator[None] = field(default_factory=lambda: iter(()))
    """The steps in which the last bytes that passed are read."""

    def passed(self, piece: bytes, read: bytes | None = None) -> Iterator[None]:
        """Some bytes of the answer went to the harness: the context takes them, and the meter reads them in the steps that are returned.

        `read` are those that came, where others went. All steps are taken before more is passed.
        """
        if self.context is not None:
            self.context.feed(piece)
        if self.reader is not None:
            self.unread = self.reader.steps(piece if read is None else read)
        return self.unread

    def to_read(self) -> Iterator[None]:
        """What was not read yet of an answer that is over, in steps."""
        yield from self.unread
        if self.reader is not None:
            yield from self.reader.ending()

    @property
    def whole(self) -> bool:
        """Whether a good answer came to its end."""
        return 200 <= self.status < 300 and not self.partial and self.reason is None

    @property
    def counted(self) -> bool:
        """Whether it has a row: lists of models and a login's own errands have none."""
        return self.call.kind in (Kind.CALL, Kind.COUNT)

    def row(self, access: Access, ended_s: float) -> CallRow:
        """The row of a call that is over. Ends the context, if one is kept."""
        told: Metered | None = self.reader.result() if self.reader is not None else None
        usage = told.usage if told is not None else None
        kind_of_id = response_id_class(told.response_id) if told is not None else None
        if self.context is not None and access.contexts is not None:
            self.context.status, self.context.partial, self.context.response_class = self.status, self.partial, kind_of_id
            access.contexts.end(self.context)
        unmetered = self.reason
        if unmetered is None and told is not None and usage is None:
            unmetered = told.unmetered_reason
        return CallRow(
            id=self.id, at=self.at, session=access.session, domain=access.domain, principal=access.principal, task=access.task(),
            kind=self.call.kind, destination=self.route.destination, model=self.call.model, dialect=self.call.dialect, status=self.status,
            billing=self.route.billing,
            input=usage.input if usage else None, output=usage.output if usage else None,
            cache_read=usage.cache_read if usage else None, cache_write=usage.cache_write if usage else None,
            reasoning=usage.reasoning if usage else None,
            partial=self._partial(told),
            unmetered_reason=unmetered, refused=self.refused,
            ms=round((ended_s - self.began_s) * 1000),
            first_ms=round((self.first_s - self.began_s) * 1000) if self.first_s is not None else None,
            response_id_class=kind_of_id, reported_model=told.model if told else None, request_id=self.request_id,
            shaping=",".join(self.shaping) or None, charged=usage.total if usage is not None else self._unknown(),
            role=access.role, alarm=self._unkept(told),
        )  # fmt: skip

    def _unkept(self, told: Metered | None) -> str | None:
        """The alarm of an answer that did not keep to what its destination requires, or did not say so (B18)."""
        if told is None or told.usage is None or self.call.kind is not Kind.CALL:
            return None
        said = [told.said.get(member) for member in self.route.require]
        if any(value is not None and value != wanted for value, wanted in zip(said, self.route.require.values(), strict=True)):
            return REQUIRE_BROKEN
        return REQUIRE_UNTOLD if None in said else None

    def _partial(self, told: Metered | None) -> bool:
        """Whether the figures are a floor. Codex leaves at the last event, before a gateway has closed the stream (0.171, 2026-11)."""
        if told is None or told.usage is None:
            return self.partial
        return not told.complete

    def _unknown(self) -> int:
        """What a call counts as that did not say what it used.

        As reserved when it may have used anything: by breaking calls off, or by an upstream that tells nothing, no limit is got
        round.
        """
        used = self.refused is None and (self.status < 300 or self.partial or self.reason in _PERHAPS_USED)
        return self.reserved if used else 0
