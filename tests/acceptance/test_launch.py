"""`amem launch` as a person uses it: what reaches the provider, what is left behind, and every way it can end."""

import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from amem.testing.demo import MODEL, PROMPT, SCRIPT
from amem.testing.provider import Running
from tests.acceptance.conftest import PROJECT, Place


def test_the_main_job_end_to_end(place: Place, provider: Running) -> None:
    """Memory over MCP, model calls through the egress, an entry and a handoff in the record, usage to the token."""
    provider.load(SCRIPT)
    place.destination(provider.url)
    written = place.amem(
        "write", "--type", "fact", "--title", "How a model call leaves", "--body", "Through the egress, under a label and a ceiling."
    )
    assert written.code == 0, written.err
    shutil.copy(PROJECT / "examples" / "agent.py", place.tree)
    done = place.launch("--model", MODEL, "--prompt", PROMPT, "--json", "--", sys.executable, "agent.py")
    assert done.code == 0, done.err
    session = done.json
    assert session["state"] == "ended" and session["exit"] == 0 and session["harness"] == "command"
    assert len(session["handoffs"]) == 1 and len(session["entries"]) == 1 and session["held"] == []
    assert "wrote this down as mem-me-" in session["answer"]

    totals = provider.totals()
    usage = place.amem("usage", "--json").json["usage"]
    assert sum(row["input"] + row["output"] + row["cache_read"] + row["cache_write"] for row in usage) == sum(
        used.total for used in totals.values()
    )
    handoff = place.amem("handoff", "show", "--json").json
    assert handoff["id"] == session["handoffs"][0] and handoff["left_by"] == "agent" and handoff["session"] == session["id"]
    entry = place.amem("get", session["entries"][0], "--json").json
    assert entry["author"] == "agent:command" and entry["sources"] == [written.out.strip()]
    actions = {(line["action"], line["allow"]) for line in place.log("decisions.jsonl") if line.get("session") == session["id"]}
    assert actions == {("read", True), ("write", True), ("model_call", True)}
    assert {line["tool"] for line in place.log("reads.jsonl") if line.get("session") == session["id"]} >= {"t0", "search", "get"}


CALLS = """
import os, urllib.error, urllib.request
open("made", "w").write("made")
try:
    urllib.request.urlopen(os.environ["ANTHROPIC_BASE_URL"] + "/v1/messages", b"{}")
except urllib.error.HTTPError as refused:
    print(refused.code, refused.read().decode())
"""


def test_a_program_that_calls_no_model_needs_no_key_and_one_that_calls_is_refused(place: Place) -> None:
    words = ("launch", "--harness", "command", "--workdir", str(place.tree), "--", sys.executable, "-c", CALLS)
    done = place.amem(*words, ANTHROPIC_API_KEY="")
    assert done.code == 0 and (place.tree / "made").read_text() == "made", done.err
    assert "no key for anthropic: ANTHROPIC_API_KEY is neither in the environment nor in credentials.env; model calls of this" in done.err
    assert done.out.startswith("404 ") and "this session has no destination for /v1/messages" in done.out


def test_the_key_is_found_nowhere_inside_or_under_the_root(place: Place, provider: Running) -> None:
    provider.load(SCRIPT)
    place.destination(provider.url)
    shutil.copy(PROJECT / "examples" / "agent.py", place.tree)
    probe = place.launch(
        "--no-handoff",
        "--prompt",
        "x",
        "--",
        "sh",
        "-c",
        "env; cat /proc/*/environ /proc/*/cmdline; grep -rls 'planted[-]key' /home /opt/memory /etc /run /tmp /var /dev/shm .; echo looked",
    )
    assert probe.code == 0, probe.err
    assert "planted-key" not in probe.out + probe.err
    place.launch("--model", MODEL, "--prompt", PROMPT, "--", sys.executable, "agent.py")
    sent = [exchange for exchange in provider.log if exchange.path.endswith("/messages")]
    assert sent and all(exchange.headers.get("x-api-key") == "planted-key-of-the-demo" for exchange in sent)
    for path in [*place.root.rglob("*"), *place.tree.rglob("*")]:
        if path.is_file():
            assert b"planted-key" not in path.read_bytes(), path


