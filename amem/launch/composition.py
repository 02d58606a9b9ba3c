"""Wire one session together: memory, policy, meter, egress and memory server on one web application.

`serve` is called in the server's thread and `settle` in the launcher's, after that thread has ended: a policy engine and a
database connection belong to the thread that made them. What takes time to import is imported in `serve`.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cached_property

from amem.errors import IntegrityError
from amem.harnesses.base import HookKind
from amem.launch.served import Accept, Doors, Serve
from amem.typed import TYPE_CHECKING

if TYPE_CHECKING:
    import socket
    from concurrent.futures import ThreadPoolExecutor

    from aiohttp import web
    from aiohttp.typedefs import Handler, Middleware

    from amem.egress.access import Access
    from amem.egress.meter import Meter
    from amem.launch.leftover import Found
    from amem.launch.outbox import Filed
    from amem.launch.run import Prepared, Settings
    from amem.memory.session import Memory, Session
    from amem.model.label import Label
    from amem.server.app import McpApp
    from amem.settings.root import Root


HELD_S = 30.0
"""How long a call waits for the memory server at most."""


class Composition:
    """What serves one session. `session` is there once serving began.

    `client`: the launcher uses the session's memory tools itself, before there is a sandbox and after the harness has ended. `graded`:
    what it did will be judged. `grading` names the task on which it judges what another did: it sees nothing of the memory, and what it
    uses is the task's.
    """

    def __init__(
        self, ready: "Prepared", settings: "Settings", *, client: bool = False, graded: bool = False, grading: str | None = None
    ) -> None:
        self.session: Session | None = None
        self.stopped: str | None = None
        """Why the session was stopped; no call leaves from then on."""
        self.silent: str | None = None
        """Why a call was refused: its provider fell silent again and again."""
        self.heard: Callable[[], None] = lambda: None
        """Called for each request to the egress."""
        self._ready = ready
        self._settings = settings
        self._client = client
        self._graded = graded
        self._grading = grading
        self._token = ready.door.token if ready.door is not None else None
        self._egress: tuple[Access, Meter] | None = None
        self._mcp: McpApp | None = None

    @property
    def root(self) -> "Root":
        """The root that the session works on."""
        return self._settings.root

    def serve(self) -> Serve:
        """Import and build everything; the result serves. Raises what the parts raise."""
        import asyncio
        import gc
        from contextlib import AsyncExitStack

        from amem.egress import server
        from amem.egress.meter import Meter
        from amem.memory.session import open_memory
        from amem.server.app import new_worker

        _no_core()
        memory = open_memory(self._settings.root, self._settings.grants)
        session = self.session = self._open(memory)
        meter = Meter(self._settings.root)
        access = self._access(memory, session)
        self._egress = access, meter
        worker = new_worker()
        gc.freeze()  # what was imported stays; no collection during a call has to walk it

        async def serve(doors: Doors, end: asyncio.Event) -> None:
            async with AsyncExitStack() as stack:
                stack.callback(memory.close)
                stack.push_async_callback(asyncio.to_thread, worker.shutdown)
                stack.push_async_callback(asyncio.to_thread, meter.close)
                if self._client:
                    door = await _own_door(memory, session, worker)
                    stack.push_async_callback(door.cleanup)
                    doors.open(_accepting(door))
                listener = await doors.listener(end)
                if listener is None:
                    return
                stack.enter_context(listener)
                app = server.application(access, meter, extra=lambda app: self._mount(app, memory, session, worker))
                runner = await server.serve(app, listener)
                stack.push_async_callback(runner.cleanup)
                await end.wait()

        return serve

    def _access(self, memory: "Memory", session: "Session") -> "Access":
        """What the session may do through its egress."""
        from zoneinfo import ZoneInfo

        from amem.egress.access import Access, Account, granted
        from amem.egress.reserve import Reservations
        from amem.launch.inforce import InForce

        found, root, grants = self._ready.plan, self._settings.root, self._settings.grants
        limits = granted(root, grants, destination=found.destination, auth=found.auth, domain=session.domain, session=session.id)
        # Of the provider's hosts only those that this harness's login needs: a tunnel carries what nobody can meter.
        tunnels = {host: way for host, way in limits["tunnels"].items() if f"{host}:443" in found.harness.tunnel_hosts}
        login = self._ready.login
        force = InForce(memory, session, found.destination)

        def stopped() -> str | None:
            self.heard()
            return self.stopped or force.revoked()

        def silent(sentence: str) -> None:
            self.silent = sentence

        return Access(
            session=session.id,
            principal=session.principal,
            domain=session.domain,
            task=lambda: session.task,
            auth=found.auth,
            routes=found.routes,
            credential=found.credential,
            label=lambda: session.label,
            decide=memory.door.decide,
            asks=lambda action: memory.door.concerns(action, session.domain),
            stopped=stopped,
            silent=silent,
            generation=force.generation,
            note=memory.append,
            token=self._token,
            pinned=login.secrets if login is not None else (),
            account=Account(login.account) if login is not None and login.account else None,
            **{**limits, "tunnels": tunnels, "spend": force, "reservations": Reservations(root, ZoneInfo(grants.spend_zone))},
        )

    def _mount(self, app: "web.Application", memory: "Memory", session: "Session", worker: "ThreadPoolExecutor") -> None:
        """Put the memory server beside the egress, on the same port."""
        from amem.server.app import McpApp, add_routes
        from amem.server.projection import Projection

        # A session that judges sees nothing of the memory, by path neither.
        grading = self._grading is not None
        projection = None if grading else Projection(self._ready.projection)
        mcp = self._mcp = McpApp(
            memory, session, token=self._token, board=self._ready.board, worker=worker, projection=projection, grading=grading
        )
        add_routes(app, mcp)
        if self._ready.plan.harness.hasty:
            app.middlewares.append(_holding(mcp))

    def settle(self) -> "Filed":
        """File what the hooks left, in the session's name, and let go of a task it still holds; once nothing of it runs any more.

        Where the launcher is a client, the server still serves it, and the task is the launcher's to give back.
        """
        from amem.launch.outbox import Filed, file_notes, waiting

        if self.session is not None and self.session.holding is not None and not self._client:
            self._give_back(self.session)
        if self._grading:
            return Filed()
        noted = waiting(self._ready.home)
        unnoted = None if noted or self._client or (self.session is not None and self.session.handoffs) else self.transcript
        if unnoted is not None:
            from amem.launch import leftover

            return self.leave(leftover.note(self._ready.plan.harness, unnoted, self._ready.id))
        if not noted:
            return Filed()
        with self._filing() as (memory, session):
            return file_notes(memory, session, self._ready.home)

    def leave(self, note: str) -> "Filed":
        """File a note of the launcher's own in the session's name; once nothing of it runs any more."""
        from amem.launch.outbox import file_note

        with self._filing() as (memory, session):
            return file_note(memory, session, note, left_by="launcher")

    @contextmanager
    def _filing(self) -> "Iterator[tuple[Memory, Session]]":
        from amem.memory.session import open_memory

        memory = open_memory(self._settings.root, self._settings.grants)
        try:
            if self.session is None:
                self.session = self._open(memory)
            yield memory, self.session
        finally:
            memory.close()

    def stranger(self, token: str) -> str | None:
        """Why a token that the session left is not of its account; None when it is. For the launcher, once serving has ended."""
        if self._egress is None:
            return "the session had no egress that could tell"
        from dataclasses import replace

        from amem.egress.gate import Gate
        from amem.egress.whose import ask_now
        from amem.errors import AmemError
        from amem.memory.session import open_memory

        access, meter = self._egress
        try:
            memory = open_memory(self._settings.root, self._settings.grants)
        except AmemError as error:
            return error.message
        try:
            again = replace(access, decide=memory.door.decide, note=memory.append, stopped=lambda: self.stopped)
            return ask_now(again, Gate(again, meter), token)
        finally:
            memory.close()

    @cached_property
    def transcript(self) -> "Found | None":
        """What the harness left of the session, once nothing of it runs any more. Not every harness has a hook at its end, and a killed
        one runs none: then the launcher's own note is drawn from it."""
        if self._ready.plan.harness.transcript_shape is None:
            return None
        from amem.launch.leftover import find

        return find(self._ready.plan.harness, self._ready.home)

    def unguarded(self) -> str | None:
        """That the harness called tools without asking the guard, for a person; None where it asked.

        Counted are the calls of its transcript or, where it tells less, those of memory tools.

        A harness lets a tool run whose hook is missing, dead or late; some calls that it refuses by itself it does not ask about.
        """
        harness = self._ready.plan.harness
        if self._mcp is None or all(hook.kind is not HookKind.PRE_TOOL for hook in harness.hooks):
            return None
        told = sum(len(turn.tools) for turn in self.transcript.read.turns) if self.transcript is not None else 0
        calls, asked = max(told, self._mcp.calls), self._mcp.asked
        if asked * 4 >= calls:
            return None
        return (
            f"the guard was asked about {asked} of {calls} tool calls: {harness.title} did not run its hooks, so nothing kept the others "
            "from /memory by path, or from starting subagents"
        )

    def keep_transcript(self) -> str | None:
        """Keep the transcript in the record, under the label that the session ended with; why it could not be, for a person."""
        if self.transcript is None:
            return None
        from amem.launch import transcript

        label = self.session.label if self.session is not None else self._ready.plan.label
        try:
            transcript.keep(self._settings.root, self._settings.grants, self._ready, self.transcript, label)
        except (OSError, IntegrityError) as error:
            return f"the transcript could not be kept: {error}"
        return None

    def _give_back(self, session: "Session") -> None:
        """A session that claimed a task by itself and ended with it: nobody has to wait for the lease."""
        from amem.errors import AmemError
        from amem.ledger.opening import open_ledger

        holding = session.holding
        assert holding is not None
        try:
            with open_ledger(self._settings.root, self._settings.grants) as ledger:
                ledger.release(
                    holding.task, by=session.principal, fence=holding.fence, session=session.id, why="the session that held it ended"
                )
        except AmemError:
            return  # the lease ends by itself

    def _open(self, memory: "Memory") -> "Session":
        from amem.egress import meter
        from amem.launch import trees
        from amem.memory.session import agent_session

        found, root = self._ready.plan, self._settings.root

        def persist(label: "Label") -> None:
            trees.mark(root, found.writable, label, self._ready.id)
            meter.raise_label(root, self._ready.id, label)

        session = agent_session(
            memory,
            id=self._ready.id,
            principal=found.principal,
            domain=found.domain,
            harness=found.harness.name,
            handling=found.handling,
            label=found.label,
            ceiling=found.ceiling,
            persist=persist,
            beside=trees.Watched(root, found.shown),
        )
        session.graded, session.task = self._graded, self._grading
        return session


