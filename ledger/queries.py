"""The statements of `sql/`, by name, in the words of one database.

A file holds blocks: `-- name --`, a line that says what it does, the statement. What both databases share is written once, with these
words, which are replaced when a file is loaded and never take a value from outside:
`@task @event @need @text @requirement @promotion` the tables; `@columns` the columns of a task `t` (`@bare` without the `t`, in SQLite);
`:name` a value; `@any(name)` in a list of values; `@mine` of this domain (a table of its own in PostgreSQL);
`@lock` locks the rows read; `@skip` the same, passing over locked ones;
`@late` whether the lease of a task `t` has ended at `:now`;
`@now` the ledger's clock in milliseconds (PostgreSQL only).
"""

import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from amem.ledger.rows import COLUMNS

_LATE = "t.status = 'claimed' and t.lease_ends_ms <= :now"
TABLES = ("task", "event", "need", "text", "requirement", "promotion")
_BLOCK = re.compile(r"^-- (\w+) --\n", re.M)
_COLUMNS = ", ".join(f"t.{name}" for name in COLUMNS)


def text(name: str) -> str:
    """A file of `sql/`."""
    return (Path(__file__).parent / "sql" / name).read_text(encoding="utf-8")


@cache
def blocks(name: str) -> Mapping[str, str]:
    """The blocks of a file, by name. Comments stay out."""
    parts = _BLOCK.split(text(name))[1:]
    return {
        block: "\n".join(line for line in body.splitlines() if not line.startswith("--")).strip()
        for block, body in zip(parts[::2], parts[1::2], strict=True)
    }


@cache
def sqlite() -> Mapping[str, str]:
    """Every statement for SQLite, whose values are `:name` and lists JSON."""
    return {name: lite(body) for name, body in {**blocks("common.sql"), **blocks("sqlite.sql")}.items()}


def lite(body: str) -> str:
    """A statement in SQLite's words."""
    body = re.sub(r"@any\((\w+)\)", r"in (select value from json_each(:\1))", body)
    words = {"columns": _COLUMNS, "bare": ", ".join(COLUMNS), "mine": "t.domain = :domain", "late": _LATE, "lock": "", "skip": ""}
    words |= {name: name for name in TABLES}
    return re.sub(r"@(\w+)", lambda found: words[found[1]], body)


def postgres(schema: str, now: str) -> dict[str, str]:
    """Every statement for one schema of PostgreSQL, whose values are `%(name)s`; `now` is the clock as an expression."""
    return {name: pg(body, schema, now) for name, body in {**blocks("common.sql"), **blocks("postgres.sql")}.items()}


def pg(body: str, schema: str, now: str) -> str:
    """A statement in PostgreSQL's words."""
    body = re.sub(r"@any\((\w+)\)", r"= any(:\1)", body)
    words = {"columns": _COLUMNS, "mine": "true", "late": _LATE, "lock": "for update of t", "skip": "for update of t skip locked"}
    words |= {"now": now} | {name: f'"{schema}".{name}' for name in TABLES}
    body = re.sub(r"@(\w+)", lambda found: words[found[1]], body)
    return re.sub(r"(?<![:\w]):([a-z_][a-z0-9_]*)", r"%(\1)s", body)
