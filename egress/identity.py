"""Who answered: whether an answer came from the model that was asked for, and from the backend that answered the last time (B16).

Nothing here stops a call, whose bytes have passed by then. An alarm is a code on the call's row: it shows in `amem usage`, in
`amem doctor`, and when the session ends.
"""

import re
from collections.abc import Mapping

from amem.egress.destinations import DESTINATIONS
from amem.typed import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from amem.egress.meter import CallRow
    from amem.settings import database

OTHER_MODEL = "other_model"
"""The answer names a model that is no release of the one that was asked for."""
MODEL_CHANGED = "model_changed"
"""Under the name that was asked for, another model answered than before."""
BACKEND_CHANGED = "backend_changed"
"""The ids of answers have another form than before: something else makes them."""
REQUIRE_BROKEN = "require_broken"
"""The answer says that an obligation of the grant was not kept (B18)."""
REQUIRE_UNTOLD = "require_untold"
"""The answer does not say whether an obligation was kept."""

SENTENCES: Mapping[str, str] = {
    OTHER_MODEL: "as another model than was asked for",
    MODEL_CHANGED: "as another model than before under the same name",
    BACKEND_CHANGED: "with ids of another form than before: another backend",
    REQUIRE_BROKEN: "outside of what grants.toml requires of it",
    REQUIRE_UNTOLD: "without a word on whether what grants.toml requires was kept",
}


def sentence(destination: str, model: str, code: str, calls: int) -> str:
    """What a person should know of calls that raised an alarm."""
    how = SENTENCES.get(code, f"not as usual: {code}")
    return f"{destination} answered {calls} {'call' if calls == 1 else 'calls'} for {model} {how}"


_RELEASE = r"(?:[-@:](?:\d{4}-\d\d-\d\d|\d\d-\d\d|\d{3,8}|v\d{1,3}|preview|exp))*"
"""What vendors add to a model's name for one of its releases (2026-11). `claude-sonnet-5-5` is none of `claude-sonnet-5`."""


class Backend(NamedTuple):
    """What a call says of who answered it."""

    id_class: str
    model: str | None


def response_id_class(response_id: str | None) -> str | None:
    """The prefix that tells which backend made an id (`msg_`, `resp_`, `chatcmpl-`, `gen-`), or its form when it has none."""
    if not response_id:
        return None
    for mark in ("_", "-"):
        head, found, tail = response_id.partition(mark)
        if found and tail and head.isalpha() and head.islower() and len(head) <= 12:
            return head + mark
    return f"opaque{len(response_id)}"


def is_release(asked: str, reported: str) -> bool:
    """Whether a reported model is the one that was asked for, or a dated release of it, or the reverse; a gateway's prefix apart."""
    one, other = sorted((_plain(asked), _plain(reported)), key=len)
    return other.startswith(one) and re.fullmatch(_RELEASE, other[len(one) :]) is not None


def _plain(model: str) -> str:
    return model.lower().rpartition("/")[2].removesuffix("-latest")


def alarm(row: "CallRow", before: Backend | None) -> str | None:
    """The alarm that a call raises, after the last one of its destination, dialect and model; None when all is as it was."""
    if row.response_id_class is None or not 200 <= row.status < 300:
        return None
    known = DESTINATIONS.get(row.destination)
    # A gateway's names are its own; a change behind one of them is what shows there.
    named = known is not None and not known.gateway
    if named and row.reported_model is not None and not is_release(row.model, row.reported_model):
        return OTHER_MODEL
    if before is None:
        return None
    if _form(before.id_class) != _form(row.response_id_class):
        return BACKEND_CHANGED
    return MODEL_CHANGED if before.model and row.reported_model and before.model != row.reported_model else None


def _form(id_class: str) -> str:
    """Ids without a prefix have no fixed length."""
    return id_class.rstrip("0123456789")


class Backends:
    """The last backend of each destination, dialect and model, as the usage store has it. Used by the meter's thread alone."""

    def __init__(self) -> None:
        self._last: dict[tuple[str, str, str], Backend | None] = {}

    def judged(self, connection: "database.Connection", row: "CallRow") -> "CallRow":
        """The row, with its alarm."""
        if row.response_id_class is None:
            return row
        key = (row.destination, row.dialect, row.model)
        if key not in self._last:
            found = connection.execute(
                """select response_id_class, reported_model from calls where destination = ? and dialect = ? and model = ?
                     and response_id_class is not null and source = 'egress' order by at desc limit 1""",
                key,
            ).fetchone()
            self._last[key] = Backend(*found) if found else None
        raised = row.alarm or alarm(row, self._last[key])
        self._last[key] = Backend(row.response_id_class, row.reported_model)
        return row if raised is None else row._replace(alarm=raised)
