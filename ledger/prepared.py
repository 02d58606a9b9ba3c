"""The statements that every worker repeats, sent to PostgreSQL as prepared, without a cursor.

A cursor of psycopg takes more of a processor's time for a claim than the server does (psycopg 3.3, 2026-11). Waiting, a signal and errors
are psycopg's own still. Types: text, numbers, booleans and lists of text go in; text, numbers and booleans come out.
"""

import re
from collections.abc import Callable, Mapping

import psycopg
from psycopg import errors, generators, pq

from amem.typed import Any

_READ: Mapping[int, Callable[[bytes], Any]] = {16: b"t".__eq__, 20: int, 21: int, 23: int, 701: float}
"""By the number of its type; anything else is text."""
_NAME = re.compile(r"%\((\w+)\)s")
_SPECIAL = re.compile(r'(["\\])')


class Prepared:
    """One statement, its values `%(name)s`, on one connection."""

    def __init__(self, connection: "psycopg.Connection[Any]", name: str, statement: bytes) -> None:
        """Prepare it; `name` is the connection's own for it. Raises psycopg.Error."""
        self._connection = connection
        self._name = name.encode()
        text = statement.decode()
        self._values = tuple(dict.fromkeys(_NAME.findall(text)))
        places = {value: f"${number}" for number, value in enumerate(self._values, start=1)}
        self._read: tuple[Callable[[bytes], Any], ...] = ()
        connection.pgconn.send_prepare(self._name, _NAME.sub(lambda found: places[found[1]], text).encode())
        self._answer()

    def __call__(self, values: Mapping[str, Any]) -> list[list[Any]]:
        """Run it, a transaction of its own, and return the rows it answers. Raises psycopg.Error."""
        self._connection.pgconn.send_query_prepared(self._name, [_text(values[name]) for name in self._values])
        answer = self._answer()
        if not self._read:
            self._read = tuple(_READ.get(answer.ftype(column), bytes.decode) for column in range(answer.nfields))
        value, read = answer.get_value, self._read
        return [
            [None if (found := value(row, column)) is None else read[column](found) for column in range(len(read))]
            for row in range(answer.ntuples)
        ]

    def _answer(self) -> "pq.abc.PGresult":
        answer: pq.abc.PGresult = self._connection.wait(generators.execute(self._connection.pgconn))[-1]
        if answer.status not in (pq.ExecStatus.TUPLES_OK, pq.ExecStatus.COMMAND_OK):
            raise errors.error_from_result(answer)
        return answer


def _text(value: Any) -> bytes | None:
    """A value as the server reads it."""
    if value is None:
        return None
    if type(value) is bool:
        return b"t" if value else b"f"
    text = _array(value) if type(value) is list else str(value)
    if "\0" in text:
        # Elsewhere psycopg refuses it; here the text would end there.
        raise psycopg.DataError("a text with a NUL in it")
    return text.encode()


def _array(words: list[str]) -> str:
    quoted = ('"' + _SPECIAL.sub(r"\\\1", word) + '"' for word in words)
    return "{" + ",".join(quoted) + "}"
