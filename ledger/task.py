"""A task as the projection holds it, and what somebody files, checked once.

Pure values. Instants are whole milliseconds since the epoch by the ledger's own clock; only `amem.ledger.shown` writes them as text.
A long text (a body, a remark) is never in here: its digest is, and the text lies beside the events, so that erasing a
text leaves every event whole.
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from amem.errors import UsageError
from amem.model.ids import domain_of, is_id
from amem.model.label import Label

MAX_TITLE = 200
MAX_BODY_BYTES = 256 << 10
MAX_DEPENDENCIES = 100
MAX_REQUIREMENTS = 16
PRIORITIES = range(10)
DEFAULT_PRIORITY = 3
HUMAN = "human"
IRREVERSIBLE = "irreversible"
ANYTHING = frozenset({"*"})
"""The capabilities of a person: whatever a task requires."""

_WORD = re.compile(r"[a-z0-9][a-z0-9_.:+-]{0,63}")
_ORIGIN = re.compile(r"[a-z]+:[A-Za-z0-9][A-Za-z0-9_.@:/-]{0,199}")


class Status(StrEnum):
    """Where a task stands."""

    PROPOSED = "proposed"
    ADMITTED = "admitted"
    CLAIMED = "claimed"
    BLOCKED = "blocked"
    COMPLETED = "completed"
    INVALIDATED = "invalidated"

    @property
    def open(self) -> bool:
        """Whether work on it is still to come."""
        return self not in (Status.COMPLETED, Status.INVALIDATED)


OPEN = tuple(status for status in Status if status.open)


@dataclass(frozen=True, slots=True)
class Task:
    """One task. Fields stand in the order of the columns that hold them (`rows.COLUMNS`)."""

    id: str
    title: str
    status: Status
    priority: int
    """As filed, 0 to 9; nothing changes it."""
    rank: float
    """What orders the claims, highest first; equal ranks go by `seq`."""
    requires: tuple[str, ...]
    """Capabilities a claimer needs, sorted."""
    origin: str | None
    """What filed it (`task:<parent>`, `librarian:<kind>`, …); None when a person did."""
    creator: str
    parent: str | None
    """The task it was filed from."""
    chain: str
    """The task that this one and everything beside it was first filed from; its own id at the top."""
    twin: str | None
    """Digest by which the same filing twice is one task: of the body within a chain, of the subject within a domain."""
    open_needs: int
    """Tasks it waits on that are not completed."""
    dependents: int
    """Tasks that name it as a dependency."""
    fence: int
    """The number of the latest claim; 0 before the first. Also the number of attempts."""
    holder: str | None
    """Who holds it, or who completed it."""
    session: str | None
    lease_ms: int
    lease_ends_ms: int | None
    handed_off: int
    """The fence of the claim that left the latest handoff."""
    handoffs: tuple[str, ...]
    """Entry ids, oldest first."""
    review: str | None
    """`human` when it asked for more than its filer holds."""
    reason: str | None
    """Why it was last released, blocked or invalidated."""
    created_ms: int
    changed_ms: int
    closed_ms: int | None
    depends_on: tuple[str, ...]
    body: str | None
    """sha256 of the text; None when it has none."""
    check: tuple[str, ...] = ()
    """Commands that must succeed before it counts as done."""
    checked: str | None = None
    """`verified`, `failed` or `unchecked`, of the tree whose digest is `checked_tree`."""
    checked_tree: str | None = None
    checked_ms: int | None = None
    checked_fence: int = 0
    budget_tokens: int | None = None
    label: str | None = None
    blocker: str | None = None
    """The latest stated blocker, and in how many attempts running."""
    blocker_runs: int = 0
    blocked_on: str | None = None
    grade: str | None = None
    lessons: tuple[str, ...] = ()
    """Of a retry: the handoffs of the chain before it."""

    @property
    def domain(self) -> str:
        """The domain, which the id names."""
        return domain_of(self.id)

    def held(self, fence: int, at_ms: int, session: str | None) -> bool:
        """Whether this claim (and this session, where the caller is one) holds it now."""
        return (
            self.status is Status.CLAIMED
            and self.fence == fence
            and (self.lease_ends_ms or 0) > at_ms
            and (session is None or session == self.session)
        )

    def allows(self, capabilities: Iterable[str]) -> bool:
        """Whether somebody with these capabilities may take it."""
        return covers(capabilities, self.requires)


def covers(capabilities: Iterable[str], requires: Iterable[str]) -> bool:
    """Whether the capabilities hold every requirement; `*` holds anything."""
    held = frozenset(capabilities)
    return held >= ANYTHING or held.issuperset(requires)


def digest(text: str) -> str:
    """The digest that stands for a text."""
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def title(text: str) -> str:
    """A title, checked. Raises UsageError on an empty or long one and on control characters."""
    if not text.strip():
        raise UsageError("a task needs a title", hint="amem task create --help")
    if len(text) > MAX_TITLE:
        raise UsageError(f"the title has {len(text)} characters, at most {MAX_TITLE} are allowed: put the rest in the body")
    for position, character in enumerate(text):
        if not character.isprintable():
            name = f"U+{ord(character):04X}"
            raise UsageError(f"the title has the control character {name} at position {position + 1}: a title is one plain line")
    return text


def prose(text: str, what: str = "body") -> str:
    """A long text, checked. Raises UsageError on one too long, with NUL, or that is not Unicode."""
    if "\0" in text:
        raise UsageError(f"the {what} has a NUL character: it cannot be stored")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise UsageError(f"the {what} has half a surrogate pair at position {error.start + 1}: it is not text") from error
    if size > MAX_BODY_BYTES:
        raise UsageError(f"the {what} has {size} bytes, at most {MAX_BODY_BYTES} are allowed: write the rest as an entry and cite it")
    return text


def known(task: str) -> str:
    """A task's id, checked. Raises UsageError when it has not the form of one."""
    if not is_id("task", task):
        raise UsageError(f"{task[:60]!r} is not a task's id: expected task-<domain>-<8 letters and digits>", hint="amem task list")
    return task


