"""The families of errors a caller cannot settle, with the exit code of each.

An instance says what went wrong, names the thing, and has a hint that is one command. What normally can
happen (a refusal, a held write, a moved entry) is a value, never one of these.
"""

from amem import exits
from amem.typed import Any


class AmemError(Exception):
    """Something the caller cannot settle. `facts` are the keys a `--json` error carries; never a secret."""

    code = "error"
    exit_code: int = exits.ERROR

    def __init__(self, message: str, *, hint: str | None = None, **facts: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.facts = facts


class UsageError(AmemError):
    """The command line or a tool's arguments are wrong."""

    code = "usage"
    exit_code = exits.USAGE


class ConfigError(AmemError):
    """A settings file or an environment name is wrong: `file: key: why`."""

    code = "config"
    exit_code = exits.USAGE


class NotFoundError(AmemError):
    """An id is not there, is gone, or may not be read: the caller is not told which."""

    code = "not_found"
    exit_code = exits.ANSWER_IS_NO


class RefusedError(AmemError):
    """The policy, or a grant, says no. The answer to a command, not a failure of it."""

    code = "refused"
    exit_code = exits.ANSWER_IS_NO


class ConflictError(AmemError):
    """Somebody else changed the thing first."""

    code = "conflict"


class UnavailableError(AmemError):
    """Something needed is not there; the hint is the command that mends it."""

    code = "unavailable"


class UpstreamError(AmemError):
    """A model provider or gateway failed or answered what cannot be used."""

    code = "upstream"


class IntegrityError(AmemError):
    """What is on disk is not what was written."""

    code = "integrity"


class SandboxError(AmemError):
    """The sandbox could not be set up; `step` names where."""

    code = "sandbox"
    exit_code = exits.NO_SANDBOX

    def __init__(self, step: str, why: str, *, hint: str | None = "amem doctor", **facts: Any) -> None:
        super().__init__(f"sandbox: {step}: {why}", hint=hint, step=step, **facts)
        self.step = step
        self.why = why
