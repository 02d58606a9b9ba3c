#!/usr/bin/env python3
"""A small agent: one file, the standard library, no framework. Runs in the sandbox as harness `command`:

    amem launch --harness command --provider demo -- python3 examples/agent.py "How does a call leave the sandbox?"

It asks the memory over MCP for what is known, puts that before the model with the memory's own tools on offer, carries out
the calls the model makes, and prints the answer on stdout (progress on stderr). All it needs is in the environment:
MEMORY_MCP_URL, and ANTHROPIC_BASE_URL with ANTHROPIC_API_KEY, or OPENAI_BASE_URL with OPENAI_API_KEY. The keys are
placeholders: the egress outside the sandbox puts the real one on.
"""

import json
import os
import sys
import urllib.error
import urllib.request
from typing import Any, NamedTuple

PROMPT = "What does the memory hold about this project? Read the most useful entry and leave a handoff."
TOOLS = ("search", "get", "write", "handoff")  # of all that the memory offers, what this agent hands to its model
MOST_TURNS = 20


class Call(NamedTuple):
    """A tool call that the model asked for."""

    id: str
    tool: str
    arguments: dict[str, Any]


class Turn(NamedTuple):
    """What the model said: its text, its calls, and the message to keep in the conversation."""

    text: str
    calls: list[Call]
    message: dict[str, Any]


def post(url: str, body: Any, headers: dict[str, str]) -> tuple[Any, dict[str, str]]:
    """POST JSON and return the answer with its headers; an MCP server may answer as a one-event stream."""
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json", **headers})
    with urllib.request.urlopen(request, timeout=300) as response:
        text, kept = response.read().decode(), {name.lower(): value for name, value in response.headers.items()}
    if kept.get("content-type", "").startswith("text/event-stream"):
        events = [json.loads(line[5:]) for line in text.splitlines() if line.startswith("data:") and line[5:].strip()]
        return next(event for event in events if "result" in event or "error" in event), kept
    return (json.loads(text) if text.strip() else None), kept


class Memory:
    """The memory server, over MCP."""

    def __init__(self, url: str, token: str | None) -> None:
        self.url, self.number = url, 0
        self.headers = {"Accept": "application/json, text/event-stream"} | ({"Authorization": f"Bearer {token}"} if token else {})
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "example-agent", "version": "1"}}
        self.headers["MCP-Protocol-Version"] = self.ask("initialize", hello)["protocolVersion"]
        post(self.url, {"jsonrpc": "2.0", "method": "notifications/initialized"}, self.headers)

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        """Send one JSON-RPC request and return its result."""
        self.number += 1
        answer, headers = post(self.url, {"jsonrpc": "2.0", "id": self.number, "method": method, "params": params}, self.headers)
        if "mcp-session-id" in headers:
            self.headers["Mcp-Session-Id"] = headers["mcp-session-id"]
        if "error" in answer:
            raise RuntimeError(f"memory: {method}: {answer['error'].get('message')}")
        return answer["result"]

    def call(self, tool: str, arguments: dict[str, Any]) -> tuple[str, bool]:
        """Call a tool: its text, and whether it refused. A refusal is for the model to read."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        return "\n".join(block["text"] for block in result["content"] if block["type"] == "text"), bool(result.get("isError"))


class Anthropic:
    """A model behind the Messages API."""

    def __init__(self, base: str, key: str) -> None:
        self.url = base.rstrip("/") + "/v1/messages"
        self.headers = {"x-api-key": key, "anthropic-version": "2023-06-01"}

    def ask(self, model: str, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Turn:
        """Send the conversation and the tools on offer; return what the model says."""
        offered = [{"name": t["name"], "description": t.get("description", ""), "input_schema": t["inputSchema"]} for t in tools]
        answer, _ = post(self.url, {"model": model, "max_tokens": 4096, "messages": messages, "tools": offered}, self.headers)
        blocks = answer["content"]
        text = "".join(block["text"] for block in blocks if block["type"] == "text")
        calls = [Call(block["id"], block["name"], block["input"]) for block in blocks if block["type"] == "tool_use"]
        return Turn(text, calls, {"role": "assistant", "content": blocks})

    def results(self, answers: list[tuple[Call, str, bool]]) -> list[dict[str, Any]]:
        """The messages that bring the tools' answers back."""
        blocks = [{"type": "tool_result", "tool_use_id": call.id, "content": text, "is_error": bad} for call, text, bad in answers]
        return [{"role": "user", "content": blocks}]