def words(requires: Iterable[str]) -> tuple[str, ...]:
    """Requirements, sorted and once each. Raises UsageError on a word that cannot be one."""
    found = tuple(sorted(set(requires)))
    for word in found:
        if not _WORD.fullmatch(word):
            raise UsageError(f"requirement {word[:60]!r}: expected lower-case letters, digits and _ . : + - (as code, human)")
    if len(found) > MAX_REQUIREMENTS:
        raise UsageError(f"{len(found)} requirements: at most {MAX_REQUIREMENTS} are allowed")
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """What somebody files. Making one checks it and raises UsageError."""

    domain: str
    title: str
    body: str = ""
    priority: int = DEFAULT_PRIORITY
    requires: tuple[str, ...] = ()
    depends_on: tuple[str, ...] = ()
    check: tuple[str, ...] = ()
    budget_tokens: int | None = None
    label: Label | None = None
    origin: str | None = None
    subject: str | None = None
    """What it is about: a second filing with the same origin and subject finds the first one."""

    def __post_init__(self) -> None:
        if not is_id("domain", self.domain):
            raise UsageError(f"{self.domain[:60]!r} is not a domain: expected dom-<letters, digits, hyphens>")
        title(self.title)
        prose(self.body)
        if self.priority not in PRIORITIES:
            raise UsageError(f"priority {self.priority}: expected 0 to 9, higher first")
        object.__setattr__(self, "requires", words(self.requires))
        object.__setattr__(self, "depends_on", _dependencies(self.domain, self.depends_on))
        for command in self.check:
            if not command.strip():
                raise UsageError("a check is an empty command")
            prose(command, "check command")
        if self.budget_tokens is not None and self.budget_tokens < 1:
            raise UsageError(f"a budget of {self.budget_tokens} tokens: expected at least 1")
        if self.origin is not None and not _ORIGIN.fullmatch(self.origin):
            raise UsageError(f"origin {self.origin[:60]!r}: expected <kind>:<what>")


def _dependencies(domain: str, ids: Iterable[str]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(ids))
    for task in found:
        if domain_of(known(task)) != domain:
            raise UsageError(f"{task} is a task of another domain than {domain}: a task waits only on tasks of its own domain")
    if len(found) > MAX_DEPENDENCIES:
        raise UsageError(f"{len(found)} dependencies: at most {MAX_DEPENDENCIES} are allowed")
    return found
