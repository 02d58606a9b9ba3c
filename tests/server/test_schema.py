from typing import Any

import pytest

from amem.server import tools
from amem.server.schema import KEYWORDS, Invalid, arguments

SEARCH = tools.TOOLS["search"].schema
WRITE = tools.TOOLS["write"].schema


def test_defaults_are_filled_in_and_nulls_left_out() -> None:
    assert arguments(SEARCH, {"query": "x", "type": None}) == {"query": "x", "limit": 10, "offset": 0}
    assert arguments(SEARCH, {"query": "x", "limit": 5.0})["limit"] == 5
    assert arguments(tools.TOOLS["t0"].schema, None) == {}


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({}, "query: is required"),
        ({"query": None}, "query: is required"),
        ({"query": 3}, "query: expected a string"),
        ({"query": "x", "limit": True}, "limit: expected a whole number"),
        ({"query": "x", "limit": "10"}, "limit: expected a whole number"),
        ({"query": "x", "limit": 51}, "limit: expected 1 to 50"),
        ({"query": "x", "limit": float("inf")}, "limit: expected a whole number"),
        ({"query": "x", "type": "tale"}, "type: expected one of fact"),
        ({"query": "x", "querry": "y"}, "did you mean query?"),
        ({"query": ""}, "query: 0 characters"),
        ({"query": "x" * 20_001}, "query: 20001 characters"),
        ([], "expected an object"),
    ],
)
def test_wrong_arguments_are_named(given: Any, told: str) -> None:
    with pytest.raises(Invalid, match=told.replace("?", r"\?")):
        arguments(SEARCH, given)


def test_items_of_an_array_are_checked() -> None:
    with pytest.raises(Invalid, match=r"sources\[1\]: expected a string"):
        arguments(WRITE, {"type": "fact", "title": "t", "body": "b", "sources": ["a", 1]})
    with pytest.raises(Invalid, match="sources: 101 given"):
        arguments(WRITE, {"type": "fact", "title": "t", "body": "b", "sources": ["a"] * 101})


def test_table_uses_only_keywords_that_are_checked() -> None:
    def keywords(schema: Any) -> set[str]:
        found = set(schema)
        for each in schema.get("properties", {}).values():
            found |= keywords(each)
        return found | (keywords(schema["items"]) if "items" in schema else set())

    for tool in tools.TOOLS.values():
        assert keywords(tool.schema) <= KEYWORDS
        assert tool.schema["additionalProperties"] is False
