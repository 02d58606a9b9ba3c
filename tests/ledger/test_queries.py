"""The statements: each has a line that says what it does, and no word of ours is left in what a database gets."""

import re

import pytest

from amem.ledger import queries


@pytest.mark.parametrize("name", ["common.sql", "sqlite.sql", "postgres.sql"])
def test_each_block_says_what_it_does(name: str) -> None:
    parts = re.split(r"^-- \w+ --\n", queries.text(name), flags=re.M)[1:]
    assert parts
    assert all(part.startswith("-- ") for part in parts)


def test_no_word_of_ours_is_left() -> None:
    for name, body in [*queries.sqlite().items(), *queries.postgres("s", "now()").items()]:
        assert "@" not in body.replace("<@", ""), name
    assert ":" not in re.sub(r"::\w+", "", "".join(queries.postgres("s", "now()").values()))


def test_casts_are_no_values() -> None:
    assert queries.pg("select :a::text, b::int8, :label10", "s", "now()") == "select %(a)s::text, b::int8, %(label10)s"


def test_lists_and_tables_in_both_words() -> None:
    body = "select 1 from @task t where t.id @any(ids) and @mine @lock"
    assert queries.lite(body) == "select 1 from task t where t.id in (select value from json_each(:ids)) and t.domain = :domain "
    assert queries.pg(body, "x", "now()") == 'select 1 from "x".task t where t.id = any(%(ids)s) and true for update of t'
