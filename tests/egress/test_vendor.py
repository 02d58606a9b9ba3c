"""What would run at the provider is found in every dialect, whatever it is called; what runs in the harness is not."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amem.egress import flow, vendor
from amem.egress.flow import Call
from amem.logs.schema import PolicyDecision
from amem.model.call import Dialect
from amem.model.clock import now
from amem.model.label import Label
from amem.policy.door import Door
from amem.policy.engine import PolicyEngine, builtin, grants_data
from amem.settings.grants import DestinationGrant, DomainGrant, Grants, PrincipalGrant
from tests.egress.support import CALLS, call, session

A, R, C, G = Dialect.ANTHROPIC, Dialect.RESPONSES, Dialect.CHAT, Dialect.GEMINI
URL = "https://x.example/?q=words"


def found(dialect: Dialect, more: Any, path: str | None = None, *, model: str = "m-1") -> tuple[str, ...]:
    usual, body = CALLS[dialect]
    path = path or usual
    target = flow.target("POST", path)
    assert isinstance(target, flow.Target)
    read = flow.call(target, dialect, json.dumps({**body, "model": model, **more}).encode())
    assert isinstance(read, Call)
    return vendor.server_tools(read)


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


@pytest.mark.parametrize(
    ("dialect", "more", "expected"),
    [
        (A, {"tools": [{"type": "web_search_20250305", "name": "web_search"}]}, ("web_search",)),
        (A, {"tools": [{"type": "web_fetch_20250910"}, {"type": "code_execution_20250825"}]}, ("code_execution", "web_fetch")),
        (A, {"tools": [{"type": "computer_20250124"}, {"type": "mcp_toolset"}]}, ("computer_use", "mcp")),
        (A, {"tools": [{"type": "brand_new_thing_20270101"}]}, ("brand_new_thing",)),
        (A, {"tools": [{"type": 7}]}, ("unknown",)),
        (A, {"mcp_servers": [{"type": "url", "url": URL}]}, ("mcp",)),
        (A, {"container": {"skills": [{"skill_id": "pdf"}]}}, ("code_execution",)),
        (A, {"messages": [user({"type": "image", "source": {"type": "url", "url": URL}})]}, ("url_content",)),
        (
            A,
            {"messages": [user({"type": "tool_result", "content": [{"type": "document", "source": {"type": "url", "url": URL}}]})]},
            ("url_content",),
        ),
        (R, {"tools": [{"type": "web_search"}]}, ("web_search",)),
        (R, {"tools": [{"type": "web_search_preview_2025_03_11"}]}, ("web_search",)),
        (R, {"tools": [{"type": "file_search"}, {"type": "code_interpreter"}, {"type": "mcp"}]}, ("code_execution", "file_search", "mcp")),
        (R, {"tools": [{"type": "namespace", "tools": [{"type": "function"}, {"type": "image_generation"}]}]}, ("image_generation",)),
        (R, {"tools": [{"type": "tool_search"}]}, ("tool_search",)),
        (R, {"tools": [{"type": "shell", "environment": {"type": "container_auto"}}]}, ("shell",)),
        (R, {"input": [{"type": "additional_tools", "tools": [{"type": "web_search"}]}]}, ("web_search",)),
        (R, {"input": [user({"type": "input_image", "image_url": URL})]}, ("url_content",)),
        (R, {"input": [user({"type": "input_file", "file_url": URL})]}, ("url_content",)),
        (R, {"input": [{"type": "function_call_output", "output": [{"type": "input_image", "image_url": URL}]}]}, ("url_content",)),
        (C, {"tools": [{"type": "web_search"}]}, ("web_search",)),
        (C, {"web_search_options": {}}, ("web_search",)),
        (C, {"search_parameters": {"mode": "auto"}}, ("web_search",)),
        (C, {"enable_search": True}, ("web_search",)),
        (C, {"plugins": [{"id": "web"}, {"id": "file-parser"}]}, ("file_parser", "web_search")),
        (C, {"messages": [user({"type": "image_url", "image_url": {"url": URL}})]}, ("url_content",)),
        (C, {"messages": [user({"type": "video_url", "video_url": {"url": URL}})]}, ("url_content",)),
        (C, {"messages": [user({"type": "audio_url", "audio_url": URL})]}, ("url_content",)),
        (C, {"messages": [user({"type": "input_audio", "input_audio": {"format": "wav", "data": " " + URL}})]}, ("url_content",)),
        (C, {"messages": [user({"type": "file", "file": {"filename": "a.pdf", "file_data": URL}})]}, ("url_content",)),
        (C, {"messages": [user({"type": "video", "video": ["data:image/png;base64,AA==", "oss://bucket/words"]})]}, ("url_content",)),
        (R, {"input": [user({"type": "input_file", "file_data": URL})]}, ("url_content",)),
        (G, {"contents": [{"parts": [{"functionResponse": {"parts": [{"fileData": {"fileUri": URL}}]}}]}]}, ("url_content",)),
        (G, {"contents": [{"parts": [{"function_response": {"parts": {"file_data": {"file_uri": URL}}}}]}]}, ("url_content",)),
        (G, {"systemInstruction": {"parts": [{"fileData": {"fileUri": URL}}]}}, ("url_content",)),
        (G, {"tools": [{"googleSearch": {}}]}, ("web_search",)),
        (G, {"tools": {"google_search": {}}}, ("web_search",)),
        (G, {"tools": [{"urlContext": {}, "codeExecution": {}}, {"googleMaps": {}}]}, ("code_execution", "maps", "web_fetch")),
        (G, {"contents": [{"parts": [{"fileData": {"fileUri": URL}}]}]}, ("url_content",)),
        (G, {"request": {"tools": [{"googleSearch": {}}]}}, ("web_search",)),
    ],
)
def test_what_runs_at_the_provider_is_found(dialect: Dialect, more: Any, expected: tuple[str, ...]) -> None:
    assert found(dialect, more) == expected


@pytest.mark.parametrize(
    ("dialect", "more"),
    [
        (A, {"tools": [{"name": "Bash", "input_schema": {}}, {"type": "custom", "name": "x"}, {"type": None, "name": "y"}]}),
        (A, {"tools": [{"type": "bash_20250124"}, {"type": "text_editor_20250728"}, {"type": "memory_20250818"}]}),
        (A, {"tools": None, "container": None, "mcp_servers": []}),
        (A, {"messages": [user({"type": "image", "source": {"type": "base64", "data": "AA=="}}, {"type": "text", "text": URL})]}),
        (R, {"tools": [{"type": "function"}, {"type": "custom"}, {"type": "local_shell"}, {"type": "tool_search", "execution": "client"}]}),
        (R, {"tools": [{"type": "namespace", "name": "mcp__memory", "tools": [{"type": "function", "name": "t0"}]}]}),
        (R, {"tools": [{"type": "shell", "environment": {"type": "local"}}]}),
        (R, {"input": [user({"type": "input_image", "image_url": "data:image/png;base64,AA=="}, {"type": "input_text", "text": URL})]}),
        (C, {"tools": [{"type": "function", "function": {"name": "web_search"}}], "search_parameters": {"mode": "off"}}),
        (C, {"messages": [user({"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}})], "enable_search": False}),
        (C, {"messages": [user({"type": "input_audio", "input_audio": {"format": "mp3", "data": "//uQxAAA"}})]}),
        (
            C,
            {
                "messages": [
                    user({"type": "file", "file": {"filename": "report: a//b.pdf", "file_data": "data:application/pdf;base64,AA=="}})
                ]
            },
        ),
        (R, {"input": [user({"type": "output_text", "text": URL, "annotations": [{"type": "url_citation", "url": URL}]})]}),
        (G, {"contents": [{"parts": [{"functionResponse": {"name": "f", "response": {"fileData": "x", "url": URL}}}]}]}),
        (G, {"tools": [{"functionDeclarations": [{"name": "google_web_search"}]}, {"function_declarations": []}]}),
    ],
)
def test_what_runs_in_the_harness_is_not(dialect: Dialect, more: Any) -> None:
    assert found(dialect, more) == ()


def test_models_that_search_by_themselves_and_calls_that_only_count() -> None:
    for model in ("openai/gpt-5:online", "gpt-4o-search-preview-2025-03-11", "gpt-5-search-api", "o4-mini-deep-research"):
        assert found(C, {}, model=model) == ("web_search",), model
    assert found(C, {}, model="search-preview") == ()
    tools = {"tools": [{"type": "web_search_20250305"}]}
    assert found(A, tools, "/v1/messages/count_tokens") == ()


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=4) | st.sampled_from(["url", "data:", "type", "web_search"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["type", "tools", "content", "source", "image_url", "video_url", "file", "parts", "functionResponse", "id", "environment"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=20,
)
_MEMBERS = (
    "tools",
    "messages",
    "input",
    "contents",
    "container",
    "mcp_servers",
    "plugins",
    "search_parameters",
    "request",
    "systemInstruction",
)


@given(st.sampled_from(list(Dialect)), st.dictionaries(st.sampled_from(_MEMBERS), _json, max_size=5))
def test_no_body_makes_it_fail_and_each_name_is_a_word_the_policy_takes(dialect: Dialect, more: dict[str, Any]) -> None:
    for name in found(dialect, more):
        assert name and name.replace("_", "").isalnum() and name == name.lower() and name.isascii() and len(name) <= 64


@pytest.mark.parametrize("granted", [(), ("web_search",)])
def test_a_tool_at_the_provider_leaves_only_under_a_grant(tmp_path: Path, granted: tuple[str, ...]) -> None:
    grants = Grants(
        owner="human:o:n",
        domains={"dom-me": DomainGrant(principals={"agent:*": PrincipalGrant(read=Label.INTERNAL, server_tools=granted)})},
        destinations={"demo": DestinationGrant(ceiling=Label.INTERNAL)},
    )
    log: list[PolicyDecision] = []
    door = Door(PolicyEngine(builtin(), grants_data(grants)), log.append, now)

    async def run() -> None:
        async with session(tmp_path, decide=door.decide) as s:
            path, body = call(A, tools=[{"type": "web_search_20250305", "name": "web_search"}])
            status, answer, _ = await s.post(path, body)
            actions = [(event.action, event.allow) for event in log]
            if granted:
                assert (status, actions) == (200, [("server_tool", True), ("model_call", True)])
                return
            assert (status, actions) == (403, [("server_tool", False)])
            told = json.loads(answer)["error"]
            assert told["type"] == "permission_error" and "web_search would run at demo, outside the sandbox" in told["message"]
            assert s.provider.log == []
            assert (await s.row())["refused"] == "server_tool"

    asyncio.run(run())
