"""Principals: who acts. `human:<org>:<name>`, `agent:<harness>`, `tap:<name>`, `system:amem`."""

import re
from fnmatch import fnmatchcase

_PART = r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}"
_FORM = re.compile(rf"human:{_PART}:{_PART}|agent:{_PART}|tap:{_PART}|system:amem")

SYSTEM = "system:amem"


def is_principal(text: str) -> bool:
    """Say whether `text` names a principal."""
    return _FORM.fullmatch(text) is not None


def kind(principal: str) -> str:
    """`human`, `agent`, `tap` or `system`."""
    return principal.split(":", 1)[0]


def matches(pattern: str, principal: str) -> bool:
    """Say whether a grant's pattern (`agent:*`) covers a principal; case counts."""
    return fnmatchcase(principal, pattern)
