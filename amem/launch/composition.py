"""Wire one session together: memory, policy, meter, egress and memory server on one web application.

`serve` is called in the server's thread and `settle` in the launcher's, after that thread has ended: a policy engine and a
database connection belong to the thread that made them. What takes time to import is imported in `serve`.
"""

from typing import TYPE_CHECKING

from amem.launch.outbox import Filed, file_notes, waiting
from amem.launch.served import Serve

if TYPE_CHECKING:
    import socket

    from amem.launch.run import Prepared, Settings
    from amem.memory.session import Memory, Session
    from amem.model.label import Label


class Composition:
    """What serves one session. `session` is there once serving began."""

    def __init__(self, ready: "Prepared", settings: "Settings") -> None:
        self.session: Session | None = None
        self.stopped: str | None = None
        """Why the session was stopped; no call leaves from then on."""
        self._ready = ready
        self._settings = settings

    def serve(self) -> Serve:
        """Import and build everything; the result serves on a listener. Raises what the parts raise."""
        import asyncio

        from aiohttp import web

        from amem.egress import server
        from amem.egress.access import Access, granted
        from amem.egress.meter import Meter
        from amem.memory.session import open_memory
        from amem.server.app import McpApp, add_routes

        found, root = self._ready.plan, self._settings.root
        memory = open_memory(root, self._settings.grants)
        session = self.session = self._open(memory)
        meter = Meter(root)
        limits = granted(
            root, self._settings.grants, destination=found.destination, auth=found.auth, domain=session.domain, session=session.id
        )
        access = Access(
            session=session.id,
            principal=session.principal,
            domain=session.domain,
            task=session.task,
            auth=found.auth,
            routes=found.routes,
            credential=found.credential,
            label=lambda: session.label,
            decide=memory.door.decide,
            stopped=lambda: self.stopped,
            note=memory.append,
            **limits,
        )

        async def serve(listener: "socket.socket", end: asyncio.Event) -> None:
            mcp = McpApp(memory, session)

            def mount(app: web.Application) -> None:
                add_routes(app, mcp)

            runner = await server.serve(server.application(access, meter, extra=mount), listener)
            try:
                await end.wait()
            finally:
                await runner.cleanup()
                await asyncio.to_thread(meter.close)
                memory.close()

        return serve

    def settle(self) -> Filed:
        """File what the hooks left, in the session's name. Call it when the server's thread has ended."""
        if not waiting(self._ready.home):
            return Filed()
        from amem.memory.session import open_memory

        memory = open_memory(self._settings.root, self._settings.grants)
        try:
            if self.session is None:
                self.session = self._open(memory)
            return file_notes(memory, self.session, self._ready.home)
        finally:
            memory.close()

    def _open(self, memory: "Memory") -> "Session":
        from amem.egress import meter
        from amem.memory.session import agent_session

        found, root = self._ready.plan, self._settings.root

        def persist(label: "Label") -> None:
            meter.raise_label(root, self._ready.id, label)

        return agent_session(
            memory,
            id=self._ready.id,
            principal=found.principal,
            domain=found.domain,
            harness=found.harness.name,
            handling=found.handling,
            label=found.label,
            ceiling=found.ceiling,
            persist=persist,
        )
