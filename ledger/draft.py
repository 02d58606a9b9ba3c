"""What somebody files, checked once: titles, bodies, requirements, dependencies. Pure."""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass

from amem.errors import UsageError
from amem.ledger.task import known
from amem.model.ids import domain_of, is_id
from amem.model.label import Label

MAX_TITLE = 200
MAX_BODY_BYTES = 256 << 10
MAX_DEPENDENCIES = 100
MAX_REQUIREMENTS = 16
PRIORITIES = range(10)
DEFAULT_PRIORITY = 3

_WORD = re.compile(r"[a-z0-9][a-z0-9_.:+-]{0,63}")
_ORIGIN = re.compile(r"[a-z]+:[A-Za-z0-9][A-Za-z0-9_.@:/-]{0,199}")


def digest(text: str) -> str:
    """The digest that stands for a text."""
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def title(text: str) -> str:
    """A title, checked. Raises UsageError on an empty or long one and on control characters."""
    if not text.strip():
        raise _wrong("a task needs a title")
    if len(text) > MAX_TITLE:
        raise _wrong(f"the title has {len(text)} characters, at most {MAX_TITLE} are allowed: put the rest in the body")
    for position, character in enumerate(text):
        if not character.isprintable():
            name = f"U+{ord(character):04X}"
            raise _wrong(f"the title has the control character {name} at position {position + 1}: a title is one plain line")
    return text


def prose(text: str, what: str = "body") -> str:
    """A long text, checked. Raises UsageError on one too long, with NUL, or that is not Unicode."""
    if "\0" in text:
        raise _wrong(f"the {what} has a NUL character: it cannot be stored")
    try:
        size = len(text.encode())
    except UnicodeEncodeError as error:
        raise _wrong(f"the {what} has half a surrogate pair at position {error.start + 1}: it is not text") from error
    if size > MAX_BODY_BYTES:
        raise _wrong(f"the {what} has {size} bytes, at most {MAX_BODY_BYTES} are allowed: write the rest as an entry and cite it")
    return text


def words(requires: Iterable[str]) -> tuple[str, ...]:
    """Requirements, sorted and once each. Raises UsageError on a word that cannot be one."""
    found = tuple(sorted(set(requires)))
    for word in found:
        if not _WORD.fullmatch(word):
            raise _wrong(f"requirement {word[:60]!r}: expected lower-case letters, digits and _ . : + - (as code, human)")
    if len(found) > MAX_REQUIREMENTS:
        raise _wrong(f"{len(found)} requirements: at most {MAX_REQUIREMENTS} are allowed")
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
            raise _wrong(f"{self.domain[:60]!r} is not a domain: expected dom-<letters, digits, hyphens>")
        title(self.title)
        prose(self.body)
        if self.priority not in PRIORITIES:
            raise _wrong(f"priority {self.priority}: expected 0 to 9, higher first")
        object.__setattr__(self, "requires", words(self.requires))
        object.__setattr__(self, "depends_on", _dependencies(self.domain, self.depends_on))
        for command in self.check:
            if not command.strip():
                raise _wrong("a check is an empty command")
            prose(command, "check command")
        if self.budget_tokens is not None and self.budget_tokens < 1:
            raise _wrong(f"a budget of {self.budget_tokens} tokens: expected at least 1")
        if self.origin is not None and not _ORIGIN.fullmatch(self.origin):
            raise _wrong(f"origin {self.origin[:60]!r}: expected <kind>:<what>")


def _dependencies(domain: str, ids: Iterable[str]) -> tuple[str, ...]:
    found = tuple(dict.fromkeys(ids))
    for task in found:
        if domain_of(known(task)) != domain:
            raise _wrong(f"{task} is a task of another domain than {domain}: a task waits only on tasks of its own domain")
    if len(found) > MAX_DEPENDENCIES:
        raise _wrong(f"{len(found)} dependencies: at most {MAX_DEPENDENCIES} are allowed")
    return found


def _wrong(what: str) -> UsageError:
    return UsageError(what, hint="amem task create --help")
