"""What a row of the tool table is, and the words of its schemas. Pure."""

from collections.abc import Callable, Mapping

from amem.memory.session import Memory, Session
from amem.server.replies import Reply
from amem.typed import Any, NamedTuple

Arguments = Mapping[str, Any]

LEFT_BY = "left_by"
"""The argument that a tool with `leaves` gets beside its own: who leaves the handoff. No caller can give it."""


class Tool(NamedTuple):
    """One row of the table."""

    description: str
    schema: Mapping[str, Any]
    function: Callable[[Memory, Session, Arguments], Reply]
    reads: bool
    """Whether it changes nothing in the record or the ledger."""
    leaves: bool = False
    """Whether it may leave a handoff, and so must know in whose name."""


def objects(required: tuple[str, ...], **properties: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of an object that has these properties and no others."""
    # An open schema would let a model believe an argument was heeded that was not.
    return {"type": "object", "properties": properties, "required": list(required), "additionalProperties": False}


def text(description: str, **more: Any) -> Mapping[str, Any]:
    """The schema of a string."""
    return {"type": "string", "description": description, **more}


def texts(description: str, limit: int = 100, length: int = 2000) -> Mapping[str, Any]:
    """The schema of a list of strings."""
    return {"type": "array", "items": {"type": "string", "maxLength": length}, "maxItems": limit, "description": description}


def whole(description: str, least: int, most: int, **more: Any) -> Mapping[str, Any]:
    """The schema of an integer."""
    return {"type": "integer", "minimum": least, "maximum": most, "description": description, **more}


def present(data: Mapping[str, Any]) -> dict[str, Any]:
    """The keys that have something to say."""
    return {key: value for key, value in data.items() if value is not None}


OFFSET = whole("how many to skip, for the next page", 0, 1_000_000, default=0)
