"""The short members of a JSON object that is too heavy to be read whole (`weight`), which is where an answer says what was used.

SQLite reads the text and makes no object of what is left out. Nothing is written: the database is in memory.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from amem.settings import database

_SHORT_CHARS = 1 << 16
_WRAPS = ("response", "message")
"""Members that may hold the answer itself, in an event or an envelope."""
_MEMBERS = """
    select key, iif(type in ('object', 'array'), value, json_quote(value)), coalesce(length(value), 0) < :short
    from json_each(:text)
    where coalesce(length(value), 0) < :short or type = 'object' and key in (select value from json_each(:wraps))
"""


def short_members(text: str, *, within: bool = True) -> Mapping[str, Any]:
    """The short members of an object, and those of a member that wraps the answer; read by SQLite, which makes no object of the others.

    Raises ValueError for what is no object.
    """
    if text.lstrip()[:1] != "{":
        raise ValueError("not an object")
    connection = database.connect(Path(":memory:"), durable=False)
    try:
        rows = connection.execute(_MEMBERS, {"text": text, "short": _SHORT_CHARS, "wraps": json.dumps(_WRAPS if within else [])})
        return {key: json.loads(value) if short else short_members(value, within=False) for key, value, short in rows}
    except database.Error as error:
        raise ValueError("not JSON") from error
    finally:
        connection.close()
