"""The launcher's door: its own client's calls, answered as over MCP, without the SDK."""

import subprocess
import sys
from pathlib import Path

LOOK = """
import asyncio, json, sys
from concurrent.futures import ThreadPoolExecutor
from aiohttp import web
from pathlib import Path
from amem.memory.session import Beside
from amem.server import door
from amem.server.client import Client
from tests.memory.seed import agent, seeded

async def main(folder):
    with seeded(folder) as memory, ThreadPoolExecutor(1) as worker:
        session = agent(memory)
        runner = web.AppRunner(door.application(memory, Beside(session), worker))
        await runner.setup()
        site = web.UnixSite(runner, str(folder / "s"))
        await site.start()
        print(json.dumps(await asyncio.to_thread(talk, str(folder / "s"))))
        await runner.cleanup()

def talk(path):
    with Client("http://localhost/mcp", socket_path=path) as client:
        page, none, bad = client.call("t0"), client.call("task_claim"), client.call("task_checked", state="odd")
        again = client.call("handoff", body="Where things stand.")
        entry = client.call("get", id=again.data["id"])
    return [page.refused, "dom-me" in page.text, none.data, bad.refused, bad.data["code"], entry.data["left_by"], "mcp" in sys.modules]

asyncio.run(main(Path(sys.argv[1])))
"""


def test_the_launcher_is_served_without_the_sdk(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOOK, str(tmp_path)], cwd=Path(__file__).parents[2], stdin=subprocess.DEVNULL,
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.stdout.strip() == '[false, true, {"none": true}, true, "invalid", "launcher", false]', done.stderr
