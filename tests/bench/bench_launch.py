"""P1: what a sandbox costs before the program in it does anything.

    python -m tests.bench.bench_launch [--rounds 30]

"step" is from handing a waiting stage its plan to everything being gone again, around /bin/true: what a launch adds, since the stage was
forked as the launcher's first act. "cold" is a new interpreter that forks a stage, has it plan and runs the same. bwrap gets equal
features: the same system folders, /etc entries, own /proc and /dev, tmpfs, a home and a work tree, no capabilities, a clean environment
and our own filter; it still lacks Landlock, the limits, the masks and the namespace limit. Rounds are interleaved (A B C A B C); figures
are medians, a ratio is the median of the ratios inside a round, for a noisy minute hits every row of it. "whole" is `amem launch` itself
with everything it serves, and "exec" the part of it until the harness runs: its first instruction is to look at the clock. "exec, floor"
is an interpreter that forks a stage, loads paths and TOML, with the stand-ins that `amem` uses too, and has the stage run the same: no
settings, no harness, no record. "cold, floor" is one without `site` that loads `_ctypes`, and then takes a step; "cold, loaded" the same
with a stage that is forked, clones, looks at the machine and plans, but has all of its modules: what lies above that is their loading.
bwrap and srt are looked for on PATH, in `build/peers` and in `$AMEM_BENCH_PEERS`. Run it as an ordinary user or as root.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from amem.sandbox import host, seccomp
from amem.sandbox.child import Stage, fork_stage
from amem.sandbox.plan import plan
from amem.sandbox.spec import SandboxSpec, base_env
from tests.bench.rows import Row, table

ENV = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": os.environ.get("HOME", "/"), "LANG": "C.UTF-8", "TERM": "xterm"}
TREE_FILES = 20_000
PEERS = Path(__file__).resolve().parents[2] / "build" / "peers"
COLD = """
import sys; sys.path.insert(0, sys.argv[1])
from amem.sandbox.child import fork_stage
stage = fork_stage()
from amem.sandbox import spec
work, home = sys.argv[2:4]
env = tuple(spec.base_env({}, "/home/agent", "agent").items())
asked = spec.SandboxSpec(argv=("/bin/true",), env=env, workdir=work, cwd=work, home=home, port=7431)
code = stage.start(asked).wait()
import os; os._exit(code)
"""


LOADED = """
import sys; sys.path.insert(0, sys.argv[1])
from amem.sandbox.child import fork_nursery
nursery = fork_nursery()
from amem.sandbox import spec
from time import perf_counter
work, home = sys.argv[2:4]
env = tuple(spec.base_env({}, "/home/agent", "agent").items())
asked = spec.SandboxSpec(argv=("/bin/true",), env=env, workdir=work, cwd=work, home=home, port=7431)
for _ in range(2):
    began = perf_counter()
    code = nursery.stage().start(asked).wait()
    took = perf_counter() - began
    assert code == 0
print(took * 1e3)
"""


FLOOR = """
import gc, os, sys; gc.disable(); sys.path.insert(0, sys.argv[1])
from amem.sandbox.child import fork_stage
stage = fork_stage()
from amem.cli.standins import stand_ins
with stand_ins():
    import pathlib, tomllib
