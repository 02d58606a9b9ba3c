"""Spawns as work for the board."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amem.harnesses import registry, spawns
from amem.harnesses.spawns import Spawn, Work


@pytest.mark.parametrize(
    ("harness", "tool", "given_", "work"),
    [
        ("claude", "Agent", {"description": "Look", "prompt": "Look around.", "subagent_type": "x"}, Work("Look", "Look around.")),
        ("claude", "Task", {"prompt": "Look\naround. " + "x" * 200}, Work("Look around. " + "x" * 106 + "…", "Look\naround. " + "x" * 200)),
        ("codex", "spawn_agent", {"message": "Look around.", "task_name": "look"}, Work("look", "Look around.")),
        ("codex", "collaborationspawn_agent", {"message": "Look around."}, Work("Look around.", "Look around.")),
        ("gemini", "invoke_agent", {"agent_name": "scout", "prompt": "Look around."}, Work("scout", "Look around.")),
        ("qwen", "agent", {"description": "Look", "prompt": "Look around."}, Work("Look", "Look around.")),
        ("opencode", "task", {"description": "Look", "prompt": "Look around."}, Work("Look", "Look around.")),
    ],
)
def test_a_spawns_prompt_is_the_work(harness: str, tool: str, given_: dict[str, str], work: Work) -> None:
    assert spawns.read(harness, tool, given_) == Spawn((work,))


@pytest.mark.parametrize(
    ("harness", "tool"), [("claude", "Bash"), ("codex", "Bash"), ("pi", "agent"), ("command", "Agent"), ("claude", "agent")]
)
def test_an_ordinary_tool_is_no_spawn(harness: str, tool: str) -> None:
    assert spawns.read(harness, tool, {"prompt": "x"}) is None


def test_codexs_encrypted_message_is_known_for_what_it_is() -> None:
    assert spawns.read("codex", "collaborationspawn_agent", {"message": "gAAAAAB" + "aZ09_-" * 20}) == Spawn((), sealed=True)


def test_what_directs_agents_that_were_never_spawned_is_refused_without_work() -> None:
    assert [spawns.read("codex", f"collaboration{name}", {}) for name in ("wait_agent", "send_message", "list_agents")] == [Spawn(())] * 3


def test_a_workflow_is_one_piece_of_work_for_each_agent_with_a_literal_prompt() -> None:
    script = """
