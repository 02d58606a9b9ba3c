"""The launcher as a client of the memory it serves: over a socket pair, before there is a sandbox and after its harness has ended."""

import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from amem.errors import UnavailableError
from amem.launch.composition import _accepting, _own_door
from amem.launch.served import Doors, Serve, Served
from amem.memory.session import Memory
from amem.model.label import Label
from amem.server.app import new_worker
from amem.server.client import Client
from tests.memory.seed import agent, owner, seeded, written
from tests.server.test_task_tools import ADMITTING, filed


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with seeded(tmp_path, ADMITTING) as found:
        yield found


def door(memory: Memory, ceiling: Label | None = None) -> Served:
    session = agent(memory, "agent:claude", "dom-open", handling=Label.RESTRICTED, ceiling=ceiling)

    def make() -> Serve:
        async def serve(doors: Doors, end: object) -> None:
            worker = new_worker()
            runner = await _own_door(memory, session, worker)
            doors.open(_accepting(runner))
            listener = await doors.listener(end)  # type: ignore[arg-type]
            if listener is not None:
                listener.close()
            await runner.cleanup()
            worker.shutdown()

        return serve

    return Served(make)


def test_it_dials_in_without_a_listener_and_leaves_in_its_own_name(memory: Memory) -> None:
    served = door(memory)
    served.start()
    with Client("http://localhost/mcp", dial=served.dial) as client:
        left = client.call("handoff", body="From the launcher.").data
    with Client("http://localhost/mcp", dial=served.dial) as client:
        assert client.call("get", id=left["id"]).data["left_by"] == "launcher"
    assert served.stop() and served.failure is None
    with pytest.raises(UnavailableError):
        served.dial()


def test_it_is_ready_when_nothing_but_the_listener_is_missing(memory: Memory) -> None:
    served = door(memory)
    served.ready()
    assert served._loop is not None
    assert served.stop() and served.failure is None


def test_a_server_that_cannot_be_made_keeps_nobody_waiting() -> None:
    def make() -> Serve:
        raise UnavailableError("no disk")

    served = Served(make)
    served.ready()
    assert isinstance(served.failure, UnavailableError)


def test_what_it_reads_for_a_prompt_stays_below_the_models_ceiling(memory: Memory) -> None:
    secret = written(memory, owner(memory, "dom-open"), "A secret", classification="restricted")
    plain = written(memory, owner(memory, "dom-open"), "A plain thing", classification="public")
    served = door(memory, ceiling=Label.INTERNAL)
    served.start()
    with Client("http://localhost/mcp", dial=served.dial) as client:
        assert client.call("get", id=secret.id).data["code"] == "not_found"
        assert not client.call("get", id=plain.id).refused
    served.stop()


def test_a_server_that_cannot_start_is_told_to_both_sides() -> None:
    def make() -> Serve:
        raise OSError("no such disk")

    served, killed = Served(make), threading.Event()
    served.start()
    with pytest.raises(UnavailableError, match="no such disk"):
        served.dial()
    ours, theirs = socket.socketpair()
    served.listen(os.dup(theirs.fileno()), killed.set)
    assert killed.is_set()
    ours.close()
    theirs.close()


def test_a_session_that_claimed_below_it_is_the_same_session(memory: Memory) -> None:
    """What the launcher claims, the harness holds."""
    from amem.memory.session import Beside
    from tests.server.test_task_tools import done

    task, session = filed(memory), agent(memory, ceiling=Label.INTERNAL)
    beside = Beside(session)
    done(memory, beside, "task_claim")
    assert session.holding is not None and session.task == task.id
    assert (session.label, beside.label) == (Label.INTERNAL, Label.INTERNAL)
    done(memory, session, "task_complete", handoff="Done.")
    assert beside.holding is None and beside.handoffs == session.handoffs != []
