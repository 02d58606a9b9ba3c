"""How a task lies in a row: the same columns in both databases, what is seldom asked for in one column of JSON.

Pure. Words are kept as one string with spaces, so that a statement can append one or compare all of them at once.
"""

import json
from collections.abc import Iterable, Sequence

from amem.ledger.task import OPEN, Status, Task
from amem.typed import Any

COLUMNS = (*Task._fields[: Task._fields.index("depends_on")], "rest")
"""The columns of a task, in the order of `Task`'s fields; `rest` holds the fields after them."""
_NEVER = object()
_REST = {name: Task._field_defaults.get(name, _NEVER) for name in Task._fields[len(COLUMNS) - 1 :]}
_LISTS = tuple(at for at, name in enumerate(Task._fields) if name in ("depends_on", "check", "lessons"))
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_decode = json.JSONDecoder().raw_decode
_STATUS = {status.value: status for status in Status}
_WORDS = ("requires", "handoffs")
_STATUS_AT, _REQUIRES_AT, _HANDOFFS_AT = (COLUMNS.index(name) for name in ("status", "requires", "handoffs"))


def task(row: Sequence[Any]) -> Task:
    """The task of a row whose first columns are `COLUMNS`."""
    values = list(row[: len(COLUMNS)])
    rest, _ = _decode(values.pop())
    values[_STATUS_AT] = _STATUS[values[_STATUS_AT]]
    values[_REQUIRES_AT] = tuple(values[_REQUIRES_AT].split())
    values[_HANDOFFS_AT] = tuple(values[_HANDOFFS_AT].split())
    values.extend(map(rest.get, _REST, _REST.values()))
    for at in _LISTS:
        values[at] = tuple(values[at])
    return Task._make(values)


def listed(found: Iterable[Sequence[Any]]) -> tuple[Task, ...]:
    """The tasks of rows."""
    return tuple(task(one) for one in found)


def columns(one: Task) -> dict[str, Any]:
    """The columns of a task by name, and `open`, which follows from its status."""
    found = {name: getattr(one, name) for name in COLUMNS[:-1]}
    for name in _WORDS:
        found[name] = " ".join(found[name])
    found["status"] = one.status.value
    found["open"] = int(one.status in OPEN)
    found["rest"] = _rest(one)
    return found


def changes(before: Task, after: Task) -> dict[str, Any]:
    """The columns that differ, by name."""
    old, new = columns(before), columns(after)
    return {name: value for name, value in new.items() if old[name] != value}


def _rest(one: Task) -> str:
    # The two fields without a default are always written.
    keys = {name: value for name, default in _REST.items() if (value := getattr(one, name)) != default}
    return _encode(keys)