def _no_core() -> None:
    """Let no crash of this process write its memory, with the key, to a disk.

    A limit of one byte: at nought the kernel still hands a core to a program that `core_pattern` pipes it to (core(5)).
    """
    import resource

    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    most = 1 if hard == resource.RLIM_INFINITY else min(1, hard)
    resource.setrlimit(resource.RLIMIT_CORE, (most, most))


def _holding(mcp: "McpApp") -> "Middleware":
    """Hold model calls until the harness was told which memory tools there are: a model that goes on without them has no memory."""
    from aiohttp import web

    @web.middleware
    async def hold(request: "web.Request", handler: "Handler") -> "web.StreamResponse":
        if request.method == "POST" and request.path.startswith("/v1"):
            await mcp.until_listed(HELD_S)
        return await handler(request)

    return hold


async def _own_door(memory: "Memory", session: "Session", worker: "ThreadPoolExecutor") -> "web.AppRunner":
    """The memory tools as the launcher is served them: in its own name, and without the egress."""
    from aiohttp import web

    from amem.memory.session import Beside
    from amem.server import door

    runner = web.AppRunner(door.application(memory, Beside(session), worker), access_log=None)
    await runner.setup()
    return runner


def _accepting(runner: "web.AppRunner") -> Accept:
    import asyncio

    loop = asyncio.get_running_loop()
    assert runner.server is not None
    protocol, taken = runner.server, set[asyncio.Task[object]]()

    def accept(connection: "socket.socket") -> None:
        connection.setblocking(False)
        task = loop.create_task(loop.connect_accepted_socket(protocol, connection))
        taken.add(task)  # the loop keeps only a weak reference
        task.add_done_callback(taken.discard)

    return accept
