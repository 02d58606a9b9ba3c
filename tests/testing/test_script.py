"""Scripts: how they are read, which step answers, and what its references become."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amem.errors import ConfigError
from amem.model.call import Dialect, Usage
from amem.testing import demo, script
from amem.testing.requests import Request, Tool
from amem.testing.script import ScriptError, Step, Wish, choose, fill, offered, parse, position


def request(tools: tuple[Tool, ...] = (), results: tuple[Any, ...] = (), text: str = "") -> Request:
    return Request(dialect=Dialect.ANTHROPIC, model="m", stream=False, tools=tools, results=results, text=text)


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({"step": []}, "unknown key 'step'"),
        ({"steps": [{"txt": "x"}]}, r"steps\[0\]: unknown key 'txt'"),
        ({"steps": [{"delay_s": 1}]}, r"steps\[0\]: needs text, tool, any or calls"),
        ({"steps": [{"calls": [{"args": {}}]}]}, "a call needs a tool"),
        ({"steps": [{"text": "", "fault": {"kind": "explode"}}]}, "unknown kind 'explode'"),
        ({"steps": [{"text": "", "usage": {"inputs": 1}}]}, r"steps\[0\].usage: unknown key 'inputs'"),
        ({"usage": {"cached": 1}}, "usage: unknown key 'cached'"),
        ({"by": "turn"}, "by: 'turn' is neither"),
        ({"errors": [{"code": 1}]}, r"errors\[0\]: unknown key 'code'"),
        ({"conversations": [{"match": "x", "steps": [{}]}]}, r"conversations\[0\].steps\[0\]: needs"),
    ],
)
def test_a_wrong_script_is_refused_by_name(data: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        parse(data)


def test_a_call_may_name_alternatives_and_a_step_several_calls() -> None:
    told = parse(
        {"steps": [{"calls": [{"tool": "a"}, {"any": [{"tool": "b"}, {"tool": "c", "args": "text"}]}], "tool": "d", "args": {"x": 1}}]}
    )
    assert told.steps[0].calls == ((Wish("a", {}),), (Wish("b", {}), Wish("c", "text")), (Wish("d", {"x": 1}),))


def test_the_demo_script_is_well_formed() -> None:
    told = parse(demo.SCRIPT)
    assert [wishes[0].tool for step in told.steps for wishes in step.calls] == [
        f"memory.{t}" for t in ("search", "get", "write", "handoff")
    ]
    assert told.steps[-1].calls == ()


# ---- which step ------------------------------------------------------------------------

STEPS = parse({"steps": [{"tool": "a"}, {"calls": [{"tool": "a"}, {"tool": "a"}]}, {"text": "end"}]}).steps


@pytest.mark.parametrize(("results", "step"), [(0, 0), (1, 1), (2, 1), (3, 2), (4, 2)])
def test_the_history_says_whose_turn_it_is(results: int, step: int) -> None:
    assert position(STEPS, results) == step


def test_past_the_last_step_the_last_repeats() -> None:
    assert position(parse({"steps": [{"tool": "a"}]}).steps, 5) == 0


def test_by_count_goes_on_whatever_the_history() -> None:
    told = parse({"by": "count", "steps": [{"text": "one"}, {"text": "two"}]})
    assert [choose(told, request(), served).answer.text for served in range(3)] == ["one", "two", "two"]


def test_a_request_without_tools_is_a_side_call_when_the_script_has_calls() -> None:
    told = parse({"steps": [{"tool": "a"}, {"text": "end"}], "side_text": "aside"})
    assert (choose(told, request(), 0).answer.text, choose(told, request(), 0).index) == ("aside", -1)
    assert choose(told, request(tools=(Tool("a"),)), 0).index == 0


def test_a_conversation_has_its_own_steps() -> None:
    told = parse({"steps": [{"text": "mine"}], "conversations": [{"match": "CHILD", "steps": [{"text": "the child's"}]}]})
    assert choose(told, request(text="… CHILD …"), 0).answer.text == "the child's"
    assert choose(told, request(text="…"), 0).answer.text == "mine"


def test_usage_grows_and_a_step_has_the_last_word() -> None:
    told = parse({"usage": {"output": 5}, "steps": [{"text": "x", "usage": {"cache_read": 0}}]})
    assert choose(told, request(), 3).usage == Usage(input=1030, output=5, cache_read=0, cache_write=50)


# ---- which tool ------------------------------------------------------------------------

OFFERED = (
    Tool("Bash"), Tool("web_search"), Tool("ToolSearch"), Tool("mcp__memory__search"), Tool("t0", "mcp__memory"), Tool("mcp_memory_get"),
    Tool("memory-list"), Tool("mcp__other__write"), Tool("handoff"),
)  # fmt: skip


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("Bash", "Bash"),
        ("t0", "mcp__memory__t0"),
        ("memory.search", "mcp__memory__search"),
        ("memory.t0", "mcp__memory__t0"),
        ("memory.get", "mcp_memory_get"),
        ("memory.list", "memory-list"),
        ("memory.handoff", "handoff"),
        ("memory.write", None),
        ("search", None),
    ],
)
def test_a_tool_is_found_however_a_harness_names_it(wanted: str, found: str | None) -> None:
    tool = offered(OFFERED, wanted)
    assert (tool.full_name if tool else None) == found


def test_a_tool_that_is_not_offered_is_an_error_that_names_those_that_are() -> None:
    with pytest.raises(ScriptError, match=r"no tool memory\.write or Edit among those offered: Bash, handoff"):
        choose(parse({"steps": [{"any": [{"tool": "memory.write"}, {"tool": "Edit"}]}]}), request(tools=(Tool("handoff"), Tool("Bash"))), 0)


# ---- references ------------------------------------------------------------------------

RESULTS = ({"hits": [{"id": "mem-1", "title": "One"}, {"id": "mem-2"}]}, "plain", {"n": 3})


@pytest.mark.parametrize(
    ("value", "filled"),
    [
        ("$results[0].hits[1].id", "mem-2"),
        ("$results[-1].n", 3),
        ("$results[0].hits", RESULTS[0]["hits"]),
        ("${results[2].n} of ${results[0].hits[0].title}", "3 of One"),
        ({"a": ["$results[1]", {"b": "${results[1]}!"}], "c": 1}, {"a": ["plain", {"b": "plain!"}], "c": 1}),
        ("costs $5, $results and $x[0]", "costs $5, $results and $x[0]"),
    ],
)
def test_references_are_filled(value: Any, filled: Any) -> None:
    assert fill(value, RESULTS) == filled


@pytest.mark.parametrize("path", ["$results[9].id", "$results[0].hits[5]", "$results[1].id", "$results[0].nothing", "x ${results[2][0]}"])
def test_a_reference_that_leads_nowhere_is_an_error(path: str) -> None:
    with pytest.raises(ScriptError, match="nothing at"):
        fill(path, RESULTS)


@given(
    st.recursive(
        st.none() | st.integers() | st.text(st.characters(exclude_characters="$")),
        lambda x: st.lists(x) | st.dictionaries(st.text(), x),
        max_leaves=8,
    )
)
def test_what_holds_no_reference_is_left_as_it_is(value: Any) -> None:
    assert fill(value, ()) == value


def test_a_text_may_repeat() -> None:
    assert choose(script.Script(steps=(Step(text="ab", repeat=3),)), request(), 0).answer.text == "ababab"


def test_scripts_are_json() -> None:
    assert parse(json.loads(json.dumps(demo.SCRIPT))) == parse(demo.SCRIPT)
