"""P3: a pre-tool hook call, as a harness makes it, against the bare interpreter it runs on."""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from amem.launch.inside import memory_dir
from amem.settings.root import Root
from tests.bench.rows import Row, table
from tests.hooks.program import ALLOW, at, guard

ROUNDS = 60
GOAL = 2.5
EVENT = b'{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{"command":"' + b"x" * 2000 + b'"}}'


def run() -> list[Row]:
    """Time hook and peer in turn, so that both see the same machine."""
    with tempfile.TemporaryDirectory() as folder, guard(ALLOW) as found:
        inside = memory_dir(Root(Path(folder)))
        program = (inside / "memory").read_text()
        # The same three lines and the same compiled modules, at another place than /opt/memory.
        memory = f"{folder}/memory"
        Path(memory).write_text(program.replace("/opt/memory/lib", f"{inside}/lib"))
        env = at(found.port)
        hook, version, bare = [], [], []
        for _ in range(ROUNDS):
            hook.append(_ms([sys.executable, "-ISB", memory, "hook", "pre-tool", "claude"], env))
            version.append(_ms([sys.executable, "-ISB", memory, "version"], env))
            bare.append(_ms([sys.executable, "-I", "-S", "-c", "pass"], env))
    asked, started, peer = map(statistics.median, (hook, version, bare))
    name = "python -I -S -c pass"
    return [
        Row("P3", "hook pre-tool, asked", asked, name, peer, "ms", f"<= {GOAL} x", asked <= GOAL * peer),
        Row("P3", "hook program, start only", started, name, peer, "ms", "-", None),
    ]


def _ms(command: list[str], env: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, input=EVENT, env=env, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - started) * 1000


if __name__ == "__main__":
    print(table(run()))
