"""An egress with a spend limit in a process of its own, to be killed: `python -m … ROOT BASE_URL LIMIT`; prints its port."""

import asyncio
import socket
import sys
from datetime import UTC
from pathlib import Path

from amem.egress import server
from amem.egress.meter import Meter
from amem.egress.reserve import Reservations
from amem.egress.server import Access
from amem.model.label import Label
from amem.settings.credentials import Secret
from amem.settings.grants import Spend
from amem.settings.root import Root
from tests.egress.support import KEY, SESSION, Door, routes_to


async def main(folder: str, base_url: str, limit: str) -> None:
    root = Root(Path(folder))
    access = Access(
        session=SESSION, principal="agent:command", domain="dom-me", auth="key", routes=routes_to(base_url), credential=Secret(KEY),
        label=lambda: Label.PUBLIC, decide=Door().decide, spend={"demo": Spend(day_tokens=int(limit))},
        reservations=Reservations(root, UTC), note=lambda decision: None,
    )  # fmt: skip
    listener = socket.create_server(("127.0.0.1", 0))
    await server.serve(server.application(access, Meter(root)), listener)
    print(listener.getsockname()[1], flush=True)
    await asyncio.Event().wait()


asyncio.run(main(*sys.argv[1:]))