from amem.sandbox import spec
work, home = sys.argv[2:4]
env = tuple(spec.base_env({}, "/home/agent", "agent").items())
asked = spec.SandboxSpec(argv=("sh", "-c", sys.argv[4]), env=env, workdir=work, cwd=work, home=home, port=7431)
code = stage.start(asked).wait()
os._exit(code)
"""
LOOK = "date +%s%N > said"
TRIED = """P1: cold: with every module there ("cold, loaded") it is as good as the goal; the rest is the loading of twenty, one by one.
Of that, these were left out: ctypes, the search for garbage, constructors that are compiled. Not taken: PID 1 cloned before its
modules are loaded; a second process that plans (less time cold, more processor time in each launch)."""


def spec(base: Path, work: Path) -> SandboxSpec:
    """A sandbox around /bin/true."""
    env = tuple(base_env({}, "/home/agent", "agent").items())
    return SandboxSpec(argv=("/bin/true",), env=env, workdir=str(work), cwd=str(work), home=str(base / "home"), port=7431)


def step_ms(asked: SandboxSpec) -> float:
    """One sandbox from a stage that waits."""
    stage = fork_stage()
    steps = plan(asked, host.facts(asked))
    _until_waiting(stage)
    began = time.perf_counter()
    running = stage.start(asked, steps)
    code = running.wait(lambda stream, data: None)
    wall = time.perf_counter() - began
    os.close(running.listener_fd)
    assert code == 0
    return wall * 1e3


def loaded_ms(argv: list[str]) -> float:
    """One sandbox from a stage that is forked with its modules in it, as a small process that has done it before takes it."""
    return float(subprocess.run(argv, env=ENV, check=True, stdout=subprocess.PIPE).stdout)


def _until_waiting(stage: Stage) -> None:
    """The stage has imported what it needs and sleeps in its first read."""
    still = 0
    while still < 5:
        state = Path(f"/proc/{stage.pid}/stat").read_text().rpartition(")")[2].split()[0]
        still = still + 1 if state == "S" else 0
        time.sleep(0.001)


def command_ms(argv: list[str], fds: dict[int, int] | None = None) -> float:
    """Spawn to reaped. Raises AssertionError when it fails."""
    quiet = os.open(os.devnull, os.O_RDWR)
    actions = [(os.POSIX_SPAWN_DUP2, quiet, fd) for fd in (0, 1, 2)] + [(os.POSIX_SPAWN_DUP2, fd, to) for to, fd in (fds or {}).items()]
    began = time.perf_counter()
    pid = os.posix_spawn(argv[0], argv, ENV, file_actions=actions)
    status = os.waitpid(pid, 0)[1]
    wall = time.perf_counter() - began
    os.close(quiet)
    assert status == 0, f"{argv[0]}: status {status}"
    return wall * 1e3


def find(name: str) -> str | None:
    """A peer on PATH, or below `$AMEM_BENCH_PEERS`."""
    peers = [os.environ.get("AMEM_BENCH_PEERS", ""), str(PEERS / name)]
    return shutil.which(name) or shutil.which(name, path=":".join(f"{at}/usr/bin:{at}/node_modules/.bin:{at}" for at in peers))


def bwrap(program: str, asked: SandboxSpec) -> list[str]:
    """A command line with what our plan shows."""
    facts = host.facts(asked)
    argv = [program, "--unshare-all", "--die-with-parent", "--new-session", "--hostname", "amem", "--cap-drop", "ALL", "--clearenv"]
    for path, link in facts.root_links:
        argv += ["--symlink", link, path] if link else ["--ro-bind", path, path]
    argv += ["--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--tmpfs", "/run", "--tmpfs", "/var/tmp"]
    for name, link in facts.etc:
        argv += ["--symlink", link, f"/etc/{name}"] if link else ["--ro-bind", f"/etc/{name}", f"/etc/{name}"]
    argv += ["--bind", asked.home, asked.home_inside, "--bind", asked.workdir, asked.workdir, "--chdir", asked.cwd]
    for name, value in asked.env:
        argv += ["--setenv", name, value]
    return [*argv, "--remount-ro", "/", "--seccomp", "9", "--", "/bin/true"]


def launch_line(base: Path, *argv: str) -> list[str]:
    """The command line of a whole launch in the root below `base`, which is made on first use."""
    root = base / "root"
    amem = [str(Path(sys.executable).with_name("amem")), "--root", str(root)]  # as a person types it
    if not root.exists():
        subprocess.run([*amem, "init", "--owner", "human:bench:you"], check=True, stdout=subprocess.DEVNULL)
        with (root / "grants.toml").open("a") as grants:
            grants.write('[destinations.demo]\nceiling = "internal"\nbase_url = "http://127.0.0.1:9"\n')  # nobody calls it
    launch = ["launch", "--harness", "command", "--provider", "demo", "--no-handoff", "--workdir", str(base / "work")]
    return [*amem, *launch, "--", *argv]


def srt_line(base: Path) -> list[str] | None:
    """The sandbox-runtime with no network and a writable work tree; None without it or what it asks for."""
    program = find("srt")
    if program is None or not all(map(find, ("rg", "socat", "bwrap"))):
        return None
    settings = base / "srt.json"
    network: dict[str, list[str]] = {"allowedDomains": [], "deniedDomains": []}
    files = {"denyRead": [], "allowWrite": [str(base / "work")], "denyWrite": []}
    settings.write_text(json.dumps({"network": network, "filesystem": files}))
    return [program, "-s", str(settings), "true"]


def exec_ms(line: list[str], said: Path) -> float:
    """From the command's start to the harness's own look at the clock."""
    began = time.time_ns()
    command_ms(line)
    return (int(said.read_text()) - began) / 1e6


def run(rounds: int = 30) -> list[Row]:
    """Measure; one row per figure of P1."""
    with ExitStack() as stack:
        base = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="amem-bench-")))
        for name in ("work", "home", "tree"):
            (base / name).mkdir()
        for number in range(TREE_FILES):
            if number % 200 == 0:
                folder = base / "tree" / str(number)
                folder.mkdir()
            (folder / str(number)).touch()
        asked = spec(base, base / "work")
        large = spec(base, base / "tree")
        ways: dict[str, Callable[[], float]] = {
            "step": lambda: step_ms(asked),
            "step, large tree": lambda: step_ms(large),
            "cold": lambda: command_ms([sys.executable, "-I", "-S", "-c", COLD, _package(), asked.workdir, asked.home]),
        }
        if program := find("bwrap"):
            end = os.memfd_create("filter")
            os.write(end, seccomp.program(os.uname().machine))

            bwrap_line = bwrap(program, asked)

            def bwrap_ms() -> float:
                os.lseek(end, 0, os.SEEK_SET)
                return command_ms(bwrap_line, {9: end})

            ways["bwrap"] = bwrap_ms
        if program := shutil.which("unshare"):
            ways["unshare"] = lambda line=[program, "-c", "-n", "-m", "-p", "-f", "-u", "-i", "-C", "/bin/true"]: command_ms(line)  # type: ignore[misc]
        line, look = launch_line(base, "true"), launch_line(base, "sh", "-c", LOOK)
        ways["whole"] = lambda: command_ms(line)
        ways["exec"] = lambda: exec_ms(look, base / "work" / "said")
        loaded = [sys.executable, "-c", FLOOR, _package(), asked.workdir, asked.home, LOOK]
        ways["exec, floor"] = lambda: exec_ms(loaded, base / "work" / "said")
        bare = [sys.executable, "-I", "-S", "-c", "import _ctypes, os; os._exit(0)"]
        warm = [sys.executable, "-I", "-S", "-c", LOADED, _package(), asked.workdir, asked.home]
        ways["cold, floor"] = lambda: command_ms(bare) + step_ms(asked)
        ways["cold, loaded"] = lambda: command_ms(bare) + loaded_ms(warm)
        if srt := srt_line(base):
            ways["srt"] = lambda: command_ms(srt)
        figures: dict[str, list[float]] = {name: [] for name in ways}
        for turn in range(rounds + 2):
            for name, measure in ways.items():
                value = measure()
                if turn >= 2:
                    figures[name].append(value)
        os.chdir("/")
    print(TRIED, file=sys.stderr)
    return _rows(figures)


def _package() -> str:
    return str(Path(__file__).resolve().parents[2])


def _rows(figures: dict[str, list[float]]) -> list[Row]:
    goals = [
        ("step", "bwrap", 1.0, "≤ 1 × bwrap"),
        ("cold", "bwrap", 2.0, "≤ 2 × bwrap"),
        ("cold, floor", "bwrap", None, "the floor: _ctypes and a step"),
        ("cold, loaded", "bwrap", None, "the floor and all but the loading of twenty modules"),
        ("step", "unshare", None, "for scale"),
        ("step, large tree", "step", 1.1, f"≤ 1.1 × with {TREE_FILES} files"),
        ("exec", "bwrap", 6.0, "≤ 6 × bwrap"),
        ("exec, floor", "bwrap", None, "the floor: paths, TOML and a sandbox"),
        ("whole", "srt", 0.5, "≤ 0.5 × srt"),
    ]
    rows = []
    for what, peer, most, goal in goals:
        if what not in figures:
            continue
        ours, theirs = figures[what], figures.get(peer)
        ratio = statistics.median(a / b for a, b in zip(ours, theirs, strict=True)) if theirs else None
        # The row's ratio is the paired one: the peer's figure is given so that ours over it is just that.
        shown = statistics.median(ours) / ratio if ratio else None
        rows.append(
            Row("P1", what, statistics.median(ours), peer, shown, "ms", goal, None if ratio is None or most is None else ratio <= most)
        )
    return rows


def main() -> None:
    """Measure and print."""
    arguments = argparse.ArgumentParser(description="P1: launch")
    arguments.add_argument("--rounds", type=int, default=30)
    print(table(run(arguments.parse_args().rounds)))


if __name__ == "__main__":
    main()