class OpenAI:
    """A model behind chat completions."""

    def __init__(self, base: str, key: str) -> None:
        self.url = base.rstrip("/") + "/chat/completions"
        self.headers = {"Authorization": f"Bearer {key}"}

    def ask(self, model: str, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> Turn:
        """Send the conversation and the tools on offer; return what the model says."""
        offered = [
            {"type": "function", "function": {"name": t["name"], "description": t.get("description", ""), "parameters": t["inputSchema"]}}
            for t in tools
        ]
        answer, _ = post(self.url, {"model": model, "messages": messages, "tools": offered}, self.headers)
        message = answer["choices"][0]["message"]
        asked = message.get("tool_calls") or []
        calls = [Call(call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])) for call in asked]
        return Turn(message.get("content") or "", calls, message)

    def results(self, answers: list[tuple[Call, str, bool]]) -> list[dict[str, Any]]:
        """The messages that bring the tools' answers back."""
        return [{"role": "tool", "tool_call_id": call.id, "content": text} for call, text, _bad in answers]


def say(text: str) -> None:
    """One line of progress."""
    print(f"agent: {' '.join(text.split())[:160]}", file=sys.stderr, flush=True)


def run(prompt: str) -> str:
    """Answer a prompt and return the model's last words."""
    here = os.environ
    memory = Memory(here["MEMORY_MCP_URL"], here.get("AMEM_TOKEN"))
    model: Anthropic | OpenAI
    if "ANTHROPIC_BASE_URL" in here:
        model = Anthropic(here["ANTHROPIC_BASE_URL"], here.get("ANTHROPIC_API_KEY", "placeholder"))
    else:
        model = OpenAI(here["OPENAI_BASE_URL"], here.get("OPENAI_API_KEY", "placeholder"))
    name = here.get("MODEL", "demo-1")

    tools = [tool for tool in memory.ask("tools/list", {})["tools"] if tool["name"] in TOOLS]
    known, _ = memory.call("t0", {})
    say(f"t0: {len(known)} characters")
    hits, _ = memory.call("search", {"query": prompt})
    say(f"search: {hits}")
    opening = f"{prompt}\n\nWhat the memory says to start with:\n{known}\n\nWhat a first search found:\n{hits}"

    messages: list[dict[str, Any]] = [{"role": "user", "content": opening}]
    for _ in range(MOST_TURNS):
        turn = model.ask(name, messages, tools)
        messages.append(turn.message)
        if not turn.calls:
            return turn.text
        if turn.text:
            say(turn.text)
        answers = []
        for call in turn.calls:
            text, refused = memory.call(call.tool, call.arguments)
            say(f"{call.tool}: {'refused: ' if refused else ''}{text}")
            answers.append((call, text, refused))
        messages += model.results(answers)
    raise RuntimeError(f"no answer after {MOST_TURNS} turns")


def main() -> int:
    """Run once; the exit code is 1 when the model or the memory could not be reached or refused."""
    try:
        print(run(" ".join(sys.argv[1:]) or PROMPT))
    except urllib.error.HTTPError as exc:
        print(f"agent: {exc.url}: {exc.code}: {exc.read().decode(errors='replace')}", file=sys.stderr)
        return 1
    except (OSError, RuntimeError) as exc:
        say(str(exc))
        return 1
    except KeyError as exc:
        say(f"not in the environment, or not in an answer: {exc}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
