"""A running session obeys grants.toml as it stands: the next call, the spend limit, the read filter, its access at all."""

import asyncio
import contextlib
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from amem.egress.reserve import Reservations
from amem.launch.inforce import InForce
from amem.memory.read import reader
from amem.memory.session import Memory, Session, agent_session, open_memory
from amem.model.call import Dialect
from amem.model.label import Label
from amem.record.rows import Filter
from amem.settings import grants
from amem.settings.root import Root
from tests.attacks.egress.test_lying_upstream import CHUNKED, START, STOP, chunk
from tests.egress.support import SESSION, call, session
from tests.egress.support import Session as Served

TEXT = """owner = "human:o:n"
[grants.dom-me.principals."agent:*"]
read = "internal"
write = true
[destinations.demo]
ceiling = "internal"
"""
CALL = call(Dialect.ANTHROPIC)


def sitting(tmp_path: Path) -> tuple[Root, Memory, Session, InForce]:
    root = Root(tmp_path)
    root.grants.write_text(TEXT)
    memory = open_memory(root, grants.load(root.grants))
    found = agent_session(memory, id=SESSION, principal="agent:claude", domain="dom-me")
    return root, memory, found, InForce(memory, found, "demo")


def test_each_change_holds_for_the_next_call(tmp_path: Path) -> None:
    async def run() -> None:
        root, memory, _, force = sitting(tmp_path)
        access = {
            "decide": memory.door.decide, "stopped": force.revoked, "generation": force.generation, "spend": force,
            "reservations": Reservations(root, ZoneInfo("UTC")), "principal": "agent:claude",
        }  # fmt: skip

        async def refused(s: Served, text: str | None) -> str | None:
            if text is None:
                root.grants.unlink()
            else:
                root.grants.write_text(text)
            left = len(s.provider.log)
            status, answer, _ = await s.post(*CALL)
            assert status == (200 if len(s.provider.log) > left else 403)
            return None if status == 200 else answer.decode()

        async with session(tmp_path, **access) as s:
            assert await refused(s, TEXT) is None
            assert "is not a destination" in (await refused(s, TEXT.replace(".demo]", ".openai]")) or "")
            assert await refused(s, TEXT) is None
            assert "tokens left at demo" in (await refused(s, TEXT + "[spend.demo]\nsession_tokens = 10\n") or "")
            assert "no access to dom-me any more" in (await refused(s, TEXT.replace("agent:*", "agent:x")) or "")
            assert "cannot be read since it was changed" in (await refused(s, "owner = ") or "")
            assert "cannot be read since it was changed" in (await refused(s, None) or "")
            assert await refused(s, TEXT) is None
        memory.close()

    asyncio.run(run())


CHANGES = {
    "the ceiling is lowered": (TEXT.replace('ceiling = "internal"', 'ceiling = "public"'), "above the ceiling public of demo"),
    "the destination goes": (TEXT.replace(".demo]", ".openai]"), "is not a destination"),
    "the session's grant goes": (TEXT.replace("agent:*", "agent:x"), "no access to dom-me any more"),
    "the file breaks": ("owner = ", "cannot be read since it was changed"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_in_the_middle_of_a_stream_holds_from_the_next_call_and_the_stream_is_recorded_whole(tmp_path: Path, change: str) -> None:
    text, why = CHANGES[change]

    async def run() -> None:
        root, memory, _, force = sitting(tmp_path)
        asked, go_on = [0], asyncio.Event()

        async def provide(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while head := await reader.readuntil(b"\r\n\r\n"):
                    await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]))
                    asked[0] += 1
                    writer.write(CHUNKED + chunk(START))
                    await go_on.wait()
                    writer.write(chunk(STOP) + b"0\r\n\r\n")
            writer.close()

        provider = await asyncio.start_server(provide, "127.0.0.1", 0)
        base = f"http://127.0.0.1:{provider.sockets[0].getsockname()[1]}"
        access = {"decide": memory.door.decide, "stopped": force.revoked, "generation": force.generation, "principal": "agent:claude"}
        async with session(tmp_path, base_url=base, **access) as s:
            s.label[0] = Label.INTERNAL
            path, body = call(Dialect.ANTHROPIC, stream=True)
            async with s.client.post(s.url + path, data=body) as answer:
                assert await answer.content.readany() == START
                root.grants.write_text(text)
                status, told, _ = await s.post(*CALL)
                assert (status, why in told.decode()) == (403, True), told
                go_on.set()
                assert await answer.content.read() == STOP
            assert (await s.post(*CALL))[0] == 403
            assert asked == [1]
            recorded = sorted((row["status"], row["input"] or 0, row["partial"]) for row in s.rows())
            assert recorded == [(200, 7, 0), (403, 0, 0), (403, 0, 0)]
        provider.close()
        memory.close()

    asyncio.run(run())


def test_a_read_grant_that_was_lowered_bounds_the_next_read(tmp_path: Path) -> None:
    root, memory, found, _ = sitting(tmp_path)
    try:
        assert getattr(reader(memory, found), "max_label", None) is Label.INTERNAL
        root.grants.write_text(TEXT.replace('read = "internal"', 'read = "public"'))
        assert getattr(reader(memory, found), "max_label", None) is Label.PUBLIC
        root.grants.write_text(TEXT.replace("agent:*", "agent:x"))
        assert not isinstance(reader(memory, found), Filter)
    finally:
        memory.close()


def test_a_tunnels_generation_is_another_one_after_a_change_and_while_the_grants_are_broken(tmp_path: Path) -> None:
    root, memory, _, force = sitting(tmp_path)
    try:
        opened = force.generation()
        assert force.generation() >= opened >= 0
        root.grants.write_text("owner = ")
        assert force.generation() == -1
        root.grants.write_text(TEXT)
        assert force.generation() > opened
    finally:
        memory.close()
