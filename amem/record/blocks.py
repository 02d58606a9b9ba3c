"""Read named statements from `sql/*.sql`: `-- name --`, a line saying what it does, the statement."""

import re
from functools import cache
from pathlib import Path


@cache
def blocks(file: str) -> dict[str, str]:
    """The statements of a file by name, without their comments."""
    text = (Path(__file__).with_name("sql") / file).read_text("utf-8")
    parts = re.split(r"(?m)^-- (\w+) --$", text)[1:]
    return {name: re.sub(r"(?m)^--.*\n?", "", body).strip() for name, body in zip(parts[::2], parts[1::2], strict=True)}
