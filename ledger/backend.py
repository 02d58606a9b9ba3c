"""What a database must offer to hold the ledger: transactions, and the acts that every worker repeats, each in one go.

A database knows nothing of the rules; `operations` and `reading` are written over this, once.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from amem.ledger.events import Claimed, Event
    from amem.ledger.task import Task

T = TypeVar("T")


class Tx(Protocol):
    """An open transaction on one domain. `query` names a statement of `sql/`."""

    domain: str

    def now(self) -> int:
        """The ledger's clock, in milliseconds."""

    def rows(self, query: str, values: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        """What a statement finds."""

    def select(self, body: str, values: Mapping[str, Any]) -> Sequence[Sequence[Any]]:
        """What a statement in the words of `queries` finds, for one that is put together from fixed parts."""

    def run(self, query: str, values: Mapping[str, Any]) -> None:
        """Run a statement that answers nothing."""

    def insert(self, columns: Mapping[str, Any]) -> None:
        """Add a task's row, its set of requirements and whatever routes its id."""

    def update(self, task: str, columns: Mapping[str, Any]) -> None:
        """Change columns of a task's row."""

    def serialise(self) -> None:
        """Let nobody else change the structure of the domain (who waits on whom, who was filed from whom) until the end."""


class Taken(NamedTuple):
    """What a claim came to. `ended`: nothing was claimed, because a lease has ended and its task must be given back first."""

    task: "Task | None"
    ended: bool = False


class Backend(Protocol):
    """One connection to a database. Safe to call from several threads."""

    def now_ms(self) -> int:
        """The ledger's clock."""

    def read(self, domain: str, ask: Callable[[Tx], T]) -> T:
        """Answer from one snapshot; of a domain that has no place yet nothing is found."""

    def change(self, domain: str, act: Callable[[Tx], T], *, new: bool = False) -> T:
        """Run `act` in one write transaction, again when the database says that another one was in the way.

        `new` makes the place of a domain that has none yet; otherwise nothing is found there.
        """

    def alone(self, domain: str, act: Callable[[Tx], T]) -> T:
        """Run `act` in one transaction that nobody else writes beside."""

    def at_once(self, statement: str, event: "Event", values: Mapping[str, Any]) -> "Task | None":
        """Do what a statement of `sql/` does to `event.task`, with its event, or nothing when its conditions do not hold.

        The event is kept with the time and the fence of the task as it is answered.
        """

    def take(self, domain: str, event: "Claimed", capabilities: Collection[str], *, unless_ended: bool) -> Taken:
        """Claim the first ready task that these capabilities allow; with `unless_ended` only when no lease has ended."""

    def scrub(self, domain: str) -> None:
        """Write the domain's tables anew, so that no page holds what was deleted or replaced."""

    def close(self) -> None:
        """Let go of the database."""
