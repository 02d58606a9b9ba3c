"""A root for tests of memory: two domains, an agent with grants, a fixed clock; and what its logs say."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from amem.memory.draft import draft
from amem.memory.outcomes import Held, Refused, Written
from amem.memory.session import Memory, Session, agent_session, open_memory, owner_session
from amem.memory.write import write
from amem.model import ids
from amem.model.entry import Entry
from amem.settings import grants
from amem.settings.root import Root

OWNER = "human:acme:ada"
AGENT = "agent:claude"
NOW = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)
GRANTS = f"""
owner = "{OWNER}"
default_domain = "dom-me"
[grants.dom-me]
default = "internal"
[grants.dom-me.principals."agent:*"]
read = "internal"
write = true
[grants.dom-me.principals."agent:reader"]
read = "public"
[grants.dom-open]
default = "public"
[grants.dom-open.principals."agent:*"]
read = "restricted"
write = true
[grants.dom-hidden]
default = "restricted"
[gates]
max_supersedes_per_session = 3
"""


@contextmanager
def seeded(path: Path, text: str = GRANTS) -> Iterator[Memory]:
    """A memory on a fresh root below `path`."""
    root = Root(path / "root")
    root.path.mkdir(mode=0o700)
    root.grants.write_text(text)
    memory = open_memory(root, grants.load(root.grants), clock=lambda: NOW)
    try:
        yield memory
    finally:
        memory.close()


def agent(memory: Memory, principal: str = AGENT, domain: str = "dom-me", **more: Any) -> Session:
    """An agent's session."""
    return agent_session(memory, id=ids.draw("session"), principal=principal, domain=domain, harness="claude", **more)


def owner(memory: Memory, domain: str = "dom-me") -> Session:
    """The owner's session."""
    return owner_session(memory, OWNER, domain)


def put(memory: Memory, session: Session, title: str = "A title", **changes: Any) -> Written | Held | Refused:
    """Write an entry."""
    return write(memory, session, draft(**{"type": "fact", "title": title, "body": f"{title}, at length.", **changes}))


def written(memory: Memory, session: Session, title: str = "A title", **changes: Any) -> Entry:
    """Write an entry that is let through."""
    outcome = put(memory, session, title, **changes)
    assert isinstance(outcome, Written), outcome
    return outcome.entry


def lines(memory: Memory, log: str) -> list[dict[str, Any]]:
    """The lines of a log."""
    path = memory.root.state / f"{log}.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
