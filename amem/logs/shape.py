"""Whether a line of a log has the shape of its event, as `schema` writes it: for whoever judges logs that somebody may have written.

A key that is missing and one that is not known are no fault: events get keys, and older lines have fewer. Imported by no start.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from functools import cache
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ClassVar, Union, get_args, get_origin, get_type_hints

from amem.logs import reader, schema, writer


def events(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the events of a log in order, but for lines that are none of ours; `reader.verify` names those."""
    return (found for line in reader.lines(path) if (found := event(line)) is not None)


def event(line: bytes) -> dict[str, Any] | None:
    """What a line says, if it is an event of ours."""
    found = writer.parsed(line)
    return found if found is not None and sound(found) else None


def sound(line: Mapping[str, Any]) -> bool:
    """Whether each known key of a line holds what its event has there. Nothing is asked of an event that is not known."""
    name = line.get("event")
    return isinstance(name, str) and all(_is(line[key], kind) for key, kind in _shape(name).items() if key in line)


@cache
def _shape(name: str) -> Mapping[str, Any]:
    hints = next((get_type_hints(each) for each in schema.Event.__subclasses__() if each.event == name), {})
    return {name: kind for name, kind in hints.items() if get_origin(kind) is not ClassVar}


def _is(value: Any, kind: Any) -> bool:
    inside = get_args(kind)
    match get_origin(kind) or kind:
        case origin if origin is Union or origin is UnionType:
            return any(_is(value, one) for one in inside)
        case origin if origin is tuple:
            return isinstance(value, list) and all(_is(each, inside[0]) for each in value)
        case origin if origin is dict:
            return isinstance(value, dict) and all(_is(each, inside[1]) for each in value.values())
        case origin if origin is float:
            return type(value) in (int, float)
        case origin if origin is Any or origin is NoneType:
            return origin is Any or value is None
        case origin if isinstance(origin, type) and issubclass(origin, StrEnum):
            return value in [*origin]
        case origin:
            return type(value) is origin
