#!/usr/bin/env python3
"""The main job on the embedded default: seed a record, run a small agent confined, show what came of it.

    scripts/demo.py            # DEMO_ROOT (build/demo) is made anew; DEMO_FROM (docs and the README) is what is remembered

Every step is a command that a person could type; each is printed before it runs.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
PLACE = Path(os.environ.get("DEMO_ROOT") or PROJECT / "build" / "demo").absolute()
FROM = os.environ.get("DEMO_FROM", "README.md docs").split()
AMEM = [sys.executable, "-m", "amem", "--root", str(PLACE / "root")]
TERMINAL = sys.stderr.isatty()


def main() -> int:
    """Run the demonstration; 0 when the session left its handoff and every call was metered."""
    from amem.testing.demo import MODEL, PROMPT, SCRIPT
    from amem.testing.provider import running

    began = time.monotonic()
    shutil.rmtree(PLACE, ignore_errors=True)
    tree = PLACE / "tree"
    tree.mkdir(parents=True)
    shutil.copy(PROJECT / "examples" / "agent.py", tree)
    say("1/5 a root, seeded from this project's own documents")
    amem("init", "--owner", "human:demo:you", "--domain", "dom-demo")
    run(
        [
            sys.executable,
            str(PROJECT / "scripts" / "seed-corpus.py"),
            "--root",
            str(PLACE / "root"),
            *(str(PROJECT / path) for path in FROM),
        ]
    )
    before = measured()
    with running(SCRIPT) as provider:
        say(f"2/5 the scripted provider answers at {provider.url}; grants.toml names it as destination demo")
        with (PLACE / "root" / "grants.toml").open("a") as grants:
            grants.write(f'\n[destinations.demo]\nceiling = "internal"\nbase_url = "{provider.url}"\n')
        say("3/5 the agent runs in the sandbox: memory over MCP, model calls through the egress")
        os.environ.setdefault("DEMO_API_KEY", "demo-key-that-stays-outside")
        launch = amem("launch", "--harness", "command", "--provider", "demo", "--model", MODEL, "--workdir", str(tree), "--prompt", PROMPT,
                      "--", "python3", "agent.py", check=False)  # fmt: skip
        told = sum(usage.total for usage in provider.totals().values())
    say("4/5 what was metered, and what the next session finds")
    amem("usage")
    amem("handoff", "list")
    handoffs = answer("handoff", "list")["handoffs"]
    if handoffs:
        amem("handoff", "show", handoffs[0]["id"])
    metered = sum(row["input"] + row["output"] + row["cache_read"] + row["cache_write"] for row in answer("usage")["usage"])
    say("5/5 before and after")
    after = measured()
    print(f"  entries         {before['entries']:>7,} → {after['entries']:,}")
    print(f"  whole record    {before['corpus']:>7,} → {after['corpus']:,} tokens")
    print(f"  opening page    {before['t0']:>7,} → {after['t0']:,} tokens")
    print(f"  metered         {metered:>7,} tokens; the provider's own sum is {told:,}")
    done = launch == 0 and bool(handoffs) and metered == told
    say(f"{'done' if done else 'something is wrong above'} in {time.monotonic() - began:.0f} s")
    print(f"""
Look around:
  .venv/bin/amem --root {show(PLACE / "root")} search egress label
  .venv/bin/amem --root {show(PLACE / "root")} list --type fact
  tail -n 3 {show(PLACE / "root")}/state/decisions.jsonl
With a real harness:
  .venv/bin/amem init --owner human:example:you
  make launch HARNESS=claude AUTH=key PROMPT='load T0 and summarise'""")
    return 0 if done else 1


def amem(*words: str, check: bool = True) -> int:
    """Run an amem command, shown first; its output is the demonstration's."""
    return run([*AMEM, *words], shown=["amem", *words], check=check)


def run(command: list[str], shown: list[str] | None = None, check: bool = True) -> int:
    """Run a command, shown first."""
    words = [word if " " not in word else f"'{word}'" for word in shown or [show(Path(word)) for word in command[1:]]]
    print(f"  $ {' '.join(words)}", flush=True)
    code = subprocess.run(command, cwd=PROJECT).returncode
    if check and code:
        sys.exit(code)
    return code


def answer(*words: str) -> dict:
    """The JSON answer of an amem command."""
    return json.loads(subprocess.run([*AMEM, *words, "--json"], capture_output=True, text=True, check=True).stdout)


def measured() -> dict[str, int]:
    """Entries, tokens of the whole record and tokens of the opening page."""
    listed = answer("list", "--limit", "0")["entries"]
    return {"entries": len(listed), "corpus": sum(entry["tokens"] for entry in listed), "t0": answer("t0")["tokens"]}


def show(path: Path) -> str:
    """A path as a person here would type it."""
    return str(path.relative_to(PROJECT)) if path.is_relative_to(PROJECT) else str(path)


def say(text: str) -> None:
    """A heading, in bold on a terminal."""
    sys.stdout.flush()
    print(f"\n\033[1m{text}\033[0m" if TERMINAL else f"\n{text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
