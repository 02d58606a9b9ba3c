"""Check a tool's arguments against its JSON schema, in words a model can act on.

Knows the keywords that the tool table uses and no others (a test keeps the table to them). An optional argument that is
null counts as absent: some harnesses send every property. Pure.
"""

from collections.abc import Mapping

from amem.settings.root import near
from amem.typed import Any

Schema = Mapping[str, Any]

KEYWORDS = frozenset(
    [
        "type",
        "description",
        "properties",
        "required",
        "additionalProperties",
        "enum",
        "items",
        "default",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "maxItems",
    ]
)
_WORDS = {"string": "a string", "integer": "a whole number", "boolean": "true or false", "array": "an array", "object": "an object"}


class Invalid(ValueError):
    """The arguments do not fit; the message names the argument and what is expected."""


def arguments(schema: Schema, given: object) -> dict[str, Any]:
    """The arguments with defaults filled in and nulls left out. Raises Invalid."""
    if given is None:
        given = {}
    if not isinstance(given, dict):
        raise Invalid("arguments: expected an object")
    known = schema["properties"]
    for name in given:
        if name not in known:
            raise Invalid(f"{str(name)[:80]!r} is not an argument of this tool{near(str(name)[:80], list(known))}")
    found = {name: _value(name, known[name], value) for name, value in given.items() if value is not None}
    for name in schema.get("required", ()):
        if name not in found:
            raise Invalid(f"{name}: is required")
    return {**{name: each["default"] for name, each in known.items() if "default" in each}, **found}


def _value(name: str, schema: Schema, value: Any) -> Any:
    kind = schema["type"]
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        value = int(value)
    if not _is(kind, value):
        raise Invalid(f"{name}: expected {_WORDS[kind]}, found {type(value).__name__}")
    if kind == "string" and not value.isascii() and not _is_text(value):
        raise Invalid(f"{name}: holds half of a surrogate pair, which is no text")
    if "enum" in schema and value not in schema["enum"]:
        raise Invalid(f"{name}: expected one of {', '.join(schema['enum'])}, found {value[:80]!r}")
    if kind == "integer" and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        raise Invalid(f"{name}: expected {schema.get('minimum', '…')} to {schema.get('maximum', '…')}, found {value}")
    if kind == "string" and not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)):
        raise Invalid(f"{name}: {len(value)} characters; {schema.get('minLength', 0)} to {schema.get('maxLength', '…')} are taken")
    if kind == "object" and "properties" in schema:
        try:
            return arguments(schema, value)
        except Invalid as error:
            raise Invalid(f"{name}: {error}") from None
    if kind == "array":
        if len(value) > schema.get("maxItems", len(value)):
            raise Invalid(f"{name}: {len(value)} given; {schema['maxItems']} is the most")
        return [_value(f"{name}[{place}]", schema["items"], item) for place, item in enumerate(value)]
    return value


def _is_text(value: str) -> bool:
    """JSON can escape half of a surrogate pair; no file and no database can hold it."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is(kind: str, value: object) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case "boolean":
            return isinstance(value, bool)
        case "array":
            return isinstance(value, list)
        case _:
            return isinstance(value, dict)
