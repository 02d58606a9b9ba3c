import subprocess
import sys

HEAVY = ("aiohttp", "asyncio", "mcp", "pydantic", "ssl", "sqlite_utils", "http.client")
PROGRAM = """
import sys
import amem.memory.session, amem.memory.read, amem.memory.rows, amem.memory.t0
print(*(name for name in sys.argv[1:] if name in sys.modules))
"""


def test_reading_the_record_starts_without_a_web_server_or_the_sdk() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM, *HEAVY], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


def test_tool_table_and_guard_need_no_sdk() -> None:
    program = PROGRAM.replace("amem.memory.session", "amem.server.tools, amem.server.guard, amem.server.replies, amem.memory.session")
    done = subprocess.run([sys.executable, "-c", program, "mcp", "aiohttp", "pydantic"], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
