"""Real harness programs through the egress: tokens to the token, bytes as they were sent, a refusal they stop at.

What left is compared with what came in, both captured here; the sums are compared with the provider's own.
"""

import asyncio
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from amem.egress import flow, reading, server
from amem.egress.meter import Meter
from amem.model.call import Dialect, Usage
from amem.model.label import Label
from amem.settings.credentials import Secret
from amem.settings.root import Root
from amem.testing.provider import Running, running
from tests.egress.support import KEY, SESSION, Door, routes_to
from tests.testing import test_real_clients as clients
from tests.testing.memory_stub import Stub, memory_stub

pytestmark = pytest.mark.real_harness

Client = Callable[[Path, Any, Stub, str], subprocess.CompletedProcess[str]]
NEGOTIATED = {**clients.SCRIPT, "encoding": "negotiate"}
REAL: list[tuple[str, Client, str, Dialect, dict[str, Any]]] = [
    ("claude", clients.claude, "claude-sonnet-5-5", Dialect.ANTHROPIC, NEGOTIATED),
    ("codex", clients.codex, "gpt-5.1-codex", Dialect.RESPONSES, NEGOTIATED),
    ("codex, its own catalogue", clients.codex, "gpt-6.2-sol", Dialect.RESPONSES, clients.CODE_MODE),
    ("gemini", clients.gemini, "gemini-2.5-pro", Dialect.GEMINI, clients.SCRIPT),
    ("qwen", clients.qwen, "qwen3-coder", Dialect.CHAT, clients.SCRIPT),
]
each_client = pytest.mark.parametrize(("client", "model", "dialect", "script"), [row[1:] for row in REAL], ids=[row[0] for row in REAL])


@dataclass
class Served:
    """An egress in a thread; a client finds its base in `url`."""

    url: str
    root: Root
    door: Door
    label: list[Label]
    came: list[bytes] = field(default_factory=list)


@contextmanager
def served(folder: Path, provider: Running, monkeypatch: pytest.MonkeyPatch, *, ceiling: Label = Label.INTERNAL) -> Iterator[Served]:
    """The egress of one session in front of `provider`, while the block lasts."""
    root = Root(folder)
    root.state.mkdir(parents=True)
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    found = Served(f"http://127.0.0.1:{listener.getsockname()[1]}", root, Door(), [Label.PUBLIC])
    real_call = flow.call

    def call(where: Any, dialect: Dialect, data: bytes) -> Any:
        found.came.append(data)
        return real_call(where, dialect, data)

    monkeypatch.setattr(flow, "call", call)
    writer = Meter(root)
    access = server.Access(
        session=SESSION, principal="agent:command", domain="dom-me", auth="key", credential=Secret(KEY),
        routes=routes_to(provider.url, ceiling=ceiling), label=lambda: found.label[0], decide=found.door.decide,
    )  # fmt: skip
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    serving = asyncio.run_coroutine_threadsafe(server.serve(server.application(access, writer), listener), loop).result()
    try:
        yield found
    finally:
        asyncio.run_coroutine_threadsafe(serving.cleanup(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
        writer.close()


@each_client
def test_a_real_harness_works_through_the_egress_and_its_tokens_are_exact(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: Client, model: str, dialect: Dialect, script: dict[str, Any]
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with running(script) as provider, memory_stub() as memory:
        with served(tmp_path / "root", provider, monkeypatch) as egress:
            ran = client(home, egress, memory, model)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert "The last word: doc.md: Egress." in ran.stdout
        sums = provider.totals()
        assert set(sums) == {(dialect.value, model)}
        [row] = reading.report(egress.root)
        told: Usage = sums[(dialect.value, model)]
        assert (row["calls"], row["model"], "status" in row, "unmetered" in row) == (len(script["steps"]), model, False, False)
        assert (row["input"], row["output"], row["cache_read"], row["cache_write"], row.get("reasoning")) == (
            told.input, told.output, told.cache_read, told.cache_write, told.reasoning,
        )  # fmt: skip
        left = [seen for seen in provider.log if seen.method == "POST"]
        assert [seen.body for seen in left] == [data for data in egress.came if data]
        assert all(KEY in str(seen.headers) and "placeholder" not in str(seen.headers) for seen in left)
        assert len(egress.door.log) == len(provider.log)


@each_client
def test_a_real_harness_over_the_ceiling_sends_nothing_says_why_and_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, client: Client, model: str, dialect: Dialect, script: dict[str, Any]
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with running(script) as provider, memory_stub() as memory:
        with served(tmp_path / "root", provider, monkeypatch, ceiling=Label.PUBLIC) as egress:
            egress.label[0] = Label.INTERNAL
            ran = client(home, egress, memory, model)
        assert ran.returncode != 0
        assert provider.log == []
        assert "label internal is above the ceiling public of demo" in ran.stdout + ran.stderr
        [row] = reading.report(egress.root)
        # One call, whatever the harness does about other errors: none of them takes a permission error for one to try again.
        assert (row["calls"], row["status"]) == (1, {"403": 1})
        assert [allowed for _, allowed in egress.door.log] == [False]
