from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import errors

from amem.ledger.prepared import Prepared


@pytest.fixture
def connection(pg_dsn: str) -> Iterator["psycopg.Connection[Any]"]:
    with psycopg.connect(pg_dsn, autocommit=True, client_encoding="utf8") as connection:
        yield connection


TYPES = {
    "text": ["", "NULL", "ein Täsk 任务 🜁", "a'b\"c\\d", "\x01\x1f\n\t", None],
    "integer": [0, -1, 2**31 - 1, None],
    "bigint": [2**63 - 1, -(2**63), None],
    "double precision": [0.0, -1.5, 1e300, 0.1, None],
    "boolean": [True, False, None],
}


@pytest.mark.parametrize("kind", TYPES)
def test_value_comes_back_as_it_went(connection: "psycopg.Connection[Any]", kind: str) -> None:
    run = Prepared(connection, "one", f"select %(value)s::{kind}, %(value)s::{kind} is null".encode())
    for value in TYPES[kind]:
        assert run({"value": value}) == [[value, value is None]]


@pytest.mark.parametrize("words", [[], ["code"], ["", "null", "NULL"], ["a b", 'say "no"', "back\\slash", "{x,y}", "ü", "\n"]])
def test_list_of_words_keeps_each_word_whole(connection: "psycopg.Connection[Any]", words: list[str]) -> None:
    run = Prepared(connection, "one", b"select unnest(%(words)s::text[])")
    assert run({"words": words}) == [[word] for word in words]


def test_word_is_never_a_piece_of_the_statement(connection: "psycopg.Connection[Any]") -> None:
    run = Prepared(connection, "one", b"select %(word)s::text = any(%(words)s::text[])")
    assert run({"word": "irreversible", "words": ['code","irreversible']}) == [[False]]


@pytest.mark.parametrize("value", ["a\0b", ["a", "b\0c"]])
def test_text_with_a_nul_is_refused_rather_than_cut(connection: "psycopg.Connection[Any]", value: Any) -> None:
    run = Prepared(connection, "one", b"select %(value)s::text")
    with pytest.raises(psycopg.DataError):
        run({"value": value})


def test_error_is_the_servers_and_the_connection_goes_on(connection: "psycopg.Connection[Any]") -> None:
    connection.execute("create table once(id integer primary key)")
    run = Prepared(connection, "one", b"insert into once values (%(id)s) returning id")
    assert run({"id": 1}) == [[1]]
    with pytest.raises(errors.UniqueViolation):
        run({"id": 1})
    assert run({"id": 2}) == [[2]]
    with pytest.raises(errors.SyntaxError):
        Prepared(connection, "two", b"selekt")


def test_end_of_the_connection_is_an_operational_error(connection: "psycopg.Connection[Any]", pg_dsn: str) -> None:
    run = Prepared(connection, "one", b"select 1")
    with psycopg.connect(pg_dsn, autocommit=True) as other:
        other.execute("select pg_terminate_backend(%s)", (connection.info.backend_pid,))
    with pytest.raises(psycopg.OperationalError):
        run({})
    assert connection.closed