export const meta = {name: "x", label: "not this"};
// agent("in a comment")
const log = 'agent("in a string")';
const [a, b] = await Promise.all([
  agent("Read the \\"spec\\".", {label: "spec", schema: {a: [1, 2]}}),
  agent(`Read
the code \\u00e9.`, { 'label' : 'code' }),
]);
my.agent("not this"); subagent("nor this");
return agent('Merge, then (check).');
"""
    assert spawns.read("claude", "Workflow", {"script": script}) == Spawn(
        (
            Work("spec", 'Read the "spec".'),
            Work("code", "Read\nthe code é."),
            Work("Merge, then (check).", "Merge, then (check)."),
        )
    )


def test_groks_workflow_keeps_its_script_in_a_source() -> None:
    found = spawns.read("grok", "workflow", {"source": {"script": 'let a = agent("Look around.");'}})
    assert found == Spawn((Work("Look around.", "Look around."),))


@pytest.mark.parametrize(
    "script",
    [
        "for (const f of files) await agent(`Read ${f}.`)",
        'agent("one"); agent(prompt)',
        'agent("a" + b)',
        "no agents here",
        'agent("broken off',
        "agent(",
    ],
)
def test_a_script_that_cannot_be_read_is_one_piece_of_work_that_holds_it(script: str) -> None:
    assert spawns.read("claude", "Workflow", {"script": script}) == Spawn((Work(script, script),))


def bodies(script: str) -> list[str]:
    found = spawns.read("claude", "Workflow", {"script": script})
    assert found is not None
    return [work.body for work in found.work]


CALLS = [
    ('agent /* not ( here */ ("a")', ["a"]),
    ("agent\n  (\n // why\n 'a'\n)", ["a"]),
    ('agent(/* first */ "a" /* last */, {})', ["a"]),
    ('const s = `before ${await agent("a")} after ${`deep ${agent("b")}`}`', ["a", "b"]),
    ("const s = `agent(\"no\") \\${agent('no')} $ {agent('no')}`; agent('a')", ["a"]),
    ('agent("a", {then: agent("b", {label: "c"})}); agent("d")', ["a", "b", "d"]),
    ('/agent("no")/.test(x); agent("a")', ["a"]),
    ("const quote = /[\"'`/]/g; agent(\"a\")", ["a"]),
    ("x = a / b; agent('a'); y = c / d", ["a"]),
    ('return /\\/"/.exec(x) ? agent("a") : agent("b")', ["a", "b"]),
    ("[...agent('a'), ...agent('b')]", ["a", "b"]),
    ("other . agent('no'); other?.agent('no'); this.#agent('no'); agent('a')", ["a"]),
    ("const o = {agent: 'x', \"label\": 1, b: {agent : 2}}; agent('a')", ["a"]),
    ("subagent('no'); agents('no'); $agent('no'); agent_('no'); agent('a')", ["a"]),
    ("async function go() { return (() => agent('a'))() }\nclass C { m() { return agent('b') } }", ["a", "b"]),
    ("agent('a\\\nb\\x41\\u{1f600}\\'')", ["abA\N{GRINNING FACE}'"]),
    ("agent(`a\n'b' \"c\" \\` \\${x} $1`)", ["a\n'b' \"c\" ` ${x} $1"]),
    ('agent("a // b /* c"); // agent("no")\n/* agent("no") */ agent("d")', ["a // b /* c", "d"]),
    ("agent('a')\r\n//agent('no')\r\nagent('b')", ["a", "b"]),
    ("if (x) { y } agent('a')", ["a"]),
]  # fmt: skip


@pytest.mark.parametrize(("script", "expected"), CALLS)
def test_a_call_is_told_from_what_only_looks_like_one(script: str, expected: list[str]) -> None:
    assert bodies(script) == expected


UNCLEAR = [
    "const a = agent; a('x'); agent('y')",
    "agent('y'); [1, 2].map(agent)",
    "agent('y'); (agent)('x')",
    "agent('y'); agent?.('x')",
    "agent('y'); agent.call(null, 'x')",
    "agent('y'); agent`x`",
    "agent('y'); globalThis['ag' + 'ent']('x')",
    "agent('y'); scope['agent']('x')",
    "agent('y'); eval('age' + 'nt(1)')",
    "agent('y'); \\u0061gent('x')",
    "agent('y'); agent(...parts)",
    "agent('y'); agent('x' + 'z')",
    "agent('y'); agent('x'.trim())",
    "agent('y'); agent(String.raw`x`)",
    "agent('y'); agent(`x ${y}`)",
    "agent('y'); agent<string>('x')",
    "function agent(p) {} agent('y')",
    "agent('y'); const {agent} = tools",
    "agent('y'); const s = 'it is open\nagent(\"x\")'",
    "agent('y'); const s = `open ${agent('x')}",
    "agent('y'); /* open agent('x')",
    "agent('y'); if (x) /\"/.test(z) && agent('x')",
    "agent('y'); (b) / agent('x') / c",
    "agent('y'); scope['ag' + 'ent']('x')",
    "agent('y'); [agent_, other][0]('x')",
    "const {agent: a} = tools; a('x'); agent('y')",
    "const {agent: $} = tools; $('x'); agent('y')",
    "agent('y'); Reflect.get(tools, name)('x')",
    "agent('y'); const o = {agent}",
    "agent('y'); x = condition ? agent : other",
    "agent('y'); import('./agents.js')",
    "agent('y'); " + " " * spawns.MAX_SCRIPT_CHARACTERS,
]  # fmt: skip


@pytest.mark.parametrize("script", UNCLEAR)
def test_where_any_work_could_be_missed_the_script_is_one_piece(script: str) -> None:
    assert bodies(script) == [script]


def test_a_label_is_the_options_own() -> None:
    script = """
agent("a", {meta: {label: "no"}, label: "yes"}); agent("b", {other: 1});
agent("c", {x: {label: "no"}}); agent("d", {label: name})"""
    found = spawns.read("claude", "Workflow", {"script": script})
    assert found is not None and [work.title for work in found.work] == ["yes", "b", "c", "d"]


@pytest.mark.parametrize("given_", [None, "x", [], {}, {"prompt": 7}, {"prompt": "  "}, {"script": None}])
@pytest.mark.parametrize("tool", ["Agent", "Workflow"])
def test_a_spawn_without_a_prompt_is_still_a_spawn(tool: str, given_: Any) -> None:
    assert spawns.read("claude", tool, given_) == Spawn(())


def test_only_harnesses_that_there_are_have_spawns() -> None:
    assert set(spawns.TOOLS) <= set(registry.names())


PARTS = ["agent(", ")", "'", '"', "`", "\\", "${", "}", "{", "label:", ",", "//", "/*", "*/", "\n", "x", "\\u{110000}", "\\ud800", "é"]
SCRIPT = st.lists(st.sampled_from(PARTS), max_size=30).map("".join)


@given(SCRIPT)
def test_no_script_makes_the_reader_fail(script: str) -> None:
    found = spawns.read("claude", "Workflow", {"script": script})
    assert found is not None
    for work in found.work:
        assert work.title.encode() and work.body.encode() and "\n" not in work.title


def test_a_long_script_is_read_in_one_pass() -> None:
    script = "agent('x');" * 20_000 + "(" * 20_000 + "'" * 20_000
    assert len(spawns.read("claude", "Workflow", {"script": script}).work) == 20_000  # type: ignore[union-attr]
