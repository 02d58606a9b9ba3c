"""`amem` in the lab: `python -m tests.harnesses.dialled WORDS…`

The lab (`lab.py`) stands in for the public hosts of a login, so the address that the tunnel would dial is the lab's, and the harness
inside is told to trust the lab's authority. All that decides whether a tunnel opens, and what may pass, is the product's own. With
`LAB_IDLE_S` an answer may be silent for so long instead of ten minutes.
"""

import asyncio
import json
import os

from amem.cli.main import main
from amem.egress import access, tunnel
from amem.harnesses import base

PORT = int(os.environ.get("LAB_PORT", "0"))
TRUST = json.loads(os.environ.get("LAB_TRUST", "{}"))
session_env = base.session_env


async def dial(host: str, port: int) -> tunnel.Streams:
    return await asyncio.open_connection("127.0.0.1", PORT)


def trusting(facts: base.LaunchFacts) -> dict[str, str]:
    return {**session_env(facts), **TRUST}


if __name__ == "__main__":
    tunnel.dial_public = dial
    base.session_env = trusting
    access.Access.__init__.__kwdefaults__["idle_s"] = float(os.environ.get("LAB_IDLE_S", access.IDLE_S))
    main()
