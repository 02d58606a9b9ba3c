"""Ids: how they are drawn and what they may look like.

Letters and digits of Crockford's base32 in lower case (no i, l, o, u). An id that does not match its form never
reaches a path or a query, so none can leave its folder.
"""

import os
import re

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_C = f"[{_ALPHABET}]"
_LETTERS = (_ALPHABET * 8).encode()
"""The letter of each byte."""

_DOM = r"[a-z0-9](?:[a-z0-9-]{0,30}[a-z0-9])?"
"""A domain without its `dom-`. At most 32 characters, so that a PostgreSQL schema name holds it."""

FORMS = {
    "entry": rf"mem-{_DOM}-{_C}{{12}}",
    "task": rf"task-{_DOM}-{_C}{{8}}",
    "session": rf"ses-{_C}{{8}}",
    "held": rf"held-{_C}{{8}}",
    "source": rf"src-{_C}{{8}}",
    "decision": rf"dec-{_C}{{12}}",
    "call": rf"call-{_C}{{12}}",
    "domain": rf"dom-{_DOM}",
}
"""Texts, not patterns: a command meets two of these, and compiling all would be a tenth of its start."""
_PREFIX = {
    "entry": ("mem", 12), "task": ("task", 8), "session": ("ses", 8), "held": ("held", 8),
    "source": ("src", 8), "decision": ("dec", 12), "call": ("call", 12),
}  # fmt: skip


def draw(kind: str, domain: str | None = None) -> str:
    """Draw a new random id of a kind; entries and tasks name their domain. The caller draws again when taken."""
    prefix, length = _PREFIX[kind]
    letters = os.urandom(length).translate(_LETTERS).decode()
    middle = f"{domain.removeprefix('dom-')}-" if domain is not None else ""
    return f"{prefix}-{middle}{letters}"


def derived(kind: str, domain: str, text: str) -> str:
    """An id of a kind that is the same for the same text."""
    from hashlib import sha256  # OpenSSL, which most commands do without

    prefix, length = _PREFIX[kind]
    return f"{prefix}-{domain.removeprefix('dom-')}-" + "".join(_ALPHABET[byte & 31] for byte in sha256(text.encode()).digest()[:length])


def is_id(kind: str, text: str) -> bool:
    """Say whether `text` has the form of an id of this kind."""
    return re.fullmatch(FORMS[kind], text) is not None


def domain_of(entry_or_task: str) -> str:
    """The domain that an entry's or a task's id names: `dom-me` of `mem-me-0123456789ab`."""
    return "dom-" + entry_or_task.split("-", 1)[1].rsplit("-", 1)[0]