def test_a_launcher_that_crashes_leaves_no_core_with_the_key(place: Place, provider: Running) -> None:
    place.destination(provider.url)
    words = place.command("launch", "--harness", "command", *place.launch_flags(), "--", "sh", "-c", "touch up; sleep 600")
    launcher = subprocess.Popen(
        ["sh", "-c", 'ulimit -c unlimited; exec "$@"', "sh", *words],
        cwd=PROJECT, env=place.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        until = time.monotonic() + 60
        while not (place.tree / "up").exists() or "Max core file size        1 " not in Path(f"/proc/{launcher.pid}/limits").read_text():
            assert time.monotonic() < until and launcher.poll() is None
            time.sleep(0.01)
        launcher.send_signal(signal.SIGABRT)
        assert launcher.wait(60) == -signal.SIGABRT
    finally:
        launcher.kill()
        launcher.wait()
    left = [path for folder in (PROJECT, place.base) for path in folder.glob("core*")] + list(place.base.rglob("core.*"))
    assert left == []


READING = """\
read_file() { printf '{"tool_name":"Read","tool_input":{"file_path":"%s"},"cwd":"/"}' "$1" | memory hook pre-tool claude; }
ls -A /memory; touch /memory/mine 2>&1
read_file /memory/$1.md && cat /memory/$1.md
read_file /memory/$2.md; cat /memory/$2.md 2>&1
echo other >/memory/$1.md; rm -f /memory/$1.md; ls -A /memory
"""


def test_the_projection_holds_what_the_session_was_served_by_path(place: Place, provider: Running) -> None:
    place.destination(provider.url)
    ids = [
        place.amem("write", "--type", "fact", "--title", title, "--body", f"{title}: the body.", "--label", label).out.strip()
        for title, label in (("Widget", "internal"), ("Safe", "restricted"))
    ]
    done = place.launch("--json", "--no-handoff", "--prompt", "x", "--", "sh", "-c", READING, "sh", *ids)
    said = done.json["answer"]
    assert said.startswith("touch: cannot touch '/memory/mine': Read-only file system"), said
    assert "Widget: the body." in said and "Safe: the body." not in said
    assert f"there is no entry {ids[1]} for you" in said
    assert said.endswith(f"{ids[0]}.md"), "it is read-only inside"
    session = done.json["id"]
    assert [(line["tool"], line["entries"]) for line in place.log("reads.jsonl") if line.get("session") == session] == [("get", ids[:1])]
    assert done.json["label"] == "internal"
    assert not list((place.root / "state" / "projections").iterdir()), "nothing of it is left"


@pytest.mark.parametrize(
    ("script", "code"),
    [("exit 0", 0), ("exit 9", 9), ("kill -TERM $$", 143), ("kill -SEGV $$", 139), ("trap 'exit 5' TERM; kill -TERM $$; sleep 9", 5)],
)
def test_the_harnesss_own_code_is_the_exit_code(place: Place, provider: Running, script: str, code: int) -> None:
    place.destination(provider.url)
    assert place.launch("--", "sh", "-c", script).code == code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_harness_that_takes_no_notice_of_the_end_is_killed(place: Place, provider: Running, number: int) -> None:
    place.destination(provider.url)
    words = ("--no-handoff", "--prompt", "x", "--", "sh", "-c", "trap '' TERM INT; echo began; while :; do sleep 600; done")
    command = place.command("launch", "--harness", "command", *place.launch_flags(), *words)
    process = subprocess.Popen(command, cwd=PROJECT, env=place.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == "began\n", "passed on by a launcher that waits by now"
        process.send_signal(number)
        assert process.wait(60) == 137
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def test_a_program_that_is_not_inside_is_127_and_one_that_cannot_run_126(place: Place, provider: Running) -> None:
    place.destination(provider.url)
    (place.tree / "data.txt").write_text("no program")
    absent, unfit = place.launch("--", "no-such-program"), place.launch("--", str(place.tree / "data.txt"))
    assert (absent.code, unfit.code) == (127, 126)
    assert "no-such-program was not started inside: No such file" in absent.err and "Permission denied" in unfit.err
    assert "--ro shows its folder" in absent.err and "--ro" not in unfit.err


def test_a_prompted_launch_without_a_handoff_exits_4(place: Place, provider: Running) -> None:
    place.destination(provider.url)
    done = place.launch("--prompt", "hello", "--", "echo", "an answer:")
    assert done.code == 4
    assert done.out == "an answer: hello\n"
    assert "--no-handoff" in done.err
    assert place.launch("--no-handoff", "--prompt", "hello", "--", "echo", "an answer:").code == 0


def test_an_empty_answer_is_a_failure_of_its_own(place: Place, provider: Running) -> None:
    place.destination(provider.url)
    done = place.launch("--no-handoff", "--prompt", "hello", "--", "true")
    assert done.code == 1
    assert "printed no answer" in done.err


def test_a_harness_that_fails_exits_with_its_code_before_4_is_considered(place: Place, provider: Running) -> None:
    place.destination(provider.url)
    assert place.launch("--prompt", "hello", "--", "sh", "-c", "exit 7").code == 7


def test_a_harness_that_fails_before_its_model_spoke_leaves_the_launchers_note(place: Place, provider: Running) -> None:
    """What the next session has to start from is why this one did not."""
    place.destination(provider.url)
    for script, found in (("echo no ladder >&2; exit 7", ["exit code 7", "no ladder"]), ("true", ["it printed no answer"])):
        done = place.launch("--prompt", "hello", "--json", "--", "sh", "-c", script)
        assert done.code in (7, 1)
        (note,) = [place.amem("get", id, "--json").json for id in done.json["handoffs"]]
        assert note["left_by"] == "launcher" and all(words in note["body"] for words in found), note["body"]
        assert place.launch("--no-handoff", "--prompt", "hello", "--json", "--", "sh", "-c", script).json["handoffs"] == []
    absent = place.launch("--prompt", "hello", "--json", "--", "no-such-program")
    assert (absent.code, absent.json["handoffs"]) == (127, []), "nothing ran that could have left anything"


def test_a_time_limit_ends_the_session_with_124(place: Place, provider: Running) -> None:
    place.destination(provider.url)
    done = place.launch("--timeout", "1s", "--", "sh", "-c", "trap '' TERM; sleep 600")
    assert done.code == 124
    assert "time limit" in done.err


def test_a_note_that_a_hook_left_is_filed_as_the_handoff_of_last_resort(place: Place, provider: Running) -> None:
    place.destination(provider.url)
    note = "mkdir -p ~/.amem/outbox; printf 'Stopped before the import was done.' > ~/.amem/outbox/session-end-1.md; echo done"
    done = place.launch("--prompt", "x", "--json", "--", "sh", "-c", note)
    assert done.code == 0, done.err
    handoff = place.amem("handoff", "show", "--json").json
    assert handoff["left_by"] == "hook" and "Stopped before the import" in handoff["body"]


FAKE = """#!{python}
import json, os, subprocess, sys
sys.path.insert(0, os.getcwd())
import agent
if {asks}:
    event = {{"tool_name": "mcp__memory__handoff", "tool_input": {{}}}}
    subprocess.run(["/opt/memory/memory", "hook", "pre-tool", "claude"], input=json.dumps(event), text=True, check=True)
agent.Memory(os.environ["MEMORY_MCP_URL"], None).call("handoff", {{"body": "Counted."}})
print(json.dumps({{"type": "result", "subtype": "success", "is_error": False, "result": "done"}}))
"""


@pytest.mark.parametrize("asks", [True, False], ids=["live", "dead"])
def test_a_session_whose_hooks_are_dead_does_not_pass_for_guarded(place: Place, provider: Running, asks: bool) -> None:
    """A program that goes by the name of a harness, or a version of it that runs no hooks."""
    place.destination(provider.url)
    shutil.copy(PROJECT / "examples" / "agent.py", place.tree)
    program = place.base / "bin" / "claude"
    program.parent.mkdir()
    program.write_text(FAKE.format(python=sys.executable, asks=asks))
    program.chmod(0o755)
    path = f"{program.parent}:{place.environment['PATH']}"
    done = place.launch("--prompt", "x", "--json", harness="claude", PATH=path)
    assert (done.code, done.json["answer"]) == (0, "done"), done.err
    assert ("the guard was asked about 0 of 1 tool calls" in done.err) != asks


def test_a_note_that_is_a_link_to_a_secret_is_not_followed(place: Place, provider: Running) -> None:
    place.destination(provider.url)
    (place.base / "secret").write_text("a secret of the host")
    script = f"mkdir -p ~/.amem/outbox; ln -s {place.base}/secret ~/.amem/outbox/session-end-1.md; echo done"
    done = place.launch("--prompt", "x", "--", "sh", "-c", script)
    assert done.code == 4
    assert "a symbolic link" in done.err
    assert place.amem("handoff", "list", "--json").json["handoffs"] == []


def test_a_label_over_the_ceiling_does_not_leave_and_the_log_says_so(place: Place, provider: Running) -> None:
    provider.load(SCRIPT)
    place.destination(provider.url, ceiling="public")
    shutil.copy(PROJECT / "examples" / "agent.py", place.tree)
    done = place.launch("--label", "internal", "--model", MODEL, "--prompt", PROMPT, "--", sys.executable, "agent.py")
    assert done.code not in (0, 4)
    assert "ceiling" in done.out + done.err
    assert [exchange for exchange in provider.log if exchange.method == "POST"] == []
    denied = [line for line in place.log("decisions.jsonl") if line["action"] == "model_call"]
    assert denied and not any(line["allow"] for line in denied)
    assert place.amem("usage", "--json").json["usage"][0]["status"] == {"403": len(denied)}


def test_every_refusal_before_the_start_names_what_helps(place: Place) -> None:
    for words, code, says in (
        ((), 2, "which harness?"),
        (("--harness", "cluade"), 2, "claude"),
        (("--harness", "claude", "--auth", "keys"), 2, "keys"),
        (("--harness", "command"), 2, "name it after --"),
    ):
        done = place.amem("launch", "--workdir", str(place.tree), *words)
        assert (done.code, "try: " in done.err) == (code, True), done.err
        assert says in done.err
    missing = place.amem("launch", "--harness", "codex", "--workdir", str(place.tree), PATH="/usr/bin:/bin", XDG_CACHE_HOME="/nonexistent")
    assert missing.code in (1, 2) and "codex" in missing.err


def test_a_dry_run_starts_nothing_and_shows_no_value(place: Place, provider: Running) -> None:
    place.destination(provider.url)
    done = place.launch("--dry-run", "--json", "--", "true")
    assert done.code == 0, done.err
    shown = json.loads(done.out)
    assert "ANTHROPIC_API_KEY" in shown["environment"] and shown["argv"] == ["true"]
    assert "planted-key" not in done.out
    assert list((place.root / "state" / "homes").iterdir()) == []


def test_what_a_session_writes_outside_its_tree_is_not_there_afterwards(place: Place, provider: Running, tmp_path: Path) -> None:
    place.destination(provider.url)
    before = sorted(str(path) for path in tmp_path.rglob("*") if "state" not in path.parts)
    done = place.launch("--", "sh", "-c", f"echo x > {tmp_path}/outside; echo x > /usr/x; echo x > ~/inside; echo x > made; true")
    assert done.code == 0
    after = sorted(str(path) for path in tmp_path.rglob("*") if "state" not in path.parts)
    assert after == sorted([*before, str(place.tree / "made")])
